"""Converts between Python, numpy and pyarrow without copying.

pyarrow's own conversions (`pa.array`, `pa.scalar`, `to_numpy`) import pandas where it is installed, whatever
is converted: 0.25 CPU seconds and 30 MiB of every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def strings(texts: Sequence[str]) -> Any:
    """A pyarrow large_string array."""
    import numpy as np
    import pyarrow as pa

    joined = "".join(texts)
    sizes = map(len, texts) if joined.isascii() else (len(text.encode()) for text in texts)
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    data = pa.py_buffer(joined.encode())
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), data)


def column(values: NDArray[Any]) -> Any:
    """A pyarrow array of these numbers, in their memory."""
    import numpy as np
    import pyarrow as pa

    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def numbers(values: Any) -> NDArray[Any]:
    """A pyarrow array as a numpy array, with -1 for missing values."""
    import numpy as np

    if values.null_count:
        values = values.fill_null(column(np.array([-1])).cast(values.type)[0])
    array: NDArray[Any] = np.from_dlpack(values)
    return array
