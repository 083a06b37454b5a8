"""Export of columns as an Arrow table or a data frame of pandas or polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    import pandas

Library = Literal["pandas", "polars", "pyarrow"]


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
    import pyarrow as pa

    table = pa.table(dict(columns))
    try:
        if library == "pandas":
            return table.to_pandas()
        if library == "polars":
            return import_module(library).from_arrow(table)
    except ImportError:
        raise TrecexamError(f"a data frame needs {library}: pip install {library}") from None
    if library != "pyarrow":
        raise TrecexamError(f"no data frames of {library!r}; there are {', '.join(get_args(Library))}")
    return table


class Framed:
    """Rows for any data frame library: `.to_pandas()`, `polars.DataFrame(rows)`, `pyarrow.table(rows)`."""

    def columns(self) -> Mapping[str, Any]:
        """Return column name -> array of pyarrow or numpy."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame (extra `frame`)."""
        return data_frame(self.columns(), "pandas")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows by the Arrow PyCapsule interface."""
        return data_frame(self.columns(), "pyarrow").__arrow_c_stream__(requested_schema)
