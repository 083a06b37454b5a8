"""Merges packs: all their answers, and conflicts between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trecexam.extensions.pack.contents import OUT, TRACK, Conflict, Pack, PackedAnswer, read_pack
from trecexam.files import atomic
from trecexam.tables.result import Tables
from trecexam.tables.table import Table
from trecexam.tables.text import plural

_HEADER = ("pack", "grader", "passage", "item", "rating", "answer", "other_rating", "other_answer")


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
    first = merged = next(iter(packs.values()))
    notes: list[str] = []
    for path, pack in list(packs.items())[1:]:
        before, merged = merged, _joined(merged, pack, path.name)
        more = len(merged.answers) - len(before.answers)
        conflicts = len(merged.conflicts) - len(before.conflicts)
        conflicting = plural(conflicts, "conflict") if conflicts else "no conflicts"
        notes += (
            f"{path}: {plural(more, 'answer')} more, {conflicting}",
            *_other(path, pack, first),
        )
    if (merged.answers, merged.assessments) != (first.answers, first.assessments):
        files = {name: content for name, content in first.files.items() if not name.startswith(OUT)}
        merged = replace(merged, about=first.about.model_copy(update={"outputs": {}}), files=files)
        notes.append(
            "out/ is left out, because it was computed from fewer answers: compute it with "
            "`trecexam reproduce`"
        )
    atomic.replace(Path(output), merged.to_bytes())
    notes.append(f"{output}: {plural(len(merged.answers), 'answer')} of {plural(len(packs), 'pack')}")
    return Tables(
        {"conflicts": Table(_HEADER, tuple(_rows(merged)))}, tuple(notes), rejected=tuple(merged.conflicts)
    )


def _joined(first: Pack, other: Pack, name: str) -> Pack:
    """The first pack with another's answers, and with assessments that the first lacks."""
    sources = {each.by: each for each in (*first.graders, *other.graders)}

    def cell(answer: PackedAnswer) -> tuple[str, str, str]:
        return sources[answer.by].grader, answer.passage, answer.item

    answers = {cell(each): each for each in first.answers}
    conflicts = dict.fromkeys((*first.conflicts, *other.conflicts))
    for answer in other.answers:
        first_answer = answers.setdefault(cell(answer), answer)
        if first_answer.status == "error":
            answers[cell(answer)] = answer
        elif first_answer.said != answer.said and answer.status != "error":
            conflicts[Conflict(**answer.model_dump(), pack=name)] = None
    able = {each.name: each for each in other.assessments if each.grader is not None}
    return replace(
        first,
        graders=tuple(sources[by] for by in sorted(sources)),
        answers=tuple(sorted(answers.values(), key=lambda each: (each.by, each.passage, each.item))),
        assessments=tuple(
            able.get(each.name, each) if each.grader is None else each for each in first.assessments
        ),
        conflicts=tuple(conflicts),
    )


def _other(path: Path, pack: Pack, first: Pack) -> Iterator[str]:
    """A note if a pack's files differ from the first pack's."""
    mine, other = first.below(TRACK), pack.below(TRACK)
    names = sorted(name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name))
    if names:
        yield f"{path}: these files differ, and the first pack's are used: {', '.join(names)}"


def _rows(merged: Pack) -> Iterator[tuple[str | int | None, ...]]:
    graders = {each.by: each.grader for each in merged.graders}
    answers = {(graders[each.by], each.passage, each.item): each for each in merged.answers}
    for other in merged.conflicts:
        cell = graders[other.by], other.passage, other.item
        counts = answers[cell]
        yield other.pack, *cell, counts.rating, counts.answer, other.rating, other.answer
