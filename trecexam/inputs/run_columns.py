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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

import converters
from converters.arrow import column, numbers
from converters.lines import open_input
from converters.run import Run
from trecexam.errors import TrecexamError
from trecexam.files.atomic import replace
from trecexam.files.kept import sealed, unsealed
from trecexam.files.stamps import Stamp, stamp

#: Runs of fewer entries are read from their own files in a millisecond.
LEAST = 5_000
#: Of the files here; another version's are as good as none.
_FORMAT = 5


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
        """Read a run file as `converters.read` does; where it is large, from its columns, or make these."""
        columns, before = self._folder / f"{_stem(path)}.arrow", stamp(path)
        mapped = _mapped(columns, before)
        if mapped is not None:
            return mapped
        run: Run = converters.read(path, "run")
        if self.write and len(run) >= LEAST and before == stamp(path):
            # A full disk, or a folder that may only be read: the run is held in memory.
            with contextlib.suppress(TrecexamError):
                replace(columns, _packed(run, before, columns.name), into_special=False)
                return _mapped(columns, before) or run
        return run

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


def _mapped(columns: Path, of_file: Stamp | None) -> Run | None:
    """Map the stored columns; None where there are none, or they are damaged or of another run file."""
    try:
        with open_input(columns) as opened:
            file = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    payload = unsealed(columns.name, memoryview(file), _FORMAT)
    if payload is None:
        return None
    # What was read for its digest need not stay in memory: all of a large track's runs would not fit.
    if hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)
    entries: Any = ipc.open_file(pa.BufferReader(pa.py_buffer(payload)))
    about = json.loads(entries.schema.metadata[b"trecexam"])
    if of_file is None or about["stamp"] != list(of_file):
        return None
    batch = entries.get_batch(0)
    return Run(
        about["name"],
        tuple(about["query_ids"]),
        np.array(about["offsets"], np.int64),
        batch["doc_id"],
        numbers(batch["score"]),
        about["metadata"],
        about["reordered"],
    )


def _packed(run: Run, of_file: Stamp | None, name: str) -> bytes:
    about = {
        "stamp": of_file,
        "name": run.name,
        "metadata": run.metadata,
        "reordered": run.n_reordered_in_32_bits,
        "query_ids": run.query_ids,
        "offsets": run.offsets.tolist(),
    }
    batch = pa.record_batch([run.doc_ids, column(run.scores)], ["doc_id", "score"])
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, batch.schema.with_metadata({"trecexam": json.dumps(about)})) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return sealed(name, content, _FORMAT)
