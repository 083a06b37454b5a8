"""Exams: responses from a matrix or from a track's runs to its bank, prepared for fitting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.fitting import check
from trecexam.extensions.exams.irt.model import Floats
from trecexam.extensions.exams.questions.words import bloom_words, question_types
from trecexam.extensions.exams.response_matrix import (
    ResponseMatrix,
    read_components,
    read_groups,
    read_matrix,
)
from trecexam.grades.diagnostics import nothing_graded, resolve_min_rating
from trecexam.results.text import CHANGES, Note, plural, shorten_list
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.cover import best_ratings
from trecexam.scores.ratings import QueryRatings

if TYPE_CHECKING:
    from trecexam.bank.model import Bank
    from trecexam.grades.graded_track import GradedTrack


@dataclass(frozen=True, eq=False)
class Exam:
    """Responses to fit; each examinee and each item has at least one response.

    Attributes:
        source: display name of the responses' source.
        values: 1, 0, NaN; shape (n_examinees, n_items).
        texts: item -> text, if known.
        groups: grouping -> group -> the indices of its items.
        queries: item -> query, for a rubric bank.
        notes: left-out data and other notes on the responses, one per line.
    """

    source: str
    examinees: tuple[str, ...]
    items: tuple[str, ...]
    values: Floats
    components: Components | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def from_file(path: Path, components: Path | None = None, groups: Path | None = None) -> Exam:
    """Read an exam from a matrix file or a folder of response files."""
    return usable_responses(str(path), read_matrix(path), components, groups)


def from_track(
    track: GradedTrack,
    components: Path | None = None,
    groups: Path | None = None,
    *,
    min_rating: int | None = None,
) -> Exam:
    """Return a loaded track's runs as examinees, and its items as questions.

    A run has an item right if one of its first passages is rated min_rating or better on the item, as in
    Cover; all items of a skipped query are wrong. If none of these passages has a rating on the item, there
    is no response. Retired items are left out. People's ratings count.

    Args:
        min_rating: replaces the track's setting.
    """
    root = track.folder.root
    threshold = resolve_min_rating(track, min_rating)
    runs = list(track.runs)
    if not runs:
        raise TrecexamError("no runs yet to take the exam: drop some in here", path=track.folder.runs)
    ratings = track.ratings()
    if not any((q.ratings >= 0).any() for q in ratings):
        raise TrecexamError(nothing_graded(track), path=root)
    blocks, names, texts, queries = [], [], {}, {}
    n_unanswered = np.zeros(len(runs), np.int64)
    called = item_names(track.bank)
    for q in ratings:
        gradable = np.array([text is not None for text in track.sheets[q.query_id].texts] + [False])
        ranks = track.pool[q.query_id].ranks[:, : track.config.track.depth]
        ranks = np.where(gradable[ranks], ranks, -1)
        n_unanswered += np.all(ranks < 0, axis=1)
        blocks.append(response_matrix(q, ranks, threshold))
        for item in track.bank.items[q.query_id]:
            name = called[q.query_id, item.item_id]
            names.append(name)
            texts[name], queries[name] = item.text, q.query_id
    matrix = ResponseMatrix(tuple(runs), tuple(names), np.concatenate(blocks, axis=1), texts)
    exam = usable_responses(str(root), matrix, components, groups, queries)
    notes = (*_unanswered(runs, n_unanswered), *exam.notes)
    return replace(exam, notes=notes)


def _unanswered(runs: Sequence[str], n_unanswered: NDArray[np.int64]) -> Iterator[str]:
    """Yield a line on runs with nothing to grade for some queries."""
    some = [
        f"{run} ({plural(number, 'query')})"
        for run, number in zip(runs, n_unanswered.tolist(), strict=True)
        if number
    ]
    if some:
        yield (
            "counted as wrong, because the run has no passage with a text for the query: "
            f"{shorten_list(some, quote='')}"
        )


def item_names(bank: Bank) -> dict[tuple[str, str], str]:
    """Return (query_id, item_id) -> name in the exam: the item's id, with the query's if not unique."""
    keys = [(query_id, item.item_id) for query_id, items in bank.items.items() for item in items]
    unique = len({item_id for _, item_id in keys}) == len(keys)
    return {(query_id, item_id): item_id if unique else f"{query_id}:{item_id}" for query_id, item_id in keys}


def response_matrix(q: QueryRatings, ranks: NDArray[np.int32], min_rating: int) -> NDArray[np.float64]:
    """Return 1 if a run's passages reach an item, 0 if not, NaN if none has a rating.

    A ranking without passages reaches nothing.

    Args:
        ranks: rows of the passages at each rank, shape (n_rankings, depth); -1 if missing.

    Returns:
        Shape (n_rankings, n_items).
    """
    best = best_ratings(Judged.from_ratings([q]).items, ranks)
    is_rated = (best >= 0) | np.all(ranks < 0, axis=1, keepdims=True)
    return np.where(is_rated, (best >= min_rating).astype(np.float64), np.nan)


def usable_responses(
    source: str,
    matrix: ResponseMatrix,
    components: Path | None,
    groups: Path | None,
    queries: Mapping[str, str] | None = None,
) -> Exam:
    """Return the part of a matrix that can be fitted, with its tables."""
    notes = []
    responded = ~np.isnan(matrix.values)
    rows: NDArray[np.bool_] = np.asarray(responded.any(axis=1), np.bool_)
    columns: NDArray[np.bool_] = np.asarray(responded.any(axis=0), np.bool_)
    for has_response, names, what in (
        (rows, matrix.examinees, "examinees"),
        (columns, matrix.items, "questions"),
    ):
        if not has_response.all():
            out = [name for name, keep in zip(names, has_response, strict=True) if not keep]
            notes.append(f"without any response, and left out: {what} {shorten_list(out)}")
    examinees = tuple(name for name, keep in zip(matrix.examinees, rows, strict=True) if keep)
    items = tuple(name for name, keep in zip(matrix.items, columns, strict=True) if keep)
    values = matrix.values[rows][:, columns]
    try:
        check(values)
    except ValueError as error:
        raise TrecexamError(str(error), path=source) from None
    missing = int(np.isnan(values).sum())
    if missing:
        notes.append(f"{missing:,} of {values.size:,} responses are missing and are ignored")
    notes += _remarks(values, examinees, items)
    made_of = _components(components, examinees, notes, source)
    members = _groups(groups, items, notes)
    return Exam(source, examinees, items, values, made_of, matrix.texts, members, queries or {}, tuple(notes))


def _remarks(values: NDArray[np.float64], examinees: Sequence[str], items: Sequence[str]) -> list[str]:
    remarks: list[str] = []
    shares = np.nanmean(values, axis=0)
    for share, who in ((1.0, "everyone"), (0.0, "no one")):
        same = [item for item, value in zip(items, shares.tolist(), strict=True) if value == share]
        if same:
            remarks.append(
                f"no standard error for {plural(len(same), 'question')} that {who} got right, which cannot "
                f"tell examinees apart: {shorten_list(same, 3)}"
            )
    rights = np.nanmean(values, axis=1)
    for share, what in ((1.0, "everything"), (0.0, "nothing")):
        same = [name for name, value in zip(examinees, rights.tolist(), strict=True) if value == share]
        if same:
            names = shorten_list(same, 3)
            line = f"examinees that got {what} right, so that their ability has no finite estimate: {names}"
            remarks.append(Note(line, CHANGES))
    return remarks


def _components(
    path: Path | None, examinees: Sequence[str], notes: list[str], source: str
) -> Components | None:
    if path is None:
        return None
    table = read_components(path)
    lacking = [name for name in examinees if name not in table.rows]
    if lacking:
        raise TrecexamError(
            f"no components of examinee {shorten_list(lacking)}, which {source} has: add a line for each",
            path=path,
        )
    unused_examinees = [name for name in table.rows if name not in set(examinees)]
    if unused_examinees:
        notes.append(
            f"examinees with components but without responses, and left out: {shorten_list(unused_examinees)}"
        )
    return Components.of(table.names, [table.rows[name] for name in examinees])


def _groups(path: Path | None, items: Sequence[str], notes: list[str]) -> dict[str, dict[str, list[int]]]:
    if path is None:
        return {}
    table = read_groups(path)
    if not any(item in table.rows for item in items):
        raise TrecexamError("the exam has none of its items", path=path)
    members: dict[str, dict[str, list[int]]] = {name: {} for name in table.names}
    for item_index, item in enumerate(items):
        for name, value in zip(table.names, table.rows.get(item, ()), strict=False):
            for group in filter(None, (part.strip() for part in value.split("|"))):
                members[name].setdefault(group, []).append(item_index)
    lacking = [item for item in items if item not in table.rows]
    if lacking:
        notes.append(f"questions that are in no group: {shorten_list(lacking)}")
    # Bloom levels from the lowest, for the same order in all plots; other groups in file order.
    level_order = {name.lower(): rank for rank, name in enumerate((*bloom_words(), *question_types()))}
    return {
        name: dict(
            sorted(groups.items(), key=lambda each: level_order.get(each[0].lower(), len(level_order)))
        )
        for name, groups in members.items()
        if groups
    }
