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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

import converters
from converters.arrow import column, numbers
from converters.run import Run
from trecexam.errors import TrecexamError
from trecexam.files.atomic import replace
from trecexam.files.stamps import Stamp, stamp

#: Runs of fewer entries are read from their own files in a millisecond.
LEAST = 5_000
#: Ranks of each query that lie apart from the rest, so that no other page of the file is touched for them.
_HEAD = 100
_NONE = np.empty(0)
#: Of the files here; another version's are as good as none.
_FORMAT = 1


class MappedRun(Run):
    """A run whose entries lie in a file: first those of the first ranks of all queries, then all others."""

    _parts: tuple[Any, Any]
    _file: mmap.mmap

    def __init__(
        self,
        name: str,
        query_ids: tuple[str, ...],
        offsets: NDArray[np.int64],
        parts: tuple[Any, Any],
        file: mmap.mmap,
    ) -> None:
        """`parts` are record batches with the columns doc_id and score, which lie in `file`."""
        fields = {"name": name, "query_ids": query_ids, "offsets": offsets, "_parts": parts, "_file": file}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    # Nothing that is read of the file is kept: all of a large track's runs would not fit into memory.
    @property
    def doc_ids(self) -> Any:
        """pyarrow string array of all entries."""
        doc_ids = pa.concat_arrays([part["doc_id"] for part in self._parts]).take(column(self._places()))
        self._let_go()
        return doc_ids

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64, as in the file."""
        scores = np.concatenate([numbers(part["score"]) for part in self._parts])[self._places()]
        self._let_go()
        return scores

    def top(self, depth: int) -> tuple[NDArray[np.int64], Any]:
        """As of any run."""
        if depth > _HEAD:
            return super().top(depth)
        return Run(self.name, self.query_ids, self._bounds[0], self._parts[0]["doc_id"], _NONE).top(depth)

    def ranking(self, query_id: str, depth: int | None = None) -> list[str]:
        """As of any run."""
        place = self._index.get(query_id)
        if place is None:
            return []
        ranking: list[str] = []
        for part, bounds in zip(self._parts, self._bounds, strict=True):
            start, end = bounds[place : place + 2].tolist()
            if depth is None or len(ranking) < depth:
                ranking += part["doc_id"][start:end].to_pylist()
        return ranking[:depth]

    def renamed(self, name: str) -> Run:
        """The same run under another name."""
        return MappedRun(name, self.query_ids, self.offsets, self._parts, self._file)

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each query's entries in the first part, and in the second."""
        counts = np.diff(self.offsets)
        heads = np.minimum(counts, _HEAD)
        return tuple(np.concatenate(([0], np.cumsum(of_part))) for of_part in (heads, counts - heads))  # type: ignore[return-value]

    def _let_go(self) -> None:
        """Has the system take back the memory into which the file was read; what is needed is read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._file.madvise(mmap.MADV_DONTNEED)

    def _places(self) -> NDArray[np.int64]:
        """Where in the two parts each entry lies."""
        places = np.empty(len(self), np.int64)
        places[np.concatenate(_split(self.offsets))] = np.arange(len(self))
        return places


def _split(offsets: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The entries at the first ranks of all queries, and the others."""
    ranks = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.flatnonzero(ranks < _HEAD), np.flatnonzero(ranks >= _HEAD)


class RunColumns:
    """The columns of a track's runs.

    Attributes:
        write: whether columns are made and removed here; who only reads a track leaves its folder as it is.
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
        known = _mapped(columns, path)
        if known is not None:
            return known
        before = stamp(path)
        run: Run = converters.read(path, "run")
        if not self.write or len(run) < LEAST or before != stamp(path):
            return run
        # A full disk, or a folder that may only be read: the run is held in memory.
        with contextlib.suppress(TrecexamError):
            replace(columns, _packed(run, before))
            return _mapped(columns, path) or run
        return run

    def forget(self, but: set[Path]) -> None:
        """Removes the columns of run files other than these."""
        if not self.write:
            return
        kept = set(map(_stem, but))
        for columns in self._folder.glob("*.arrow"):
            if columns.stem not in kept:
                with contextlib.suppress(OSError):
                    columns.unlink()


def _stem(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]


def _packed(run: Run, of_file: Stamp | None) -> bytes:
    about = {
        "format": _FORMAT,
        "stamp": of_file,
        "name": run.name,
        "query_ids": run.query_ids,
        "offsets": run.offsets.tolist(),
    }
    schema = pa.schema({"doc_id": run.doc_ids.type, "score": pa.float64()}, {"trecexam": json.dumps(about)})
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, schema) as writer:
        for places in _split(run.offsets):
            columns = [run.doc_ids.take(column(places)), column(run.scores[places])]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _mapped(columns: Path, path: Path) -> Run | None:
    """The run as it lies there; None where it does not, or not as the file is now."""
    try:
        with columns.open("rb") as opened:
            mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        file = ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
        about = json.loads(file.schema.metadata[b"trecexam"])
        if about["format"] != _FORMAT or tuple(about["stamp"]) != stamp(path):
            return None
        offsets = np.array(about["offsets"], np.int64)
        parts = file.get_batch(0), file.get_batch(1)
        if sum(map(len, parts)) != offsets[-1]:
            return None
        for part in parts:
            # A damaged disk: then the run's own file is read again.
            part.validate(full=True)
        if hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
        return MappedRun(about["name"], tuple(about["query_ids"]), offsets, parts, mapped)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError):
        return None
