"""Verification for people: texts wrapped to a width, in pieces, so that reading can begin at once.

Every function gives lines. Passages, answers and ids are made printable: see `trecexam.tables.terminal`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trecexam.features.verification.tables import coverage_table
from trecexam.tables.table import to_aligned
from trecexam.tables.terminal import columns, padded, printable, wrapped

if TYPE_CHECKING:
    from trecexam.features.verification.arithmetic import (
        GradedCell,
        GradedItem,
        GridRow,
        Grids,
        ItemReach,
        Missed,
        Missing,
        QueryGrading,
        QueryGrid,
        RelevantPassages,
        Spurious,
        Topic,
    )

#: Lines of a passage that are shown, unless all is asked for.
SNIPPET_LINES = 2
#: Items side by side in a grid, however narrow the terminal.
LEAST_ITEMS = 5
#: In a grid, where there is no rating.
NO_RATING = "-"
#: In a grid, behind a rating or label that is not the grader's.
BY_A_PERSON = "*"


def grading_lines(
    queries: Iterable[QueryGrading], width: int, *, top: int | None = None, full: bool = False
) -> Iterator[str]:
    """Item by item its text, then its passages: rating, answer, and the beginning of the text.

    Args:
        top: of each item, only so many passages.
        full: whole passages.
    """
    for query in queries:
        yield from _heading(query.topic, width)
        for graded in query.items:
            yield ""
            yield from _item_lines(graded, width)
            for cell in graded.cells[:top]:
                yield "  " + _cell_line(cell)
                yield from _labelled("answer", cell.answer, width, full=full)
                yield from _labelled("text", query.topic.passages[cell.doc_id] or "", width, full=full)
            yield from _more(graded.cells, top)
        yield ""


def grid_lines(grids: Grids, width: int, *, top: int | None = None) -> Iterator[str]:
    """A grid a query, its items side by side as far as they fit; below it what the items are.

    Args:
        top: of each query, only so many passages; the counts below a grid are over all.
    """
    for query in grids.queries:
        yield from _heading(query.topic, width)
        yield from _grid_lines(query, grids.min_rating, width, top)
        yield from _more(query.rows, top)
        if any(row.human or row.human_label for row in query.rows[:top]):
            yield f"{BY_A_PERSON} rated by a person"
        yield ""
        indent = len(str(query.columns[-1] + 1)) + 2
        for place in query.columns:
            item = query.topic.items[place]
            yield from _hanging(str(place + 1), f"{item.text} ({item.item_id})", indent, width)
        yield ""


def missing_lines(
    missing: Missing, width: int, *, top: int | None = None, full: bool = False
) -> Iterator[str]:
    """Counts over all queries, then each query's missed passages.

    Args:
        top: of each query, only so many.
        full: whole passages.
    """
    yield from _summary(missing, width)
    for topic, passages in missing.queries:
        yield ""
        yield from _heading(topic, width)
        yield from wrapped(_coverage(passages), width)
        for missed in passages.missed[:top]:
            yield "  " + _missed_line(topic, missed)
            yield from _labelled("text", topic.passages[missed.doc_id] or "", width, full=full)
        yield from _more(passages.missed, top)


def coverage_lines(missing: Missing, width: int) -> Iterator[str]:
    """Counts over all queries, then a line a query: what became of its relevant passages."""
    yield from _summary(missing, width)
    yield ""
    yield from to_aligned(coverage_table(passages for _, passages in missing.queries)).splitlines()


def spurious_lines(spurious: Spurious, width: int, *, top: int | None = None) -> Iterator[str]:
    """A line an item with its counts, and its text below.

    Args:
        top: only so many items.
    """
    with_irt = any(reach.discrimination == reach.discrimination for reach in spurious.items)
    yield from wrapped(
        f"Relevant: judgment {spurious.min_relevant} or better. Reached: rating {spurious.min_rating} or "
        "better. alone: passages that reach no other item. phi: correlation of reaching the item and being "
        "relevant."
        + (" a: the item's discrimination between runs, by item response theory." if with_irt else ""),
        width,
    )
    yield ""
    header = (
        "phi",
        *(["a"] if with_irt else []),
        "precision",
        "non-relevant",
        "alone",
        "relevant",
        "alone",
        "item",
    )
    rows = [_reach_cells(reach, with_irt=with_irt) for reach in spurious.items[:top]]
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header) - 1)]
    for number, row in enumerate(table):
        yield "  ".join(
            [*(padded(value, to, right=True) for value, to in zip(row, widths, strict=False)), row[-1]]
        )
        if number:
            reach = spurious.items[number - 1]
            note = f"{reach.note}: " if reach.note else ""
            yield from ("    " + line for line in wrapped(note + printable(reach.item.text), width - 4))
    yield from _more(spurious.items, top)


def missed_of(passages: Iterable[RelevantPassages]) -> str:
    """The missed passages of all these queries among those that are rated: "8 of 40 (20%)"."""
    queries = list(passages)
    missed = sum(len(query.missed) for query in queries)
    rated = missed + sum(query.reached for query in queries)
    return f"{missed:,} of {rated:,}" + (f" ({missed / rated:.0%})" if rated else "")


def _summary(missing: Missing, width: int) -> Iterator[str]:
    missed = missed_of(passages for _, passages in missing.queries)
    yield from wrapped(
        f"Relevant (judgment {missing.min_relevant} or better) and rated, but rated {missing.min_rating} or "
        f"better on no item: {missed}.",
        width,
    )


def _heading(topic: Topic, width: int) -> Iterator[str]:
    yield from wrapped(printable(f"query {topic.query_id}: {topic.text}").rstrip(": "), width)


def _item_lines(graded: GradedItem, width: int) -> Iterator[str]:
    item = graded.item
    yield from _hanging(f"[{graded.index}]", f"{item.text} ({item.item_id})", 5, width)
    if item.gold_answers:
        yield from _labelled("key", " | ".join(item.gold_answers), width, full=True)
    ratings = Counter(cell.rating for cell in graded.cells if cell.rating is not None)
    counts = [f"{n} x {rating}" for rating, n in sorted(ratings.items(), reverse=True)]
    statuses = Counter(cell.status for cell in graded.cells if cell.status != "ok")
    counts += [f"{n} {status.replace('_', ' ')}" for status, n in statuses.items()]
    yield from ("     " + line for line in wrapped("ratings: " + ", ".join(counts), width - 5))


def _cell_line(cell: GradedCell) -> str:
    parts = [NO_RATING if cell.rating is None else str(cell.rating), f" {printable(cell.doc_id)}"]
    if cell.judgment is not None:
        parts.append(f"judgment {cell.judgment}")
    if cell.status != "ok":
        parts.append(cell.status.replace("_", " "))
    if cell.source == "human":
        machine = NO_RATING if cell.machine is None else cell.machine
        parts.append(f"by a person (grader: {machine})")
    if cell.probability is not None:
        parts.append(f"probability {cell.probability:.2f}")
    return "  ".join(parts)


def _grid_lines(query: QueryGrid, min_rating: int, width: int, top: int | None) -> Iterator[str]:
    left = ("judgment", "label", "reached")
    counts = [sum((row.ratings[place] or 0) >= min_rating for row in query.rows) for place in query.columns]
    rows = query.rows[:top]
    # Each rating has a place for a mark behind it, and a blank before it.
    each = max(len(str(number)) for number in (*counts, query.columns[-1] + 1)) + 2
    names = [printable(row.doc_id) for row in rows]
    below = f"{min_rating} or better"
    room = width - len("  ".join(left)) - 4 - max(map(columns, (*names, below)))
    side_by_side = max(LEAST_ITEMS, room // each)
    for start in range(0, len(query.columns), side_by_side):
        block = query.columns[start : start + side_by_side]
        head = "".join(f"{place + 1} ".rjust(each) for place in block)
        yield ""
        yield f"{'  '.join(left)}  {head} passage"
        for row, name in zip(rows, names, strict=True):
            cells = "".join(_rating(row, place).rjust(each) for place in block)
            yield f"{_row_head(row, query.columns, min_rating, left)}  {cells} {name}"
        total = "".join(f"{count} ".rjust(each) for count in counts[start : start + side_by_side])
        blanks = " " * len("  ".join(left))
        yield f"{blanks}  {total} {below}"


def _row_head(row: GridRow, columns: Sequence[int], min_rating: int, left: Sequence[str]) -> str:
    reached = sum((row.ratings[place] or 0) >= min_rating for place in columns)
    label = "" if row.label is None else f"{row.label}{BY_A_PERSON if row.human_label else ''}"
    values = ("" if row.judgment is None else str(row.judgment), label, str(reached))
    return "  ".join(value.rjust(len(name)) for value, name in zip(values, left, strict=True))


def _rating(row: GridRow, place: int) -> str:
    rating = row.ratings[place]
    return (NO_RATING if rating is None else str(rating)) + (BY_A_PERSON if place in row.human else " ")


def _coverage(passages: RelevantPassages) -> str:
    parts = [
        f"{passages.relevant} relevant: {len(passages.missed)} missed",
        f"{passages.reached} reached",
        *(
            f"{count} {what}"
            for count, what in (
                (passages.unrated, "without a rating"),
                (passages.without_text, "without a text"),
                (passages.outside, "outside of the pool"),
            )
            if count
        ),
    ]
    return ", ".join(parts)


def _missed_line(topic: Topic, missed: Missed) -> str:
    places = [str(place + 1) for place in missed.best_items]
    if len(places) == len(topic.items) > 1:
        where = "every item"
    else:
        where = f"item{'s' if len(places) > 1 else ''} {', '.join(places)}"
    rated = "" if missed.n_rated == len(topic.items) else f"  rated on {missed.n_rated} of {len(topic.items)}"
    name = printable(missed.doc_id)
    return f"{name}  judgment {missed.judgment}  best rating {missed.best_rating} on {where}{rated}"


def _reach_cells(reach: ItemReach, *, with_irt: bool) -> tuple[str, ...]:
    shares = (reach.phi, *([reach.discrimination] if with_irt else []), reach.precision)
    return (
        *("" if share != share else f"{share:.2f}" for share in shares),
        f"{reach.nonrelevant_reached}/{reach.nonrelevant}",
        str(reach.nonrelevant_only),
        f"{reach.relevant_reached}/{reach.relevant}",
        str(reach.relevant_only),
        printable(reach.item.item_id),
    )


def _labelled(label: str, text: str, width: int, *, full: bool) -> Iterator[str]:
    """The text behind its label, its lines below each other; no more than a snippet unless `full`."""
    indent = 13
    if text.strip():
        yield from _hanging(f"     {label}", text, indent, width, None if full else SNIPPET_LINES)


def _hanging(label: str, text: str, indent: int, width: int, most: int | None = None) -> Iterator[str]:
    indent = max(indent, len(label) + 1)
    head = label.ljust(indent)
    for line in wrapped(printable(text), width - indent, most) or [""]:
        yield (head + line).rstrip()
        head = " " * indent


def _more(rows: Sequence[object], top: int | None) -> Iterator[str]:
    if top is not None and len(rows) > top:
        yield f"  ... and {len(rows) - top:,} more"
