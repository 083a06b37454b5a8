"""Views to check grades: cells, the grid, missed passages, doubtful items."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from converters.records import Item
from trecexam.errors import TrecexamError, did_you_mean, quoted
from trecexam.features.verification.arithmetic import (
    Missed,
    Order,
    RelevantPassages,
    item_reaches,
    relevant_passages,
    worst_first,
)
from trecexam.grades.diagnostics import nothing_graded, resolve_min_rating
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_judgments, relevance_thresholds
from trecexam.grades.sheets import NOT_ASKED
from trecexam.inputs.official import no_overlap
from trecexam.inputs.overrides import QueryOverrides
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import plural, shorten_list
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings

Ids = Collection[str]
#: Mark in the displayed grid behind a rating or label by people.
BY_A_PERSON = "*"
#: Outcomes of a cell; cells without a rating come in this order, those with an answer first.
_STATUSES = ("ok", "unparsed", "refused", "error", "missing", "no_text")
_ITEM = ("query_id", "query", "item_index", "item_id", "item", "kind", "gold_answers")
_COUNTS = (
    "relevant", "relevant_reached", "relevant_only", "nonrelevant", "nonrelevant_reached", "nonrelevant_only",
    "precision", "phi", "discrimination"
)  # fmt: skip


@dataclass(frozen=True)
class View(Tables):
    """A view of grades behind scores. `people` are the displayed tables; () for the first."""

    people: tuple[Table, ...] = ()

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the displayed tables."""
        return self.people or (self.table,)


class GradedCell(NamedTuple):
    """A passage's grade on an item: a row of `verify grading`.

    Attributes:
        item_index: the item's place in the bank, from 1.
        item: text of the item.
        rating: the rating that counts in the scores, 0..5, or None.
        source: source of `rating`: "model", "human" or "".
        machine: the grader's own rating, or None.
        status: outcome of the grader's answer: "ok", "unparsed", "refused" or "error"; "missing" without an
            answer, "no_text" without a text to grade.
        probability: probability of `machine`, or None.
        judgment: official judgment, or None.
        answer: the grader's raw answer.
        text: text of the passage, or None.
    """

    query_id: str
    item_index: int
    item_id: str
    item: str
    doc_id: str
    rating: int | None
    source: str
    machine: int | None
    status: str
    probability: float | None
    judgment: int | None
    answer: str
    text: str | None


def grading(
    track: GradedTrack,
    *,
    query_ids: Ids = (),
    item_ids: Ids = (),
    doc_ids: Ids = (),
    top: int | None = None,
) -> View:
    """Return every cell with its answer and official judgment, item by item, best rating first."""
    graded_cells: list[GradedCell] = []
    of_items: list[tuple[Value, ...]] = []
    for q in _chosen_queries(track, query_ids, item_ids, doc_ids):
        answers = {(row["item_id"], row["doc_id"]): row for row in track.grade_rows((q.query_id,))}
        for column, item in _items(track, q, item_ids):
            item_cells = _cells(track, q, column, item, answers)
            cells = [cell for cell in item_cells if not doc_ids or cell.doc_id in doc_ids]
            cells.sort(
                key=lambda cell: (
                    -(MISSING if cell.rating is None else cell.rating),
                    _STATUSES.index(cell.status),
                    cell.doc_id,
                )
            )
            if cells:
                graded_cells += cells[:top]
                of_items.append((*_item(track, column, item), _given(cells)))
    table, items = Table(GradedCell._fields, tuple(graded_cells)), Table((*_ITEM, "ratings"), tuple(of_items))
    tables, people = {"grading": table, "items": items}, tuple(_item_by_item(table, items))
    return View(tables, _unused_note(track), people=people)


