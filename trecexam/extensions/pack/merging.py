"""Several packs as one: all their answers, and which of them contradict each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trecexam.extensions.pack.contents import (
    OUT,
    TRACK,
    Conflict,
    Environment,
    GraderIdentity,
    Pack,
    PackedAnswer,
    PackedAssessment,
    PackedText,
    packed,
    read_pack,
)
from trecexam.files import atomic
from trecexam.tables.result import Tables
from trecexam.tables.table import Table
from trecexam.tables.text import plural


@dataclass
class _Joined:
    """What came together so far; `outdated` where it has more than was packed of out/."""

    answers: dict[tuple[str, str, str], PackedAnswer]
    graders: dict[str, GraderIdentity]
    assessments: dict[str, PackedAssessment]
    environments: dict[str, int]
    conflicts: list[Conflict]
    outdated: bool = False


def merge(paths: Sequence[Path | str], output: Path | str) -> Tables:
    """Writes a pack with the answers of several; its track is that of the first.

    Of two answers of a grader to the same cell the first counts, and the other is kept as a conflict; an
    error gives way to an answer. Where answers are new, the digests of out/ are left out: they are of fewer.

    Returns:
        The conflicts: a row for each answer that does not count.

    Raises:
        TrecexamError: a file is no pack, is damaged or made to do harm, or `output` cannot be written.
    """
    packs = {Path(path): read_pack(Path(path)) for path in paths}
    (first_path, first), *others = packs.items()
    joined = _Joined(
        {each.key: each for each in first.of(PackedAnswer)},
        {each.grader: each for each in first.of(GraderIdentity)},
        {each.name: each for each in first.of(PackedAssessment)},
        {_details(each): each.environment for each in first.of(Environment)},
        list(first.of(Conflict)),
    )
    notes: list[str] = []
    for path, pack in others:
        before = len(joined.answers)
        known = len(joined.conflicts)
        _join(joined, path, pack)
        more, conflicts = len(joined.answers) - before, len(joined.conflicts) - known
        notes.append(f"{path}: {plural(more, 'answer')} more, {plural(conflicts, 'conflict')}")
        notes += _other_inputs(path, pack, first_path, first)
    merged = packed(
        first.about.model_copy(update={"outputs": {}}) if joined.outdated else first.about,
        {name: each for name, each in first.files.items() if not (joined.outdated and name.startswith(OUT))},
        first.of(PackedText),
        (
            Environment(environment=number, details=json.loads(text))
            for text, number in joined.environments.items()
        ),
        (joined.graders[digest] for digest in sorted(joined.graders)),
        joined.assessments.values(),
        (joined.answers[key] for key in sorted(joined.answers)),
        joined.conflicts,
    )
    atomic.replace(Path(output), merged.to_bytes())
    if joined.outdated:
        notes.append(
            "the digests of out/ are left out, which are of fewer answers: `trecexam reproduce` computes it"
        )
    notes.append(f"{output}: {plural(len(joined.answers), 'answer')} of {plural(len(packs), 'pack')}")
    return Tables(
        {"conflicts": _table(joined)},
        tuple(notes),
        rejected=tuple(joined.conflicts),
        about={"pack": str(output)},
    )


def _join(joined: _Joined, path: Path, pack: Pack) -> None:
    """Adds a pack's answers, and graders that could not go on without its assessment."""
    numbers: dict[int | None, int] = {}
    for environment in pack.of(Environment):
        number = max(joined.environments.values(), default=0) + 1
        numbers[environment.environment] = joined.environments.setdefault(_details(environment), number)
    for who in pack.of(GraderIdentity):
        joined.graders.setdefault(who.grader, who)
    for assessment in pack.of(PackedAssessment):
        known = joined.assessments.get(assessment.name)
        if known is not None and known.grader is None and assessment.grader is not None:
            joined.assessments[assessment.name] = assessment
            joined.outdated = True
    for answer in pack.of(PackedAnswer):
        answer = answer.model_copy(update={"environment": numbers.get(answer.environment)})
        first = joined.answers.get(answer.key)
        if first is None or (first.status == "error" and answer.status != "error"):
            joined.answers[answer.key] = answer
            joined.outdated = True
        elif first.said != answer.said and answer.status != "error":
            joined.conflicts.append(Conflict(pack=path.name, answer=answer))
    joined.conflicts += (
        each.model_copy(
            update={
                "answer": each.answer.model_copy(update={"environment": numbers.get(each.answer.environment)})
            }
        )
        for each in pack.of(Conflict)
    )


def _details(environment: Environment) -> str:
    return json.dumps(environment.details, sort_keys=True)


def _other_inputs(path: Path, pack: Pack, first_path: Path, first: Pack) -> list[str]:
    """A line where a pack is of other files than the first."""
    one, other = (each.below(TRACK) for each in (first, pack))
    differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    if not differing:
        return []
    names = ", ".join(differing[:5]) + (" ..." if len(differing) > 5 else "")
    return [f"{path}: {plural(len(differing), 'file')} differ from {first_path}, which counts: {names}"]


def _table(joined: _Joined) -> Table:
    rows: list[tuple[Any, ...]] = []
    for pack, answer in ((each.pack, each.answer) for each in joined.conflicts):
        counts = joined.answers.get(answer.key)
        who = joined.graders[answer.grader].identity.get("grader", "")
        shown = ("", "") if counts is None else (counts.rating, counts.answer)
        rows.append((pack, str(who), answer.passage, answer.item, *shown, answer.rating, answer.answer))
    header = ("pack", "grader", "passage", "item", "rating", "answer", "other_rating", "other_answer")
    return Table(header, tuple(rows))
