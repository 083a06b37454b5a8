"""All queries, and one of them: its passages, its items, and all runs on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.listing import Address, in_order
from trecexam.extensions.page.rendering import query_of, render, view_of
from trecexam.extensions.page.tabled import tabled
from trecexam.line.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.tables.table import Layout, Table

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.view import QueryView, View

#: What a query's page shows.
SHOWN = ("passages", "items", "runs")
#: What `status=` asks for: passages with such a cell.
STATUSES = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR, "missing": MISSING}


@dataclass(frozen=True)
class PassageLine:
    """A pooled passage: how many runs have it in their first ranks, and the best of these ranks."""

    place: int
    doc_id: str
    label: int | None
    judgment: int | None
    reached: int
    runs: int
    rank: int


@dataclass(frozen=True)
class ItemRatingsLine:
    """An item: how many passages have a rating on it, and how many reach it."""

    column: int
    rated: int
    reached: int
    mean: float | None


def queries(request: Request) -> Response:
    """All queries of the bank."""
    view = view_of(request)
    table = tabled(_queries(view), Address.of(request), "query")
    measure = next(iter(view.values.measures), "")
    return render(request, "queries.html", table=table, rows=table.rows, measure=measure, link=urls.query)


def query(request: Request) -> Response:
    """One query."""
    view, state, address = view_of(request), query_of(request), Address.of(request)
    show = address.get("show", *SHOWN) or SHOWN[0]
    values = {"passages": _passages, "items": _items, "runs": _runs}[show](view, state, address)
    return render(
        request, f"query_{show}.html", state=state, head=view.heads[state.query_id], show=show, **values
    )


def _queries(view: View) -> Table:
    """A row a query, with the runs' mean and best value of the first measure where there are runs."""
    first = view.values.values[:, :, 0] if view.values.measures and view.values.runs else None
    means, best = ([], []) if first is None else (first.mean(axis=0).tolist(), first.max(axis=0).tolist())
    header = (
        *("query", "text", "items", "passages", "judged", "mean", "best"),
        *("missing", "unread", "human"),
    )
    rows = (
        (
            *(head.query_id, head.text, head.n_items, head.n_passages, head.judged),
            *((means[n], best[n]) if means else (None, None)),
            *(head.missing, head.unread, head.human),
        )
        for n, head in enumerate(view.heads.values())
    )
    short = {"missing": "ungraded cells", "unread": "without a rating", "human": "by people"}
    return Table(header, tuple(rows), layout=Layout(("query",), short=short))


def passage_lines(view: View, state: QueryView) -> list[PassageLine]:
    """Every pooled passage of a query."""
    ranks: dict[int, list[int]] = {}
    for ranking in state.rankings.values():
        for rank, place in enumerate(ranking, 1):
            ranks.setdefault(place, []).append(rank)
    reached = (state.ratings >= view.settings.min_rating).sum(axis=1).tolist()
    return [
        PassageLine(
            place,
            doc_id,
            state.labels[place],
            state.judgments.get(doc_id),
            reached[place],
            len(ranks.get(place, ())),
            min(ranks.get(place, (0,))),
        )
        for place, doc_id in enumerate(state.doc_ids)
    ]


def _passages(view: View, state: QueryView, address: Address) -> dict[str, Any]:
    rows = passage_lines(view, state)
    search_text = address.get("q").casefold()
    if search_text:
        rows = [
            row
            for row in rows
            if search_text in row.doc_id.casefold()
            or search_text in (state.texts[row.place] or "").casefold()
        ]
    label, judgment = address.number("label"), address.get("judgment")
    if label is not None:
        rows = [row for row in rows if row.label == label]
    if judgment == "none":
        rows = [row for row in rows if row.judgment is None]
    elif address.number("judgment") is not None:
        rows = [row for row in rows if row.judgment == address.number("judgment")]
    settings = view.settings
    kind = address.get("disagree", "missed", "spurious", "both")
    if kind:
        apart = {"missed", "spurious"} if kind == "both" else {kind}
        rows = [row for row in rows if _kind(row, settings.least, settings.min_relevant) in apart]
    status = address.get("status", *STATUSES, "human", "no_text")
    if status:
        rows = [row for row in rows if _has(state, row, status)]
    keys = {
        "doc": lambda row: row.doc_id,
        "label": lambda row: row.label,
        "judgment": lambda row: row.judgment,
        "reached": lambda row: row.reached,
        "runs": lambda row: row.runs,
        "rank": lambda row: row.rank,
    }
    return {
        "rows": in_order(sorted(rows, key=lambda row: -row.reached), address, keys, "-label"),
        "statuses": ("human", *STATUSES, "no_text"),
        "judgments": sorted({j for d, j in state.judgments.items() if state.place(d) is not None}),
    }


def _kind(row: PassageLine, least: int, min_relevant: int) -> str:
    """ "missed" or "spurious" where label and judgment disagree, else ""."""
    if row.label is None or row.judgment is None or row.judgment < 0:
        return ""
    automatic, judged = row.label >= least, row.judgment >= min_relevant
    return "" if automatic == judged else "missed" if judged else "spurious"


def _has(state: QueryView, row: PassageLine, status: str) -> bool:
    if status == "human":
        return any(doc_id == row.doc_id for doc_id, _ in state.human)
    if status == "no_text":
        return not state.gradable[row.place]
    return state.gradable[row.place] and bool((state.codes[row.place] == STATUSES[status]).any())


def _items(view: View, state: QueryView, address: Address) -> dict[str, Any]:
    rows = []
    for column in range(len(state.items)):
        ratings = state.ratings[:, column]
        rated = ratings[ratings >= 0]
        reached = int((rated >= view.settings.min_rating).sum())
        rows.append(ItemRatingsLine(column, len(rated), reached, float(rated.mean()) if len(rated) else None))
    search_text = address.get("q").casefold()
    items = state.items
    rows = [r for r in rows if search_text in f"{items[r.column].item_id}\t{items[r.column].text}".casefold()]
    keys = {
        "item": lambda row: row.column,
        "rated": lambda row: row.rated,
        "reached": lambda row: row.reached,
        "mean": lambda row: row.mean,
    }
    file_columns: dict[str, Callable[[Any], Any]] = {
        "item": lambda row: items[row.column].item_id,
        "text": lambda row: items[row.column].text,
        **{name: keys[name] for name in ("rated", "reached", "mean")},
    }
    return {"rows": in_order(rows, address, keys, "item", file_columns)}


def _runs(view: View, state: QueryView, address: Address) -> dict[str, Any]:
    theirs = view.official_values
    judged = () if theirs is None or state.query_id not in theirs.query_ids else theirs.measures
    official: dict[str, list[float]] = {}
    if theirs is not None and judged:
        official = dict(zip(theirs.runs, theirs.of_query(state.query_id).tolist(), strict=True))
    measures, none = view.values.measures, [None] * len(judged)
    rows = tuple(
        (run, *values, *official.get(run, none), state.retrieved.get(run, 0))
        for run, values in zip(view.values.runs, view.values.of_query(state.query_id).tolist(), strict=True)
    )
    header = ("run", *measures, *(f"official {measure}" for measure in judged), "retrieved")
    table = Table(header, rows, layout=Layout(("run",)))
    shown = tabled(table, address, f"-{measures[0]}" if measures else "run")
    return {"table": shown, "rows": shown.rows, "link": lambda run: urls.run_query(run, state.query_id)}


ROUTES = [Route("/queries", queries), Route("/query/{query_id:name}", query)]
