"""All queries, and one of them: its passages, its items, and all runs on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.drawing import label, link, strip
from trecexam.extensions.page.gather import QueryCounts, query_counts
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import live_of, query_of, render, view_of
from trecexam.extensions.page.tabled import Tabled, tabled
from trecexam.grades.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.results.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View
    from trecexam.scores.values import MeasureValues

#: What a query's page shows.
SHOWN = ("passages", "items", "runs")
#: What `status=` asks for: passages with such a cell.
STATUSES = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR, "missing": MISSING}


@dataclass(frozen=True)
class PassageLine:
    """A pooled passage, with the number of runs that retrieve it, and its best rank."""

    place: int
    doc_id: str
    label: int | None
    judgment: int | None
    reached: int
    runs: int
    rank: int


def queries(request: Request) -> Response:
    """All queries of the bank."""
    view = view_of(request)
    counts = live_of(request).call(view.own, query_counts)
    table = tabled(_queries(view, counts), Address.of(request), "query", links=urls.query)
    measure = next(iter(view.values.measures), "")
    return render(request, "queries.html", table=table, measure=measure)


def query(request: Request) -> Response:
    """One query."""
    view, state, address = view_of(request), query_of(request), Address.of(request)
    show = address.get("show", *SHOWN) or SHOWN[0]
    values = {"passages": _passages, "items": _items, "runs": _runs}[show](view, state, address)
    return render(request, f"query_{show}.html", state=state, show=show, **values)


def _queries(view: View, counts: Mapping[str, QueryCounts]) -> Table:
    """A row per query, with the runs' mean and best value of the first measure, if there are runs."""
    first = view.values.array[:, :, 0] if view.values.measures and view.values.runs else None
    means, best = ([], []) if first is None else (first.mean(axis=0).tolist(), first.max(axis=0).tolist())
    header = (
        *("query", "text", "items", "passages", "judged", "mean", "best"),
        *("missing", "unread", "human"),
    )
    rows = (
        (
            *(query_id, text, *counts[query_id][:3]),
            *((means[n], best[n]) if means else (None, None)),
            *counts[query_id][3:],
        )
        for n, (query_id, text) in enumerate(view.queries.items())
        if query_id in counts
    )
    short = {"missing": "ungraded cells", "unread": "without a rating", "human": "by people"}
    return Table(header, tuple(rows), layout=Layout(("query",), short=short))


def passage_lines(view: View, state: QueryView) -> list[PassageLine]:
    """Every pooled passage of a query."""
    ranks: dict[int, list[int]] = {}
    for ranking in state.rankings.values():
        for rank, row_index in enumerate(ranking, 1):
            ranks.setdefault(row_index, []).append(rank)
    reached = (state.ratings >= view.settings.min_rating).sum(axis=1).tolist()
    return [
        PassageLine(
            row_index,
            doc_id,
            state.labels[row_index],
            state.judgments.get(doc_id),
            reached[row_index],
            len(ranks.get(row_index, ())),
            min(ranks.get(row_index, (0,))),
        )
        for row_index, doc_id in enumerate(state.doc_ids)
    ]


def _passages(view: View, state: QueryView, address: Address) -> dict[str, Any]:
    rows = passage_lines(view, state)
    status = address.get("status", *STATUSES, "human", "no_text")
    if status:
        rows = [row for row in rows if _has(state, row, status)]
    return {
        "table": passages_tabled(view, state, sorted(rows, key=lambda row: -row.reached), address),
        "statuses": ("human", *STATUSES, "no_text"),
        "is_judged": any(state.place(doc_id) is not None for doc_id in state.judgments),
    }


def passages_tabled(
    view: View, state: QueryView, lines: Sequence[PassageLine], address: Address, *, ranked: bool = False
) -> Tabled:
    """Passages of a query with their labels and ratings.

    Args:
        ranked: they are in a run's order, and are listed in that; else by label.
    """
    settings = view.settings
    header = ("rank", "doc", "label", "judgment", "reached", "runs", "best", "text")
    rows = (
        (
            *(rank, line.doc_id, line.label, line.judgment, line.reached),
            *(line.runs, line.rank or None, state.texts[line.place] or ""),
        )
        for rank, line in enumerate(lines, 1)
    )
    short = {"doc": "passage", "judgment": "judged", "reached": "ratings by item", "best": "best rank"}
    without = ("rank", "runs", "best") if ranked else ("rank",)
    ranks = tuple(range(1, len(lines) + 1)) if ranked else ()
    return tabled(
        Table(header, tuple(rows), layout=Layout(("doc",), without=without, ranks=ranks, short=short)),
        address,
        "" if ranked else "-label",
        links=lambda doc_id: urls.passage(state.query_id, doc_id),
        draw={
            "label": lambda at: label(lines[at].label, settings.least),
            "judgment": lambda at: label(lines[at].judgment, settings.min_relevant),
            "reached": lambda at: strip(state, lines[at].place),
        },
        beginnings=("text",),
    )


def _has(state: QueryView, row: PassageLine, status: str) -> bool:
    if status == "human":
        return any(doc_id == row.doc_id for doc_id, _ in state.human)
    if status == "no_text":
        return not state.gradable[row.place]
    return state.gradable[row.place] and bool((state.codes[row.place] == STATUSES[status]).any())


def _items(view: View, state: QueryView, address: Address) -> dict[str, Any]:
    rows = []
    for column, item in enumerate(state.items):
        ratings = state.ratings[:, column]
        rated = ratings[ratings >= 0]
        reached = int((rated >= view.settings.min_rating).sum())
        mean = float(rated.mean()) if len(rated) else None
        rows.append((item.item_id, item.text, item.importance, len(rated), reached, mean))
    layout = Layout(
        ("text",),
        without=("item",),
        ranks=tuple(range(1, len(rows) + 1)),
        short={"text": "item", "reached": "reach it", "mean": "mean rating"},
    )
    table = Table(("item", "text", "importance", "rated", "reached", "mean"), tuple(rows), layout=layout)
    items = state.items
    draw = {"text": lambda at: link(urls.item(state.query_id, items[at].item_id), items[at].text)}
    return {"table": tabled(table, address, draw=draw)}


def _runs(view: View, state: QueryView, address: Address) -> dict[str, Any]:
    theirs = view.official_values
    judged = () if theirs is None or state.query_id not in theirs.query_ids else theirs.measures
    official: dict[str, list[float]] = {}
    if theirs is not None and judged:
        official = dict(zip(theirs.runs, _on_query(theirs, state.query_id), strict=True))
    measures, none = view.values.measures, [None] * len(judged)
    rows = tuple(
        (run, *values, *official.get(run, none), state.retrieved.get(run, 0))
        for run, values in zip(view.values.runs, _on_query(view.values, state.query_id), strict=True)
    )
    header = ("run", *measures, *(f"official {measure}" for measure in judged), "retrieved")
    table = Table(header, rows, layout=Layout(("run",)))
    links = lambda run: urls.run_query(run, state.query_id)  # noqa: E731
    return {"table": tabled(table, address, f"-{measures[0]}" if measures else "run", links=links)}


def _on_query(values: MeasureValues, query_id: str) -> list[list[float]]:
    """The measures of each run on a query."""
    on_query: list[list[float]] = values.array[:, values.query_ids.index(query_id)].tolist()
    return on_query


ROUTES = [Route("/queries", queries), Route("/query/{query_id:name}", query)]
