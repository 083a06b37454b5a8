"""How far a track is: what it holds, and what became of its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.files.track_lock import holder
from trecexam.graders.base import identity_digest
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.loader import TrackLoader
from trecexam.line.measures import left_out_runs
from trecexam.line.rejected import rejected_rows
from trecexam.line.sheets import Counts
from trecexam.tables.text import plural

#: What a grader that costs used.
USAGE = ("requests", "tokens_in", "tokens_out", "cost")


def status_of(loader: TrackLoader) -> dict[str, Any]:
    """What one grader has of a track, ready for JSON."""
    track = loader.load()
    pid = holder(loader.folder.lock_path)
    made_on = track.grades.environments()
    rejected = rejected_rows(track)
    return {
        "track": str(loader.folder.root),
        "grader": track.grader.identity["grader"],
        "grader_identity": identity_digest(track.grader.identity).hex(),
        "watched_by": None if pid is None else f"process {pid}",
        "queries": len(track.bank.query_ids),
        "items": len(track.bank),
        "retired_items": track.bank.n_retired,
        "vital_items": track.bank.n_vital,
        "runs": len(track.runs),
        **({"left_out_runs": track.left_out_runs} if track.left_out_runs else {}),
        **asdict(track.counts),
        **(loader.grading.usage() or {"total": {}})["total"],
        "stored_grades": loader.store.count(),
        **({"mixed_environments": made_on.summary()} if made_on.mixed else {}),
        "rated_by": ", ".join(track.override_summary()["who"]) or None,
        **(
            {"rule": track.config.judging.rule, "judgments": len(track.judgments.ratings)}
            if track.config.has_judging
            else {}
        ),
        **({"judged_only_passages": track.n_judged_only} if track.config.track.pool_judged else {}),
        "official_judgments": 0 if track.official is None else len(track.official),
        "rejected": len(rejected),
        **({"lost": dict(Counter(row.lost for row in rejected))} if rejected else {}),
        "notes": [*left_out_runs(track), *track.notes],
    }


def joint_status(loaders: TrackLoaders) -> dict[str, Any]:
    """The same of each of several graders, and the sum of their cells and of what they used."""
    graders: dict[str, Mapping[str, Any]] = {}
    pid = holder(loaders.folder.lock_path)
    for name in loaders:
        try:
            status = status_of(loaders[name])
            of_track = ("track", "watched_by", "stored_grades")
            own = {key: value for key, value in status.items() if key not in of_track}
            graders[name] = {"kind": loaders[name].kind.name, **own}
        except (TrecexamError, ConversionError) as error:
            graders[name] = {"unable": str(error)}
    summed = ("graded", *(field.name for field in fields(Counts)), *USAGE)
    total = {
        key: sum(values)
        for key in summed
        if (values := [each[key] for each in graders.values() if each.get(key) is not None])
    }
    return {
        "track": str(loaders.folder.root),
        "watched_by": None if pid is None else f"process {pid}",
        "stored_grades": loaders.shared.store.count(),
        "graders": graders,
        "total": total,
        "notes": [
            *(f"{name}: {each['unable']}" for name, each in graders.items() if "unable" in each),
            *dict.fromkeys(note for each in graders.values() for note in each.get("notes", ())),
        ],
    }


def status_line(status: Mapping[str, Any]) -> str:
    """A status in a line: runs, queries, graders, and how far each of them is."""
    graders: Mapping[str, Mapping[str, Any]] = status.get("graders") or {status["grader"]: status}
    largest = max(graders.values(), key=lambda each: each.get("queries", 0))
    sizes = f"{plural(largest.get('runs', 0), 'run')}, {plural(largest.get('queries', 0), 'query')}"
    return "; ".join([sizes, *(f"{name} {_how_far(each)}" for name, each in graders.items())])


def _how_far(status: Mapping[str, Any]) -> str:
    if "unable" in status:
        return f"cannot grade ({status['unable']})"
    cells = status["cells"]
    return f"has graded {cells - status['missing']:,} of {plural(cells, 'cell')}"
