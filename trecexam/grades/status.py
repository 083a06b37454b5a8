"""The status of a track: what it holds, and how many of its cells are graded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import GraderError, LackingError, StoreError, TrackError, TrecexamError
from trecexam.files.track_lock import holder
from trecexam.folder import TrackFolder
from trecexam.graders.base import identity_digest
from trecexam.graders.meter import Meter, Usage
from trecexam.graders.writing.asking import AnswerFile
from trecexam.graders.writing.create import generator_settings
from trecexam.grades.diagnostics import left_out_runs, rejected_rows, unread_answers
from trecexam.grades.grading import usage
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.grades.sheets import Counts
from trecexam.inputs.inputs import lost_in_words
from trecexam.inputs.track_graders import each_once, of_grader
from trecexam.results.result import Result
from trecexam.results.table import Table, Value
from trecexam.results.text import plural

#: What a grader that costs used.
USAGE = ("requests", "tokens_in", "tokens_out", "cost")
#: What a row of the table of several graders has.
_COLUMNS = ("kind", "queries", "items", "runs", "cells", "ok", "missing", "requests", "cost")


@dataclass(frozen=True)
class Status(Result):
    """The status of a track, by name: `status["cells"]`.

    Attributes:
        values: counts and names, which are its facts. Of several graders `graders` has them of each, or why
            there is none of it ("unable"), `written` what writing test banks took, and `total` the sums of
            cells, and of what was used.
        rejected: the graders that cannot be shown, without those that wait for a bank or a model.
    """

    values: Mapping[str, Any]
    notes: tuple[str, ...]
    rejected: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`status`: a row for each of the values; of several graders a row for each, and the sum."""
        if "graders" not in self.values:
            return {"status": Table(("name", "value"), tuple(_in_words(self.values)))}
        written = {"test banks": self.values["written"]} if "written" in self.values else {}
        rows = {**self.values["graders"], **written, "sum": self.values["total"]}
        used = [key for key in _COLUMNS if any(row.get(key) is not None for row in rows.values())]
        lines = tuple((name, *(row.get(key) for key in used)) for name, row in rows.items())
        return {"status": Table(("grader", *used), lines)}

    @property
    def facts(self) -> Mapping[str, Any]:
        """The values."""
        return self.values

    def _json_value(self) -> dict[str, Any]:
        """The values and the notes: the table has nothing else."""
        return {**self.values, "notes": [*self.notes]}

    def __getitem__(self, name: str) -> Any:
        return self.values[name] if name in self.values else super().__getitem__(name)


def _grader_status(loader: GraderView, *, bank_needed: bool = True) -> Status:
    """Return what one grader's track holds; if it needs no bank, a note names a missing one."""
    missing: tuple[str, ...] = ()
    try:
        track = loader.load()
    except TrackError as error:
        if bank_needed:
            raise
        # What else is missing is raised here.
        track, missing = loader.load(bank_needed=False), (str(error),)
    rejected = rejected_rows(track)
    judging, n_judgments = track.config.judging, len(track.judgments.ratings)
    values = {
        "track": str(loader.folder.root),
        "grader": track.grader.identity["grader"],
        "grader_identity": identity_digest(track.grader.identity).hex(),
        "watched_by": _watched_by(loader.folder),
        "queries": len(track.bank.query_ids),
        "items": len(track.bank),
        "retired_items": track.bank.n_retired,
        "vital_items": track.bank.n_vital,
        "runs": len(track.runs),
        **({"left_out_runs": track.inputs.left_out_runs} if track.inputs.left_out_runs else {}),
        **asdict(track.counts),
        **(usage(loader) or {"total": {}})["total"],
        **_written(loader.folder),
        "stored_grades": loader.track.store.count(),
        "rated_by": ", ".join(track.override_summary()["who"]) or None,
    }
    if "judging" in track.config.model_fields_set or n_judgments:
        values |= {"rule": judging.rule, "judgments": n_judgments}
    if track.config.track.pool_judged:
        values["judged_only_passages"] = track.n_judged_only
    values |= {"official_judgments": len(track.official or ()), "rejected": len(rejected)}
    if rejected:
        values["lost"] = dict(Counter(row.lost for row in rejected))
    notes = (*missing, *left_out_runs(track), *unread_answers(track), *track.notes)
    return Status(values, notes)


