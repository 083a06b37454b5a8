"""Large runs as columns on disk: read once, mapped into memory afterwards, by every process.

A run of millions of lines takes seconds to read and hundreds of megabytes to hold, and of most of it only the
first ranks are looked at. What lies here can be removed at any time; it is made again when it is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

import converters
from converters.arrow import column, numbers
from converters.errors import ConversionError
from converters.lines import open_input
from converters.run import Run
from trecexam.errors import TrecexamError
from trecexam.files.atomic import replace
from trecexam.files.kept import HEAD, sealed, unsealed
from trecexam.files.stamps import Stamp, stamp

#: Runs of fewer entries are read from their own files in a millisecond.
LEAST = 5_000
#: Ranks of each query stored apart from the rest, so no other page of the file is touched for them.
_HEAD = 100
_NONE = np.empty(0)
#: Of the files here; another version's are as good as none.
_FORMAT = 4


class _InFile:
    """The entries of a run in their file: those of the first ranks of all queries, and the rest.

    Both are record batches with the columns doc_id and score. The rest is checked when it is first needed.
    """

    def __init__(self, file: mmap.mmap, first: Any, rest: int, name: str, read: Callable[[], Run]) -> None:
        """Args: rest: where it begins. name: of the file. read: gives the run where the rest is damaged."""
        self.first = first
        self._file, self._start, self._name, self._read = file, rest, name, read

    @cached_property
    def rest(self) -> Any:
        """The entries after the first ranks."""
        payload = unsealed(f"{self._name} rest", memoryview(self._file)[self._start :], _FORMAT)
        return _batches(self._read())[1] if payload is None else _opened(payload).get_batch(0)

    def let_go(self) -> None:
        """Has the system take back the memory into which the file was read; what is needed is read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._file.madvise(mmap.MADV_DONTNEED)


class MappedRun(Run):
    """A run whose entries are in a file."""

    _entries: _InFile

    def __init__(
        self,
        name: str,
        query_ids: tuple[str, ...],
        offsets: NDArray[np.int64],
        metadata: str,
        n_reordered_in_32_bits: int,
        entries: _InFile,
    ) -> None:
        fields: dict[str, Any] = {"name": name, "query_ids": query_ids, "offsets": offsets}
        fields |= {"metadata": metadata, "n_reordered_in_32_bits": n_reordered_in_32_bits}
        fields["_entries"] = entries
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    # Nothing that is read of the file is kept: all of a large track's runs would not fit into memory.
    @property
    def doc_ids(self) -> Any:
        """pyarrow string array of all entries."""
        parts = self._entries.first, self._entries.rest
        doc_ids = pa.concat_arrays([part["doc_id"] for part in parts]).take(column(self._places()))
        self._entries.let_go()
        return doc_ids

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64, as in the file."""
        parts = self._entries.first, self._entries.rest
        scores = np.concatenate([numbers(part["score"]) for part in parts])[self._places()]
        self._entries.let_go()
        return scores

    def top(self, depth: int) -> tuple[NDArray[np.int64], Any]:
        """As of any run."""
        if depth > _HEAD:
            return super().top(depth)
        return Run(self.name, self.query_ids, self._bounds[0], self._entries.first["doc_id"], _NONE).top(
            depth
        )

    def ranking(self, query_id: str, depth: int | None = None) -> list[str]:
        """As of any run."""
        query_index = self._index.get(query_id)
        if query_index is None:
            return []
        (start, end), (more, last) = (
            bounds[query_index : query_index + 2].tolist() for bounds in self._bounds
        )
        ranking: list[str] = self._entries.first["doc_id"][start:end].to_pylist()
        if more < last and (depth is None or len(ranking) < depth):
            ranking += self._entries.rest["doc_id"][more:last].to_pylist()
        return ranking[:depth]

    def renamed(self, name: str) -> Run:
        """The same run under another name."""
        return MappedRun(
            name, self.query_ids, self.offsets, self.metadata, self.n_reordered_in_32_bits, self._entries
        )

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each query's entries in the first part, and in the second."""
        counts = np.diff(self.offsets)
        heads = np.minimum(counts, _HEAD)
        return tuple(np.concatenate(([0], np.cumsum(of_part))) for of_part in (heads, counts - heads))  # type: ignore[return-value]

    def _places(self) -> NDArray[np.int64]:
        """Where in the two parts each entry lies."""
        positions = np.empty(len(self), np.int64)
        positions[np.concatenate(_split(self.offsets))] = np.arange(len(self))
        return positions


