"""A track made from the framework's inputs in the cache folder; each cell is graded once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trecexam.config import CONFIG_NAME, load_config
from trecexam.errors import ConfigError, TrecexamError
from trecexam.extensions.autojudge.settings import Endpoint, as_toml, track_settings
from trecexam.files.atomic import make_folder, replace_all
from trecexam.folder import TrackFolder
from trecexam.grades import grading
from trecexam.grades.diagnostics import grades_notes
from trecexam.grades.evaluation import values_of_runs
from trecexam.grades.graded_track import LoadedTrack
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.missing_banks import lacks_bank
from trecexam.outputs.update import update
from trecexam.results.text import plural, shorten_list
from trecexam.scores.columns.measures.cover import NUGGET_SCORES

#: Components of support's F1, given as measures, too.
_BESIDE = {"SupportF1": ("SupportP", "SupportR")}


@dataclass(frozen=True)
class Judged:
    """Values of runs on each topic.

    Attributes:
        measures: names in the form "GRADER:MEASURE".
        values: (run, topic) -> the measures' values, in their order. Only topics with a response of the run.
        notes: notes on how to read the values.
    """

    measures: tuple[str, ...]
    values: Mapping[tuple[str, str], tuple[float, ...]]
    notes: tuple[str, ...]


def place_of(cache_dir: Path, topics: Sequence[Mapping[str, Any]]) -> Path:
    """Return the folder of the track with these topics; it holds all runs and all graders' answers."""
    digest = hashlib.sha256(json.dumps(topics, sort_keys=True).encode()).hexdigest()
    return cache_dir / "trecexam" / digest[:16]


def lay_out(
    root: Path,
    topics: Sequence[Mapping[str, Any]],
    responses: Mapping[str, Sequence[Mapping[str, Any]]] | None,
    settings: Mapping[str, Any],
    endpoint: Endpoint,
) -> None:
    """Write the track's files that changed, and remove runs that no longer exist.

    Args:
        responses: run -> its responses; None: those that are there stay.
        settings, endpoint: as in `track_settings`.

    Raises:
        ConfigError: a setting is none of trecexam.toml, or has a wrong value.
        TrecexamError: a topic id has white space, which no leaderboard and no qrels can hold.
    """
    blank = [str(row["request_id"]) for row in topics if len(str(row["request_id"]).split()) != 1]
    if blank:
        raise TrecexamError(
            f"topic ids with white space, which leaderboards and qrels cannot hold: {shorten_list(blank)}; "
            "rename them in the topics and in the runs"
        )
    make_folder(root / "runs")
    toml = as_toml(track_settings(settings, endpoint)).encode()
    runs = {f"runs/{_file_name(run)}": _lines(rows) for run, rows in (responses or {}).items()}
    contents = {CONFIG_NAME: toml, "queries.jsonl": _lines(topics), **runs}
    replace_all(root, contents, () if responses is None else ("runs/*",))
    try:
        load_config(root / CONFIG_NAME)
    except ConfigError as error:
        raise ConfigError(f"in the settings of the workflow: {error.reason}") from None


def _file_name(run: str) -> str:
    """Return a unique file name for a run: not hidden, and short enough for every file system."""
    digest = hashlib.sha256(run.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"run-{quote(run, safe=' ', errors='replace')[:80]}-{digest}.jsonl"


@contextmanager
def graded(root: Path, endpoint: Endpoint, say: Callable[[str], None]) -> Iterator[LoadedTrack]:
    """Load the track after grading all missing cells.

    Args:
        say: called with each note.

    Raises:
        TrecexamError: an answer is missing: a server gave none, or no model may be called. Answers so far are
            stored, and the next call continues from there.
    """
    folder = TrackFolder.open(root)
    with OpenTrack(folder) as loaders:
        if endpoint.is_off:
            _refuse_to_ask(loaders)
        done = update(loaders)
        if not done.complete:
            raise TrecexamError(f"grading is incomplete: {done.why}; answers so far are stored: run it again")
        track = loaders.load()
        unread = [
            f"{name}: {line}" for name, each in track.graded_tracks.items() for line in grades_notes(each)
        ]
        for note in dict.fromkeys((*done.cautions, *done.notes, *unread)):
            say(note)
        yield track


def judged(track: LoadedTrack, responses: Mapping[str, Sequence[str]]) -> Judged:
    """Return the values of all graders' columns and their strict variants on each topic.

    Args:
        responses: run -> topics with a response.
    """
    measures: list[str] = []
    of_pairs: dict[tuple[str, str], list[float]] = {
        (run, topic): [] for run, topics in responses.items() for topic in topics
    }
    notes = []
    for name, each in track.graded_tracks.items():
        names = _with_strict(each.columns)
        values = values_of_runs(each, names)
        runs, queries = tuple(values.runs), tuple(values.query_ids)
        pair_index = {pair: at for at, pair in enumerate((r, q) for r in runs for q in queries)}
        columns = [values.matrix(measure, runs, queries).ravel() for measure in values.measures]
        measures += [f"{name}:{measure}" for measure in names]
        without = sorted({topic for run, topic in of_pairs if (run, topic) not in pair_index})
        if without:
            notes.append(f"{name} has no scores for these topics, which count as 0: {shorten_list(without)}")
        for pair, pair_values in of_pairs.items():
            pair_values += [
                float(column[pair_index[pair]]) if pair in pair_index else 0.0 for column in columns
            ]
    notes += [str(error) for error in track.unable.values()]
    return Judged(
        tuple(measures), {pair: tuple(pair_values) for pair, pair_values in of_pairs.items()}, tuple(notes)
    )


def _with_strict(columns: Sequence[str]) -> list[str]:
    """Return a grader's columns, each followed by its strict variant."""
    measures: list[str] = []
    for column in columns:
        name, at, cutoff = column.partition("@")
        strict = f"strict_{name}"
        beside = _BESIDE.get(name, (strict,) if strict in NUGGET_SCORES else ())
        measures += [column, *(f"{other}{at}{cutoff}" for other in beside)]
    return list(dict.fromkeys(measures))


def _refuse_to_ask(loaders: OpenTrack) -> None:
    """Raise a TrecexamError if an answer is missing."""
    why = (
        "and no model may be called (OPENAI_BASE_URL is EMPTY): run it with a model first, with the same "
        "CACHE_DIR"
    )
    for name in loaders:
        if lacks_bank(loaders[name].folder, loaders.files) and loaders[name].folder.config.has_writer:
            raise TrecexamError(f"{name}: its test bank is not written yet, {why}")
    for name, each in loaders.load().graded_tracks.items():
        estimate = grading.estimate(loaders[name], each)
        if estimate.cells and estimate.tokens_in is not None:
            raise TrecexamError(f"{name}: no answer is stored for {plural(estimate.cells, 'cell')}, {why}")


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(errors="surrogatepass")