def _watched_by(folder: TrackFolder) -> str | None:
    pid = holder(folder.lock_path)
    return None if pid is None else f"process {pid}"


def track_status(loaders: OpenTrack, names: Sequence[str]) -> Status:
    """Return what a track holds, how far its graders are, and which processes run.

    Of several graders it has each one's, and the sum of their cells and of what they used.
    """
    if len(names) == 1:
        return _grader_status(loaders[names[0]], bank_needed=False)
    graders: dict[str, Mapping[str, Any]] = {}
    notes_by_grader: dict[str, tuple[str, ...]] = {}
    errors: dict[str, TrecexamError | ConversionError] = {}
    for name in names:
        try:
            status = _grader_status(loaders[name])
            of_track = ("track", "watched_by", "written", "stored_grades")
            values = {key: value for key, value in status.values.items() if key not in of_track}
            graders[name] = {"kind": loaders[name].kind.name, **values, "notes": [*status.notes]}
            notes_by_grader[name] = status.notes
        except (TrecexamError, ConversionError) as error:
            graders[name], errors[name] = {"unable": str(error)}, error
    if len(errors) == len(graders) and all(isinstance(error, StoreError) for error in errors.values()):
        raise next(iter(errors.values()))
    written, watched_by = _written(loaders.folder), _watched_by(loaders.folder)
    rows = (*graders.values(), written.get("written", {}))
    sums = (*(field.name for field in fields(Counts)), *USAGE)
    numbers = {key: [row[key] for row in rows if row.get(key) is not None] for key in sums}
    values = {
        "track": str(loaders.folder.root),
        "watched_by": watched_by,
        "stored_grades": loaders.store.count(),
        "graders": graders,
        **written,
        "total": {key: sum(of_each) for key, of_each in numbers.items() if of_each},
    }
    unable = [f"{name}: {error}" for name, error in errors.items()]
    failed = tuple(name for name, error in errors.items() if not isinstance(error, LackingError))
    watched = [f"watched by {watched_by}"] if watched_by else []
    return Status(values, (*watched, *unable, *each_once(notes_by_grader, of_grader)), failed)


def _written(folder: TrackFolder) -> dict[str, Any]:
    """Return what writing test banks took, where it took requests."""
    used, cost = AnswerFile(folder.answers_path).used(), None
    with suppress(GraderError):
        cost = Meter(generator_settings(folder.config)[0]).cost(used)
    price = {} if cost is None else {"cost": cost}
    return {"written": {**used._asdict(), **price}} if used.requests else {}


def _in_words(values: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Yield names and values for people: no empty ones, and counts by kind in words."""
    for name, value in values.items():
        if name == "written":
            yield name, Usage(*(value[key] for key in Usage._fields)).line(value.get("cost"))
        elif name == "rejected":
            yield name, lost_in_words(values.get("lost", {})) or 0
        elif value is not None and name != "lost":
            yield name, value


def status_line(status: Status) -> str:
    """Return a status in a line: runs, queries, graders, and how far each of them is."""
    values = status.values
    graders: Mapping[str, Mapping[str, Any]] = values.get("graders") or {values["grader"]: values}
    largest = max(graders.values(), key=lambda each: each.get("queries", 0))
    line = [f"{plural(largest.get('runs', 0), 'run')}, {plural(largest.get('queries', 0), 'query')}"]
    for name, each in graders.items():
        if "unable" in each:
            line.append(f"{name} cannot grade ({each['unable']})")
        else:
            graded = each["cells"] - each["missing"]
            line.append(f"{name} has graded {graded:,} of {plural(each['cells'], 'cell')}")
    return "; ".join(line)
