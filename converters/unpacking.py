"""Unpacks files by their content: gzip, bzip2, xz and zstd; a parquet table gives a JSON object a row."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

#: First bytes -> what the file is.
_STARTS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PAR1": "parquet",
}
ENDINGS = (".gz", ".bz2", ".xz", ".zst")


class UnpackingError(Exception):
    """Packed data that is damaged or ends early."""


class _Unpacked(io.RawIOBase):
    """A stream that gives all data before it reports the end of a truncated file.

    A buffered reader fills whole buffers: lines that are there would be lost with the last one.
    """

    def __init__(self, kind: str, read: Callable[[int], bytes]) -> None:
        self._kind, self._read = kind, read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._read(len(buffer))
        except EOFError:
            raise self._error("ends early: the copy is incomplete") from None
        except (
            OSError,
            ValueError,
            RuntimeError,
            LookupError,
            TypeError,
            zlib.error,
            lzma.LZMAError,
        ) as error:
            # pyarrow's errors are of all these kinds.
            # Errors of the disk have a number.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise self._error(f"is damaged ({error})") from None
        buffer[: len(data)] = data
        return len(data)

    def _error(self, what: str) -> UnpackingError:
        return UnpackingError(f"the {self._kind} data {what}; copy it again")


def packed_as(start: bytes) -> str:
    """Return what a file with these first bytes is packed as, or ""."""
    return next((kind for magic, kind in _STARTS.items() if start.startswith(magic)), "")


def unpacked(raw: io.BufferedReader) -> io.BufferedReader:
    """Return the stream itself, or one of what is packed in it."""
    kind = packed_as(raw.peek(8)[:8])
    if not kind:
        return raw
    return io.BufferedReader(_Unpacked(kind, _reader(kind, raw)), 1 << 20)


def _reader(kind: str, raw: io.BufferedReader) -> Callable[[int], bytes]:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw).read1
    if kind == "bzip2":
        return bz2.BZ2File(raw).read1
    if kind == "xz":
        return lzma.LZMAFile(raw).read1
    rows = _zstd(raw) if kind == "zstd" else _rows(raw)
    rest = bytearray()

    def read(size: int) -> bytes:
        while not rest and (more := next(rows, b"")):
            rest.extend(more)
        data = bytes(rest[:size])
        del rest[:size]
        return data

    return read


def _zstd(raw: io.BufferedReader) -> Iterator[bytes]:
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    while data := stream.read(1 << 20):
        yield data


def _rows(raw: io.BufferedReader) -> Iterator[bytes]:
    """Yield the rows of a parquet table as lines of JSON."""
    import orjson
    from pyarrow import parquet

    for batch in parquet.ParquetFile(raw).iter_batches(batch_size=1_000):
        yield b"".join(orjson.dumps(row, default=_as_text) + b"\n" for row in batch.to_pylist())


def _as_text(value: Any) -> str:
    """Return a value that JSON does not have as text; columns of bytes are UTF-8."""
    return value.decode() if isinstance(value, bytes) else str(value)


def without_ending(name: str) -> str:
    """Return a file's name without the ending of a compression."""
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def file_label(name: str) -> str:
    """Return a file's name, or its path, without the extension and the ending of a compression."""
    name = without_ending(name)
    return name.rsplit(".", 1)[0] if "." in Path(name).name else name


@contextmanager
def open_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed as its ending says; gzip without time and name."""
    with ExitStack() as stack:
        file: Any = stack.enter_context(path.open("wb"))
        if path.suffix == ".gz":
            file = stack.enter_context(gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0))
        elif path.suffix == ".bz2":
            file = stack.enter_context(bz2.BZ2File(file, "wb"))
        elif path.suffix == ".xz":
            file = stack.enter_context(lzma.LZMAFile(file, "wb"))
        elif path.suffix == ".zst":
            import pyarrow as pa

            file = stack.enter_context(pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd"))
        yield file