def _split(offsets: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The entries at the first ranks of all queries, and the others."""
    ranks = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.flatnonzero(ranks < _HEAD), np.flatnonzero(ranks >= _HEAD)


class RunColumns:
    """The columns of a track's runs.

    Attributes:
        write: whether columns are made and removed here; who only reads a track leaves its folder unchanged.
    """

    def __init__(self, folder: Path, *, write: bool = True) -> None:
        """`folder` is where they lie, a file a run."""
        self._folder = folder
        self.write = write

    def read(self, path: Path) -> Run:
        """A run file's entries, as `converters.read` gives them.

        Raises:
            ConversionError: it is no run.
        """
        columns = self._folder / f"{_stem(path)}.arrow"
        return self._mapped(columns, path) or self._read(columns, path)

    def _read(self, columns: Path, path: Path) -> Run:
        """The run from its own file; where it is large, its columns are made."""
        before = stamp(path)
        run: Run = converters.read(path, "run")
        if not self.write or len(run) < LEAST or before != stamp(path):
            return run
        # A full disk, or a folder that may only be read: the run is held in memory.
        with contextlib.suppress(TrecexamError):
            replace(columns, _packed(run, before, columns.name), into_special=False)
            return self._mapped(columns, path) or run
        return run

    def _mapped(self, columns: Path, path: Path) -> Run | None:
        """The run as it lies there; None where it does not, is damaged, or is not as its file is now."""
        try:
            with open_input(columns) as opened:
                file = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        payload = unsealed(columns.name, memoryview(file), _FORMAT)
        if payload is None:
            return None
        first = _opened(payload)
        about = json.loads(first.schema.metadata[b"trecexam"])
        of_file = stamp(path)
        if of_file is None or about["stamp"] != list(of_file):
            return None

        def read() -> Run:
            run = self._read(columns, path)
            if stamp(path) != of_file:
                raise ConversionError(path, None, "changed while it was read; run the command again")
            return run

        offsets = np.array(about["offsets"], np.int64)
        entries = _InFile(file, first.get_batch(0), _aligned(HEAD + len(payload)), columns.name, read)
        entries.let_go()
        return MappedRun(
            about["name"], tuple(about["query_ids"]), offsets, about["metadata"], about["reordered"], entries
        )

    def forget(self, but: set[Path]) -> None:
        """Removes the columns of run files other than these."""
        if not self.write:
            return
        kept_stems = set(map(_stem, but))
        for columns in self._folder.glob("*.arrow"):
            if columns.stem not in kept_stems:
                with contextlib.suppress(OSError):
                    columns.unlink()


def _stem(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]


def _packed(run: Run, of_file: Stamp | None, name: str) -> bytes:
    about = {
        "stamp": of_file,
        "name": run.name,
        "metadata": run.metadata,
        "reordered": run.n_reordered_in_32_bits,
        "query_ids": run.query_ids,
        "offsets": run.offsets.tolist(),
    }
    first, rest = _batches(run)
    start = sealed(name, _as_file(first, {"trecexam": json.dumps(about)}), _FORMAT)
    return start.ljust(_aligned(len(start)), b"\0") + sealed(f"{name} rest", _as_file(rest, {}), _FORMAT)


def _batches(run: Run) -> tuple[Any, Any]:
    """The entries at the first ranks of all queries, and the others."""
    first, rest = (
        pa.record_batch([run.doc_ids.take(column(rows)), column(run.scores[rows])], ["doc_id", "score"])
        for rows in _split(run.offsets)
    )
    return first, rest


def _as_file(batch: Any, metadata: dict[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, batch.schema.with_metadata(metadata)) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _opened(content: memoryview) -> Any:
    return ipc.open_file(pa.BufferReader(pa.py_buffer(content)))


def _aligned(length: int) -> int:
    return -(-length // HEAD) * HEAD