def grid(
    track: GradedTrack,
    *,
    query_ids: Ids = (),
    item_ids: Ids = (),
    doc_ids: Ids = (),
    min_rating: int | None = None,
    top: int | None = None,
) -> View:
    """Return the ratings of passages x items for each query, with official judgments and labels."""
    if track.asked.citing is not None:
        raise TrecexamError(
            f"the grader {track.name} grades each sentence only with the passages that it cites, so it has "
            f"no grid: see its cells with `trecexam verify grading`",
            path=track.folder.config_path,
        )
    scores, threshold = track.config.scores, resolve_min_rating(track, min_rating)
    rows: list[tuple[list[int], tuple[Value, ...], list[int]]] = []
    of_items: list[tuple[Value, ...]] = []
    for q in _chosen_queries(track, query_ids, item_ids, doc_ids):
        judged, label = _judged(track, q.query_id), labels(q, scores.label, threshold, scores.min_answers)
        in_grid = [
            (doc_id, judged.get(doc_id), label.get(doc_id), ratings)
            for doc_id, ratings in zip(q.doc_ids, q.ratings.tolist(), strict=True)
            if not doc_ids or doc_id in doc_ids
        ]
        in_grid.sort(
            key=lambda row: (
                *(row[1] is None, -(row[1] or 0), row[2] is None, -(row[2] or 0)),
                *(-sum(max(rating, 0) for rating in row[3]), row[0]),
            )
        )
        items = _items(track, q, item_ids) if in_grid else []
        columns_asked = [column for column, _ in items]
        for doc_id, judgment, doc_label, ratings in in_grid[:top]:
            reached = sum(ratings[column] >= threshold for column in columns_asked)
            human = _by_people(track, q.query_id, doc_id)
            rows.append((columns_asked, (q.query_id, doc_id, judgment, doc_label, reached, human), ratings))
        for column, item in items:
            reached = sum(ratings[column] >= threshold for *_, ratings in in_grid)
            of_items.append((*_item(track, column, item), reached))
    columns = sorted({column for columns_asked, *_ in rows for column in columns_asked})
    names = "query_id", "doc_id", "judgment", "label", "reached", "human"
    cells = (
        (*row, *(None if p not in columns_asked or ratings[p] == MISSING else ratings[p] for p in columns))
        for columns_asked, row, ratings in rows
    )
    table = Table((*names, *(f"item.{column + 1}" for column in columns)), tuple(cells))
    items_table = Table((*_ITEM, "reached"), tuple(of_items))
    tables, people = {"grid": table, "items": items_table}, _query_by_query(table, items_table, threshold)
    return View(tables, _unused_note(track), about={"min_rating": threshold}, people=tuple(people))


def missing(
    track: GradedTrack,
    *,
    query_ids: Ids = (),
    min_rating: int | None = None,
    min_relevant: int | None = None,
    per_query: bool = False,
    top: int | None = None,
) -> View:
    """Return relevant passages that reach no item, and counts of relevant passages by query."""
    judged, rating, relevant, unjudged = _judged_queries(track, query_ids, (), min_rating, min_relevant)
    counts: list[RelevantPassages] = []
    rows: list[tuple[Value, ...]] = []
    for q, judgments in judged:
        without_text = track.sheets[q.query_id].without_text
        of_query, missed = relevant_passages(q, judgments, without_text, rating, relevant)
        counts.append(of_query)
        rows += [(q.query_id, *each, track.texts.get(each.doc_id)) for each in missed[:top]]
    table = Table(
        ("query_id", *Missed._fields, "text"),
        tuple(rows),
        layout=Layout(("query_id", "doc_id"), ("judgment", "best_rating", "best_items", "text")),
    )
    queries = Table(RelevantPassages._fields, tuple(counts))
    n_missed = sum(of_query.missed for of_query in counts)
    n_rated = n_missed + sum(of_query.reached for of_query in counts)
    share = f" ({n_missed / n_rated:.0%})" if n_rated else ""
    note = (
        f"missed: {n_missed:,} of {n_rated:,}{share} relevant passages (judgment {relevant} or better) that "
        f"have ratings are rated {rating} or better on no item"
    )
    tables = {"queries": queries, "missing": table} if per_query else {"missing": table, "queries": queries}
    people = (queries,) if per_query or not rows else (table, queries)
    return _judged_view(tables, note, rating, relevant, unjudged, people, missed=n_missed)


