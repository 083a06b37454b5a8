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
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
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
#: Of the files here; another version's are as good as none.
_FORMAT = 4


class MappedRun(Run):
    """A run whose entries are in a file: those of the first ranks of all queries, and the rest."""

    _file: mmap.mmap
    _first: Run
    _rest: Callable[[], Run]

    def __init__(
        self, about: Mapping[str, Any], file: mmap.mmap, first: Any, read_rest: Callable[[], Any]
    ) -> None:
        """Args: first: the first ranks, columns doc_id and score. read_rest: gives the rest, once needed."""
        query_ids, offsets = tuple(about["query_ids"]), np.array(about["offsets"], np.int64)
        heads = np.minimum(np.diff(offsets), _HEAD)

        def part(counts: NDArray[np.int64], columns: Any) -> Run:
            bounds = np.concatenate(([0], np.cumsum(counts)))
            return Run(about["name"], query_ids, bounds, columns["doc_id"], numbers(columns["score"]))

        # The fields of a run are frozen.
        self.__dict__.update(
            name=about["name"],
            query_ids=query_ids,
            offsets=offsets,
            metadata=about["metadata"],
            n_reordered_in_32_bits=about["reordered"],
            _file=file,
            _first=part(heads, first),
            _rest=cache(lambda: part(np.diff(offsets) - heads, read_rest())),
        )
        self._let_go()

    # Nothing that is read of the file is kept: all of a large track's runs would not fit into memory.
    @property
    def doc_ids(self) -> Any:
        """pyarrow string array of all entries."""
        parts = [self._first.doc_ids, self._rest().doc_ids]
        doc_ids = pa.concat_arrays(parts).take(column(self._places()))
        self._let_go()
        return doc_ids

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64, as in the file."""
        scores = np.concatenate([self._first.scores, self._rest().scores])[self._places()]
        self._let_go()
        return scores

    def top(self, depth: int) -> tuple[NDArray[np.int64], Any]:
        """Return the first entries as `Run.top` does."""
        return super().top(depth) if depth > _HEAD else self._first.top(depth)

    def ranking(self, query_id: str, depth: int | None = None) -> list[str]:
        """Return the first doc_ids for a query as `Run.ranking` does."""
        ranking = self._first.ranking(query_id, depth)
        if len(ranking) < self.count(query_id) and (depth is None or len(ranking) < depth):
            ranking += self._rest().ranking(query_id)
        return ranking[:depth]

    def renamed(self, name: str) -> Run:
        """Return the same run under another name."""
        run = copy(self)
        run.__dict__["name"] = name
        return run

    def _let_go(self) -> None:
        """Have the system take back the memory into which the file was read; it is read again if needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._file.madvise(mmap.MADV_DONTNEED)

    def _places(self) -> NDArray[np.int64]:
        """Return where in the two parts each entry lies."""
        positions = np.empty(len(self), np.int64)
        positions[np.concatenate(_split(self.offsets))] = np.arange(len(self))
        return positions


def _split(offsets: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the entries at the first ranks of all queries, and the others."""
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

    def open_to_write(self) -> None:
        """Keep the columns of runs from now on."""
        self.write = True

    def read(self, path: Path) -> Run:
        """Read a run file as `converters.read` does."""
        columns = self._folder / f"{_stem(path)}.arrow"
        return self._mapped(columns, path) or self._read(columns, path)

    def _read(self, columns: Path, path: Path) -> Run:
        """Read the run from its own file; where it is large, make its columns."""
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
        """Map the stored columns; None where there are none, or they are damaged or of another run file."""
        try:
            with open_input(columns) as opened:
                file = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        payload = unsealed(columns.name, memoryview(file), _FORMAT)
        if payload is None:
            return None
        first, start, of_file = _opened(payload), _aligned(HEAD + len(payload)), stamp(path)
        about = json.loads(first.schema.metadata[b"trecexam"])
        if of_file is None or about["stamp"] != list(of_file):
            return None

        def rest() -> Any:
            payload = unsealed(f"{columns.name} rest", memoryview(file)[start:], _FORMAT)
            if payload is not None:
                return _opened(payload).get_batch(0)
            run = self._read(columns, path)
            if stamp(path) != of_file:
                raise ConversionError(path, None, "changed while it was read; run the command again")
            return _batches(run)[1]

        return MappedRun(about, file, first.get_batch(0), rest)

    def forget(self, but: set[Path]) -> None:
        """Remove the columns of run files other than these."""
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


def _batches(run: Run) -> list[Any]:
    """Return the entries at the first ranks of all queries, and the others."""
    return [
        pa.record_batch([run.doc_ids.take(column(rows)), column(run.scores[rows])], ["doc_id", "score"])
        for rows in _split(run.offsets)
    ]


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
