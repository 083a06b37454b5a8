"""Export of columns as an Arrow table or a data frame of pandas or polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from trecexam.errors import TrecexamError, did_you_mean

if TYPE_CHECKING:
    import pandas
    import polars

Library = Literal["pandas", "polars", "pyarrow"]
_LIBRARIES = get_args(Library)


def texts(values: Sequence[str | None]) -> Any:
    """Return a column of texts, typed as text even if empty."""
    import pyarrow as pa

    return pa.array(values, pa.string())


def data_frame(columns: Mapping[str, Any], library: Library = "pandas") -> Any:
    """Return a data frame of columns.

    Args:
        columns: name -> array of pyarrow or numpy.
        library: "pandas", "polars" or "pyarrow"; pyarrow (a `Table`) is always installed.

    Raises:
        TrecexamError: the library is not installed, or unknown.
    """
    if library not in _LIBRARIES:
        hint = did_you_mean(library, _LIBRARIES, f"there are {', '.join(_LIBRARIES)}")
        raise TrecexamError(f"no data frames of {library!r}; {hint}")
    try:
        module = import_module(library)
    except ImportError:
        raise TrecexamError(f"a data frame needs {library}: pip install {library}") from None
    import pyarrow as pa

    table = pa.table(dict(columns))
    if library == "pyarrow":
        return table
    return module.from_arrow(table) if library == "polars" else table.to_pandas()


class Framed:
    """Rows for any data frame library: `polars.DataFrame(rows)`, `pyarrow.table(rows)` ..."""

    def columns(self) -> Mapping[str, Any]:
        """Return column name -> array of pyarrow or numpy."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame (extra `frame`)."""
        return data_frame(self.columns(), "pandas")

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a polars data frame (extra `polars`)."""
        frame: polars.DataFrame = data_frame(self.columns(), "polars")
        return frame

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`."""
        return data_frame(self.columns(), "pyarrow")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows by the Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)