def spurious(
    track: GradedTrack,
    discriminations_of: Callable[[GradedTrack, int], Mapping[tuple[str, str], float]],
    *,
    query_ids: Ids = (),
    item_ids: Ids = (),
    min_rating: int | None = None,
    min_relevant: int | None = None,
    order: Order = "phi",
    top: int | None = None,
) -> View:
    """Return how well each item tells relevant from non-relevant passages, the worst first.

    Args:
        discriminations_of: returns (query_id, item_id) -> discrimination at a min_rating.
    """
    judged, rating, relevant, unjudged = _judged_queries(track, query_ids, item_ids, min_rating, min_relevant)
    discriminations = discriminations_of(track, rating)
    reaches = [
        replace(reach, discrimination=discriminations.get((q.query_id, reach.item.item_id), math.nan))
        for q, judgments in judged
        for reach in item_reaches(q, track.bank.items[q.query_id], judgments, rating, relevant)
        if not item_ids or reach.item.item_id in item_ids
    ]
    table = Table(
        ("query_id", "item_index", "item_id", *_COUNTS, "note", "item"),
        tuple(
            (
                *(reach.query_id, reach.index, reach.item.item_id),
                *(getattr(reach, name) for name in _COUNTS),
                *(reach.note, reach.item.text),
            )
            for reach in worst_first(reaches, order)[:top]
        ),
        layout=Layout(
            ("item_id",),
            ("phi", "item", "precision", "nonrelevant_reached", "relevant_reached", "note"),
            without=("query_id", "item_index", *(["discrimination"] if not discriminations else [])),
            short={"nonrelevant_reached": "by non-relevant", "relevant_reached": "by relevant"},
        ),
    )
    note = (
        f"relevant: judgment {relevant} or better; reached: rating {rating} or better; only: by passages "
        "that reach no other item; phi: correlation of reaching the item and being relevant"
        + ("; discrimination: between runs, by item response theory" if discriminations else "")
    )
    return _judged_view({"spurious": table}, note, rating, relevant, unjudged, n_items=len(reaches))


def _judged_queries(
    track: GradedTrack, query_ids: Ids, item_ids: Ids, min_rating: int | None, min_relevant: int | None
) -> tuple[list[tuple[QueryRatings, Mapping[str, int]]], int, int, list[str]]:
    """Return ratings and judgments of the selected queries, min_rating, min_relevant, unjudged queries."""
    resolve_min_rating(track, min_rating)
    at = relevance_thresholds(track, min_rating, min_relevant)
    official = official_judgments(track)
    chosen = _chosen_queries(track, query_ids, item_ids)
    judged = [(q, official.judged[q.query_id]) for q in chosen if q.query_id in official.judged]
    reason = no_overlap(official, _pooled(track), track.config.track.unit)
    if reason is None and not judged:
        id_list = shorten_list([q.query_id for q in chosen], 3)
        reason = f"{official.source}: no official judgments of {id_list}"
    if reason is not None:
        raise TrecexamError(reason)
    without = [q.query_id for q in chosen if q.query_id not in official.judged]
    return judged, at.min_rating, at.min_relevant, without


def _judged_view(
    tables: Mapping[str, Table],
    note: str,
    rating: int,
    relevant: int,
    unjudged: Sequence[str],
    people: tuple[Table, ...] = (),
    **about: int,
) -> View:
    """Return a view of judged queries, with a note on unjudged queries."""
    notes = [note]
    if unjudged:
        names = f"{plural(len(unjudged), 'query')} ({shorten_list(unjudged, 3)})"
        notes.append(f"left out because they have no official judgments: {names}")
    facts = {"min_rating": rating, "min_relevant": relevant, "unjudged_queries": unjudged, **about}
    return View(tables, tuple(notes), about=facts, people=people)


