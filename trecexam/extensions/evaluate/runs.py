"""Writing of runs from Python to the drop folder."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from itertools import starmap
from numbers import Real
from pathlib import Path
from typing import Any

import converters
from converters.errors import ConversionError
from converters.lines import open_bytes
from converters.run import Run
from converters.trec_run import write_run
from trecexam.errors import TrecexamError
from trecexam.extensions.evaluate.rows import FRAME, ScoreRow, is_path, read_rows, rows_of
from trecexam.files import atomic
from trecexam.folder import TrackFolder, files_in
from trecexam.inputs.dropped_runs import file_label
from trecexam.inputs.typed_text import refuse_controls

#: The forms of `runs` of `evaluate`.
_RUNS = """a dict {"NAME": run}, a folder, a list of files, or rows of all runs with a column 'run'"""


def add_runs(folder: TrackFolder, contents: Mapping[str, bytes], *, replace: bool = False) -> list[Path]:
    """Write run files into the drop folder, all or none, and return their paths.

    Args:
        contents: path in the drop folder -> content.
        replace: replace existing files with these names.

    Raises:
        TrecexamError: a file with this name exists (without `replace`, or with another extension), or a file
            cannot be written.
    """
    files = {folder.runs / name: content for name, content in contents.items()}
    labels = {file_label(name): folder.runs / name for name in contents}
    for other in folder.run_files():
        label = file_label(other.relative_to(folder.runs).as_posix())
        if other not in files and label in labels:
            raise TrecexamError(f"move it away, or use another name than {labels[label].name}", path=other)
        if other in files and not replace and other.read_bytes() != files[other]:
            raise TrecexamError("another run is there already; replace=True replaces it", path=other)
    atomic.make_folder(folder.runs)
    atomic.replace_together(files)
    return [*files]


def run_files(runs: Any) -> dict[str, bytes]:
    """Return the files of runs, by path in the drop folder, from any input of `evaluate`.

    Raises:
        TrecexamError, ConversionError: unsupported input, or an unreadable file.
    """
    if is_path(runs):
        runs = files_in(Path(runs)) if Path(runs).is_dir() else [runs]
    elif isinstance(runs, Iterable) and not hasattr(runs, FRAME) and not isinstance(runs, Mapping):
        runs = list(runs)
    if isinstance(runs, Mapping | list | tuple) and not runs:
        raise TrecexamError(f"runs: there are none; give {_RUNS}")
    if isinstance(runs, list | tuple) and all(map(is_path, runs)):
        paths = [Path(path).absolute() for path in runs]
        folder = Path(os.path.commonpath([path.parent for path in paths]))
        return {path.relative_to(folder).as_posix(): _bytes(path) for path in paths}
    by_name = runs if isinstance(runs, Mapping) else _split(runs)
    first = next(iter(by_name.values()))
    if isinstance(first, Mapping) and all(isinstance(score, Real) for score in first.values()):
        raise TrecexamError('runs: this dict is one run, query_id -> doc_id -> score; give {"NAME": run}')
    return dict(starmap(run_file, by_name.items()))


def run_file(name: str, run: Any) -> tuple[str, bytes]:
    """Return the name and the content of a run's file, from any input of `Track.add_run`.

    Raises:
        TrecexamError: unsupported or unreadable input, or an impossible file name.
    """
    buffer, what = io.BytesIO(), f"run '{name}'"
    if not isinstance(name, str):
        raise TrecexamError(f"the name of a run is not text: {name!r}")
    refuse_controls("the name of a run", name)
    if "/" in name or name.startswith("."):
        raise TrecexamError(f"a run's file cannot be called {name!r}: use a name without / and no . in front")
    try:
        if is_path(run) and converters.sniff(run) == "responses":
            return f"{name}.jsonl", _bytes(Path(run))
        if is_path(run):
            run = converters.read(run, "run")
        elif not isinstance(run, Run):
            rows = read_rows(run, ScoreRow, what)
            run = Run.from_entries(name, ((row.query_id, row.doc_id, row.score) for row in rows))
        write_run(run.renamed(name), buffer)
    except ConversionError as error:
        raise TrecexamError(error.reason, path=error.path, line=error.line) from None
    except ValueError as error:
        raise TrecexamError(f"{what}: {error}") from None
    return f"{name}.run", buffer.getvalue()


def _bytes(path: Path) -> bytes:
    # Opening as text reports errors of the file; compressed files stay compressed.
    with open_bytes(path):
        return path.read_bytes()


def _split(rows: Any) -> dict[Any, list[dict[str, Any]]]:
    """Return the rows of each run."""
    runs: dict[Any, list[dict[str, Any]]] = {}
    for number, row in enumerate(rows_of(rows, "runs"), 1):
        name = next((row[tag] for tag in ("run", "tag", "run_id") if tag in row), None)
        if name is None:
            raise TrecexamError(f"runs: row {number} has no 'run'; give {_RUNS}")
        runs.setdefault(name, []).append(row)
    return runs
