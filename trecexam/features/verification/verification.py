"""What `trecexam verify` shows: gathers grades, texts and judgments; `arithmetic` beside it computes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from converters.records import Item
from trecexam.errors import TrecexamError
from trecexam.extension import extensions, named
from trecexam.features.verification.arithmetic import (
    GradedCell,
    GridRow,
    Order,
    RelevantPassages,
    best_first,
    grid_order,
    item_reaches,
    relevant_passages,
    worst_first,
)
from trecexam.features.verification.chosen import (
    chosen_queries,
    judged_queries,
    known_judgments,
    thresholds,
    unjudged_note,
    unused_note,
)
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import resolve_min_rating
from trecexam.line.overrides import QueryOverrides
from trecexam.line.sheets import NOT_ASKED
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings
from trecexam.tables.result import Tables
from trecexam.tables.table import Layout, Table, Value

#: Where people are shown the grid: behind a rating or label that is not the grader's.
BY_A_PERSON = "*"


@dataclass(frozen=True)
class View(Tables):
    """What scores are made of, looked at in one way; `people` makes the tables that people see."""

    people: Callable[[], Iterable[Table]] | None = None

    def _for_people(self) -> tuple[Table, ...]:
        """The tables that people see; the first where nothing else is said, or there is nothing."""
        return (tuple(self.people()) if self.people else ()) or (self.table,)


def grading(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    item_ids: Collection[str] | None = None,
    doc_ids: Collection[str] | None = None,
    statuses: Collection[str] | None = None,
    top: int | None = None,
) -> View:
    """Every cell with its answer and official judgment, item by item, best rating first."""
    graded_cells: list[GradedCell] = []
    of_items: list[tuple[Value, ...]] = []
    for q in chosen_queries(track, query_ids, item_ids, doc_ids):
        for item_index, item, cells in _cells(track, q, _items(track, q, item_ids)):
            ordered = best_first(
                cell
                for cell in cells
                if (doc_ids is None or cell.doc_id in doc_ids)
                and (statuses is None or cell.status in statuses)
            )
            if ordered:
                graded_cells += ordered[:top]
                of_items.append((*_item(track, item_index, item), _given(ordered)))
    table, items = Table(GradedCell._fields, tuple(graded_cells)), Table((*_ITEM, "ratings"), tuple(of_items))
    return View(
        {"grading": table, "items": items},
        notes=unused_note(track),
        people=lambda: _item_by_item(table, items),
    )


def grid(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    item_ids: Collection[str] | None = None,
    doc_ids: Collection[str] | None = None,
    min_rating: int | None = None,
    top: int | None = None,
) -> View:
    """The ratings of passages x items for each query, with official judgments and labels."""
    if track.asked.citing is not None:
        raise TrecexamError(
            f"the grader {track.name} grades each sentence only with the passages that it cites, so it has "
            f"no grid: see its cells with `trecexam verify grading`",
            path=track.folder.config_path,
        )
    scores, threshold = track.config.scores, resolve_min_rating(track, min_rating)
    judgments = known_judgments(track)
    rows: list[tuple[Sequence[int], str, GridRow]] = []
    of_items: list[tuple[Value, ...]] = []
    for q in chosen_queries(track, query_ids, item_ids, doc_ids):
        judged, label = judgments.get(q.query_id, {}), labels(q, scores.label, threshold, scores.min_answers)
        in_grid = sorted(
            (
                (doc_id, judged.get(doc_id), label.get(doc_id), ratings)
                for doc_id, ratings in zip(q.doc_ids, q.ratings.tolist(), strict=True)
                if doc_ids is None or doc_id in doc_ids
            ),
            key=grid_order,
        )
        items = _items(track, q, item_ids) if in_grid else []
        rows += [([column for column, _ in items], q.query_id, row) for row in in_grid[:top]]
        of_items += [
            (
                *_item(track, column, item),
                sum(ratings[column] >= threshold for *_, ratings in in_grid),
            )
            for column, item in items
        ]
    columns = sorted({column for of_query, *_ in rows for column in of_query})
    table = Table(
        (
            *("query_id", "doc_id", "judgment", "label", "reached", "human"),
            *(f"item.{p + 1}" for p in columns),
        ),
        tuple(
            (
                *(query_id, doc_id, judgment, label),
                sum(ratings[column] >= threshold for column in of_query),
                _by_people(track, query_id, doc_id),
                *(None if p not in of_query or ratings[p] == MISSING else ratings[p] for p in columns),
            )
            for of_query, query_id, (doc_id, judgment, label, ratings) in rows
        ),
    )
    items_table = Table((*_ITEM, "reached"), tuple(of_items))
    return View(
        {"grid": table, "items": items_table},
        unused_note(track),
        about={"min_rating": threshold},
        people=lambda: _query_by_query(table, items_table, threshold),
    )


def missing(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    per_query: bool = False,
    top: int | None = None,
) -> View:
    """The officially relevant passages that reach no item; and by query what became of all relevant ones."""
    threshold, relevant = thresholds(track, min_rating, min_relevant)
    queries, judgments = judged_queries(track, query_ids)
    reports = [
        relevant_passages(
            q, judgments[q.query_id], track.sheets[q.query_id].without_text, threshold, relevant
        )
        for q in queries
        if q.query_id in judgments
    ]
    unjudged = [q.query_id for q in queries if q.query_id not in judgments]
    missed = Table(
        ("query_id", "doc_id", "judgment", "best_rating", "best_items", "rated_items", "text"),
        tuple(
            (
                *(of.query_id, each.doc_id, each.judgment, each.best_rating),
                *(" ".join(str(item_index + 1) for item_index in each.best_items), each.n_rated),
                track.texts.get(each.doc_id),
            )
            for of in reports
            for each in of.missed[:top]
        ),
        layout=Layout(("query_id", "doc_id"), ("judgment", "best_rating", "best_items", "text")),
    )
    tables = {"missing": missed, "queries": Table(_OF_QUERY, tuple(map(_of_query, reports)))}
    n_missed, n_reached = (
        sum(len(of.missed) for of in reports),
        sum(of.reached for of in reports),
    )
    share = f" ({n_missed / (n_missed + n_reached):.0%})" if n_missed + n_reached else ""
    return View(
        dict(reversed(tables.items())) if per_query else tables,
        (
            f"missed: {n_missed:,} of {n_missed + n_reached:,}{share} relevant passages (judgment {relevant} "
            f"or better) that have ratings are rated {threshold} or better on no item",
            *unjudged_note(unjudged),
        ),
        about={
            "min_rating": threshold,
            "min_relevant": relevant,
            "missed": n_missed,
            "unjudged_queries": unjudged,
        },
        people=None if per_query else lambda: [*([missed] if missed.rows else []), tables["queries"]],
    )


def spurious(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    item_ids: Collection[str] | None = None,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    order: Order = "phi",
    top: int | None = None,
) -> View:
    """How well each item tells relevant from non-relevant passages, the worst first."""
    threshold, relevant = thresholds(track, min_rating, min_relevant)
    queries, judgments = judged_queries(track, query_ids, item_ids)
    discriminations = _discriminations(track, threshold)
    reaches = [
        replace(reach, discrimination=discriminations.get((q.query_id, reach.item.item_id), math.nan))
        for q in queries
        if q.query_id in judgments
        for reach in item_reaches(q, track.bank.items[q.query_id], judgments[q.query_id], threshold, relevant)
        if item_ids is None or reach.item.item_id in item_ids
    ]
    unjudged = [q.query_id for q in queries if q.query_id not in judgments]
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
    return View(
        {"spurious": table},
        (
            f"relevant: judgment {relevant} or better; reached: rating {threshold} or better; only: by "
            "passages that reach no other item; phi: correlation of reaching the item and being relevant"
            + ("; discrimination: between runs, by item response theory" if discriminations else ""),
            *unjudged_note(unjudged),
        ),
        about={
            "min_rating": threshold,
            "min_relevant": relevant,
            "unjudged_queries": unjudged,
            "n_items": len(reaches),
        },
    )


_ITEM = ("query_id", "query", "item_index", "item_id", "item", "kind", "gold_answers")
_OF_QUERY = (
    "query_id", "relevant", "reached", "missed", "missed_share", "unrated", "without_text", "outside_pool"
)  # fmt: skip
_COUNTS = (
    "relevant", "relevant_reached", "relevant_only", "nonrelevant", "nonrelevant_reached", "nonrelevant_only",
    "precision", "phi", "discrimination"
)  # fmt: skip


def _discriminations(track: Assessment, min_rating: int) -> Mapping[tuple[str, str], float]:
    """Return (query_id, item_id) -> discrimination, as an extension knows it; {} where none does."""
    places = (extension.item_values.get("discrimination") for extension in extensions())
    at = next(filter(None, places), None)
    return {} if at is None else named(at)(track, min_rating)


def _items(
    track: Assessment, q: QueryRatings, item_ids: Collection[str] | None = None
) -> list[tuple[int, Item]]:
    """The query's items with their places in the bank, from 0."""
    items = enumerate(track.bank.items[q.query_id])
    return [(item_index, item) for item_index, item in items if item_ids is None or item.item_id in item_ids]