def _chosen_queries(
    track: GradedTrack, query_ids: Ids = (), item_ids: Ids = (), doc_ids: Ids = ()
) -> Sequence[QueryRatings]:
    """Return the ratings of the requested queries that have the requested items."""
    bank, counts = track.bank, track.counts
    _refuse_unknown(query_ids, bank.query_ids, "query", "in the bank", track)
    chosen = [query_id for query_id in bank.query_ids if not query_ids or query_id in query_ids]
    items = {query_id: {item.item_id for item in bank.items[query_id]} for query_id in chosen}
    _refuse_unknown(item_ids, list(chain.from_iterable(items.values())), "item", "in the bank", track)
    ratings = track.ratings()
    if counts.cells == counts.missing + counts.no_text_cells and not any(q.rated.any() for q in ratings):
        watch = f"`trecexam watch {quoted(track.folder.root)} --once` grades"
        no_runs = f"nothing is graded yet: drop runs into {track.folder.runs}, then {watch}"
        raise TrecexamError(nothing_graded(track) if track.runs else no_runs, path=track.folder.root)
    queries = [q for q in ratings if q.query_id in items]
    if item_ids:
        queries = [q for q in queries if not items[q.query_id].isdisjoint(item_ids)]
    _refuse_unknown(doc_ids, {d for q in queries for d in q.doc_ids}, "passage", "in the pool", track)
    return queries


def _refuse_unknown(ids: Ids, known_ids: Collection[str], what: str, where: str, track: GradedTrack) -> None:
    for unknown in ids:
        if unknown not in known_ids:
            hint = did_you_mean(unknown, known_ids, before="; ")
            raise TrecexamError(f"no {what} '{unknown}' {where}{hint}", path=track.folder.root)


def _pooled(track: GradedTrack) -> Mapping[str, Sequence[str]]:
    return {q.query_id: q.doc_ids for q in track.ratings()}


def _judged(track: GradedTrack, query_id: str) -> Mapping[str, int]:
    """Return doc_id -> official judgment; {} without judgments."""
    return {} if track.official is None else official_judgments(track).judged.get(query_id, {})


def _unused_note(track: GradedTrack) -> tuple[str, ...]:
    """Return a line with the reason why the official judgments do not apply to the pool, if so."""
    if track.official is None and track.folder.qrels() is None:
        return ()
    try:
        reason = no_overlap(official_judgments(track), _pooled(track), track.config.track.unit)
    except TrecexamError as error:
        reason = str(error)
    return () if reason is None else (f"no judgments shown: {reason}",)


def _items(track: GradedTrack, q: QueryRatings, item_ids: Ids = ()) -> list[tuple[int, Item]]:
    """Return the query's items with their places in the bank, from 0."""
    items = enumerate(track.bank.items[q.query_id])
    return [(column, item) for column, item in items if not item_ids or item.item_id in item_ids]


def _item(track: GradedTrack, column: int, item: Item) -> tuple[Value, ...]:
    """Return the columns `_ITEM`."""
    query, answers = track.query_texts.get(item.query_id, ""), " | ".join(item.gold_answers)
    return item.query_id, query, column + 1, item.item_id, item.text, item.kind, answers


