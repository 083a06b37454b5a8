"""Writes a run from Python to the drop folder."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import converters
from converters.errors import ConversionError
from converters.fields import column
from converters.lines import open_bytes
from converters.rag_responses import read_responses
from converters.run import Run
from converters.trec_run import write_run
from trecexam.errors import TrecexamError
from trecexam.extensions.evaluate.columns import (
    DOC_ID,
    QUERY_ID,
    columns_of,
    ids,
    is_path,
    number_of,
)
from trecexam.files import atomic as files
from trecexam.folder import IGNORED_SUFFIXES, TrackFolder, files_in
from trecexam.inputs.dropped_files import one_run
from trecexam.inputs.dropped_runs import name_runs
from trecexam.inputs.typed_text import refuse_controls

#: The most bytes of a name: a file's may have 255.
_LONGEST = 200
#: The forms of `runs` of `evaluate`.
_RUNS = """a dict {"NAME": run}, a folder, a list of files, or one data frame with a column 'run'"""
_FIELDS = {"query_id": QUERY_ID, "doc_id": DOC_ID, "score": ("score",)}


def add_runs(folder: TrackFolder, runs: Mapping[str, Any], *, replace: bool = False) -> dict[str, Path]:
    """Adds several runs, name -> run, as `Track.add_run`; writes all or none.

    Returns:
        name -> file.

    Raises:
        TrecexamError: as `Track.add_run`.
    """
    files_there = folder.run_files()
    paths, contents = {}, {}
    for name, run in runs.items():
        _check_name(name)
        try:
            content, suffix = _content(name, run)
        except ConversionError as error:
            raise TrecexamError(error.reason, path=error.path, line=error.line) from None
        paths[name] = path = folder.runs / f"{name}{suffix}"
        for other in files_there:
            alike = other.name in (name, f"{name}.gz") or Path(other.name.removesuffix(".gz")).stem == name
            if alike and other != path:
                raise TrecexamError(f"move it away, or use another name for the run than {name}", path=other)
        if path.exists() and not replace and path.read_bytes() != content:
            raise TrecexamError("another run is there already; replace=True replaces it", path=path)
        contents[path] = content
    files.make_folder(folder.runs)
    files.replace_together(contents)
    return paths


def runs_by_name(runs: Any) -> Mapping[str, Any]:
    """Return name -> run from any input of `evaluate`. Files get the names that a track gives them.

    Raises:
        TrecexamError, ConversionError: the input has another shape, or a file cannot be read.
    """
    if isinstance(runs, Mapping) and runs:
        return runs
    if hasattr(runs, "__arrow_c_stream__"):
        return _split(runs)
    paths_given: Sequence[Any] | None = None
    if is_path(runs):
        paths_given = files_in(Path(runs)) if Path(runs).is_dir() else [runs]
    elif isinstance(runs, Iterable):
        paths_given = list(runs)
    if not paths_given or not all(map(is_path, paths_given)):
        kind = "folder" if is_path(runs) else type(runs).__name__
        more = "; collect() it" if hasattr(runs, "collect") else ""
        article = "a" if paths_given is None or paths_given else "an empty"
        raise TrecexamError(f"runs: give {_RUNS}, not {article} {kind}{more}")
    paths = [Path(path).absolute() for path in paths_given]
    found = {path: _tagged(path) for path in paths}
    folder = Path(os.path.commonpath([path.parent for path in paths]))
    names = name_runs({path: tag for path, (tag, _) in found.items()}, folder)
    return {names[path]: run for path, (_, run) in found.items()}


def run_of(name: str, run: Any) -> Run:
    """A run with this name, from any input of `add_run` except responses.

    Raises:
        TrecexamError, ConversionError: it cannot be read.
    """
    what = f"run '{name}'"
    if isinstance(run, Run):
        return run.renamed(name)
    if is_path(run):
        return converters.read(run, "run").renamed(name)  # type: ignore[no-any-return]
    entries = _nested(run, what) if isinstance(run, Mapping) else _rows(run, what)
    try:
        made = Run.from_entries(name, entries)
    except ValueError as error:
        raise TrecexamError(f"{what}: {error}") from None
    if not len(made):
        raise TrecexamError(f"{what}: no rows")
    return made


def _content(name: str, run: Any) -> tuple[bytes, str]:
    """The content of the run's file, and the ending of its name."""
    if is_path(run) and converters.sniff(run) == "responses":
        system = _system(run)
        if system != name:
            raise ConversionError(run, None, f"responses of {system}: add them by that name")
        with open_bytes(Path(run)) as stream:
            return stream.read(), ".jsonl"
    buffer = io.BytesIO()
    try:
        write_run(run_of(name, run), buffer)
    except ConversionError:
        raise
    except ValueError as error:
        raise TrecexamError(f"run '{name}': {error}") from None
    return buffer.getvalue(), ".run"


def _tagged(path: Path) -> tuple[str, Any]:
    """Return the tag of a run file, or the system of its responses, and what to add as the run."""
    if converters.sniff(path) == "responses":
        return _system(path), path
    run = converters.read(path, "run")
    return run.name, run


def _system(path: Path) -> str:
    """Return the one system whose responses a file has.

    Raises:
        ConversionError: the file has responses of several systems, or cannot be read.
    """
    skipped: list[ConversionError] = []
    systems = sorted({response.run for response in read_responses(path, skipped.append)})
    one_run(path, systems)
    return systems[0]


def _split(frame: Any) -> dict[str, list[dict[str, Any]]]:
    """Return name -> rows of a data frame with a column `run`."""
    try:
        columns = columns_of(frame, {"run": ("run", "tag", "run_id"), **_FIELDS}, "runs")
    except TrecexamError as error:
        raise TrecexamError(f"{error.reason}; give {_RUNS}") from None
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ids(columns["run"], "runs")}
    for name, *row in zip(*columns.values(), strict=True):
        rows[str(name)].append(dict(zip(_FIELDS, row, strict=True)))
    return rows


def _nested(run: Mapping[Any, Any], what: str) -> Iterator[tuple[str, str, float]]:
    for query_id, scores in zip(ids(run, what), run.values(), strict=True):
        if not isinstance(scores, Mapping):
            raise TrecexamError(f"{what}: a dict must be query_id -> doc_id -> score; see query '{query_id}'")
        for doc_id, score in zip(ids(scores, what), scores.values(), strict=True):
            yield query_id, doc_id, _score(score, query_id, doc_id, what)


def _rows(run: Any, what: str) -> Iterator[tuple[str, str, float]]:
    columns = columns_of(run, _FIELDS, what)
    rows = zip(ids(columns["query_id"], what), ids(columns["doc_id"], what), columns["score"], strict=True)
    for query_id, doc_id, score in rows:
        yield query_id, doc_id, _score(score, query_id, doc_id, what)


def _score(score: Any, query_id: str, doc_id: str, what: str) -> float:
    return number_of(score, f"{what}: the score of '{doc_id}' for query '{query_id}'")


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TrecexamError(f"the name of a run is not text: {name!r}")
    refuse_controls("the name of a run", name)
    try:
        column(name, "the name of a run")
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    if "/" in name or name.startswith("."):
        raise TrecexamError(f"a run's file cannot be called {name!r}: use a name without / and no . in front")
    for ending in (*IGNORED_SUFFIXES, ".gz"):
        if name.endswith(ending):
            raise TrecexamError(
                f"a run's file cannot be called {name!r}: use a name without the ending {ending}"
            )
    if len(name.encode()) > _LONGEST:
        raise TrecexamError(f"the name of a run has {len(name.encode())} bytes, and may have {_LONGEST}")