def _item(track: Assessment, item_index: int, item: Item) -> tuple[Value, ...]:
    """The columns `_ITEM`."""
    query = track.query_texts.get(item.query_id, "")
    answers = " | ".join(item.gold_answers)
    return item.query_id, query, item_index + 1, item.item_id, item.text, item.kind, answers


def _cells(
    track: Assessment, q: QueryRatings, items: Iterable[tuple[int, Item]]
) -> Iterator[tuple[int, Item, list[GradedCell]]]:
    """Each item's cells."""
    judgments = known_judgments(track).get(q.query_id, {})
    answers = {(row["item_id"], row["doc_id"]): row for row in track.grade_rows((q.query_id,))}
    texts = {doc_id: track.texts.get(doc_id) for doc_id in q.doc_ids}
    sheet, human = track.sheets[q.query_id], _human_cells(track, q.query_id)
    without, codes = sheet.without_text, sheet.matrix()
    for column, item in items:
        cells = []
        for row, (doc_id, rating) in enumerate(zip(q.doc_ids, q.ratings[:, column].tolist(), strict=True)):
            if codes[row, column] == NOT_ASKED:
                continue
            answer = answers.get((item.item_id, doc_id), {})
            counts = None if rating == MISSING else rating
            machine, chances = answer.get("rating"), answer.get("probabilities")
            cells.append(
                GradedCell(
                    *(q.query_id, column + 1, item.item_id, item.text, doc_id),
                    rating=counts,
                    source="" if counts is None else "human" if (doc_id, item.item_id) in human else "model",
                    machine=machine,
                    status=answer.get("status", "no_text" if doc_id in without else "missing"),
                    probability=None if chances is None or machine is None else chances[machine],
                    judgment=judgments.get(doc_id),
                    answer=answer.get("answer", ""),
                    text=texts[doc_id],
                )
            )
        yield column, item, cells