def _cells(
    track: GradedTrack,
    q: QueryRatings,
    column: int,
    item: Item,
    answers: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Iterator[GradedCell]:
    """Yield an item's cells; `answers` has (item_id, doc_id) -> the grade as `Track.grades` gives it."""
    judgments, sheet = _judged(track, q.query_id), track.sheets[q.query_id]
    human = track.overrides.queries.get(q.query_id, QueryOverrides()).cells
    codes = sheet.matrix()[:, column].tolist()
    for row, (doc_id, rating) in enumerate(zip(q.doc_ids, q.ratings[:, column].tolist(), strict=True)):
        if codes[row] == NOT_ASKED:
            continue
        answer = answers.get((item.item_id, doc_id), {})
        counts = None if rating == MISSING else rating
        machine, chances = answer.get("rating"), answer.get("probabilities")
        yield GradedCell(
            *(q.query_id, column + 1, item.item_id, item.text, doc_id),
            rating=counts,
            source="" if counts is None else "human" if (doc_id, item.item_id) in human else "model",
            machine=machine,
            status=answer.get("status", "no_text" if doc_id in sheet.without_text else "missing"),
            probability=None if chances is None or machine is None else chances[machine],
            judgment=judgments.get(doc_id),
            answer=answer.get("answer", ""),
            text=track.texts.get(doc_id),
        )


def _by_people(track: GradedTrack, query_id: str, doc_id: str) -> str:
    """Return people's ratings of a passage: "label" for the whole, and the indices of items."""
    human = track.overrides.queries.get(query_id, QueryOverrides())
    column_of = track.sheets[query_id].column_of
    rated = sorted(column_of[item_id] + 1 for doc, item_id in human.cells if doc == doc_id)
    return " ".join([*(["label"] if doc_id in human.passages else []), *map(str, rated)])


def _given(cells: Sequence[GradedCell]) -> str:
    """Count ratings and other answers: "2 x 5, 1 x 3, 1 no text"."""
    ratings = Counter(cell.rating for cell in cells if cell.rating is not None)
    statuses = Counter(cell.status.replace("_", " ") for cell in cells if cell.status != "ok")
    counts = [f"{n} x {rating}" for rating, n in sorted(ratings.items(), reverse=True)]
    return ", ".join([*counts, *(f"{n} {status}" for status, n in statuses.items())])


def _heading(query_id: Value, query: Value) -> str:
    return f"query {query_id}: {query}".rstrip(": ")


def _item_by_item(cells: Table, items: Table) -> Iterator[Table]:
    """Yield a table per item, without columns that are useless in it."""
    of_items = {(row["query_id"], row["item_id"]): row for row in items}
    for (query_id, index, item_id, text), table in cells.grouped("query_id", "item_index", "item_id", "item"):
        item = of_items[query_id, item_id]
        key = f"; key: {item['gold_answers']}" if item["gold_answers"] else ""
        heading = f"{_heading(query_id, item['query'])} [{index}] {text} ({item_id}){key}"
        silent = [name for name in ("probability", "judgment") if not any(v is not None for v in table[name])]
        silent += ["status"] if set(table["status"]) == {"ok"} else []
        silent += [] if "human" in table["source"] else ["source", "machine"]
        layout = Layout(("doc_id",), ("rating", "judgment", "answer", "text"), without=tuple(silent))
        yield replace(table, layout=layout, caption=f"{heading}; ratings: {item['ratings']}")


def _query_by_query(grid: Table, items: Table, min_rating: int) -> Iterator[Table]:
    """Yield each query's grid, with people's ratings marked, and its items."""
    of_items = dict(items.grouped("query_id", "query"))
    for ((query_id, query), query_items), (_, table) in zip(
        of_items.items(), grid.grouped("query_id"), strict=True
    ):
        indices = query_items["item_index"]
        rows = []
        for row in table:
            human = str(row["human"]).split()
            marked = [
                f"{value}{BY_A_PERSON}" if name in human else value
                for name, value in (("label", row["label"]), *((str(n), row[f"item.{n}"]) for n in indices))
            ]
            rows.append((row["doc_id"], row["judgment"], marked[0], row["reached"], *marked[1:]))
        legend = f"; {BY_A_PERSON} rated by a person" if any(table["human"]) else ""
        yield Table(
            ("doc_id", "judgment", "label", "reached", *map(str, indices)),
            tuple(rows),
            layout=Layout(("doc_id",)),
            caption=f"{_heading(query_id, query)}; reached: {min_rating} or better{legend}",
        )
        layout = Layout(("item_index", "item_id"), ("reached", "item"), without=("kind", "gold_answers"))
        yield replace(query_items, layout=layout)