def _by_people(track: Assessment, query_id: str, doc_id: str) -> str:
    """What people rated of a passage: "label", as a whole, and the indices of items."""
    human = track.overrides.queries.get(query_id, QueryOverrides())
    column_of = track.sheets[query_id].column_of
    rated = sorted(column_of[item_id] + 1 for doc, item_id in human.cells if doc == doc_id)
    return " ".join([*(["label"] if doc_id in human.passages else []), *map(str, rated)])


def _human_cells(track: Assessment, query_id: str) -> Collection[tuple[str, str]]:
    """(doc_id, item_id) of the cells that a person rated in place of the grader."""
    human = track.overrides.queries.get(query_id)
    return () if human is None else human.cells.keys()


def _given(cells: Sequence[GradedCell]) -> str:
    """How often each rating was given, and what became of other answers: as "2 x 5, 1 x 3, 1 no text"."""
    ratings = Counter(cell.rating for cell in cells if cell.rating is not None)
    statuses = Counter(cell.status.replace("_", " ") for cell in cells if cell.status != "ok")
    counts = [f"{n} x {rating}" for rating, n in sorted(ratings.items(), reverse=True)]
    return ", ".join([*counts, *(f"{n} {status}" for status, n in statuses.items())])


def _of_query(of: RelevantPassages) -> tuple[Value, ...]:
    """The columns `_OF_QUERY`."""
    return (
        *(of.query_id, of.relevant, of.reached, len(of.missed), of.missed_share),
        *(of.unrated, of.without_text, of.outside),
    )


def _heading(query_id: Value, query: Value) -> str:
    return f"query {query_id}: {query}".rstrip(": ")


def _item_by_item(cells: Table, items: Table) -> Iterator[Table]:
    """A table for each item, without the columns that say nothing there."""
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
    """For each query its grid, what people rated marked, and its items."""
    of_items = {query_id: table for (query_id, query), table in items.grouped("query_id", "query")}
    texts = dict(zip(items["query_id"], items["query"], strict=True))
    for (query_id,), table in grid.grouped("query_id"):
        query_items = of_items[query_id]
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
            layout=Layout(("doc_id",), split=True),
            caption=f"{_heading(query_id, texts[query_id])}; reached: {min_rating} or better{legend}",
        )
        layout = Layout(("item_index", "item_id"), ("reached", "item"), without=("kind", "gold_answers"))
        yield replace(query_items, layout=layout)
