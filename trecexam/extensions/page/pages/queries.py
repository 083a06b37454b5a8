"""A query: its passages, or a run's ranking of them; its items; and all runs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.drawing import label, link, strip
from trecexam.extensions.page.gather import runs_on_query
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import NotFoundError, live_of, query_of, show, urls_of, view_of
from trecexam.extensions.page.tabled import Draw
from trecexam.grades.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.extensions.page.urls import Urls
    from trecexam.extensions.page.view import QueryView, View

#: Values of `status=`, which selects passages with such a cell.
STATUSES = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR, "missing": MISSING}


def query(request: Request) -> Response:
    """Show one query."""
    view, state, address, urls = view_of(request), query_of(request), Address.of(request), urls_of(request)
    tab = address.get("show", "items", "runs") or "passages"
    values: dict[str, Any] = {"state": state, "part": tab, "run": ""}
    draw: dict[str, Draw] = {}
    sort = ""
    if tab == "items":
        table = _items(view, state)
        if state.has_bank:
            draw["text"] = lambda at: link(urls.bank(state.query_id), state.items[at].text)
    elif tab == "runs":
        table = live_of(request).call(view.grader_name, runs_on_query, state.query_id)
        draw["run"] = lambda at: link(urls.query(state.query_id, run=table["run"][at]), table["run"][at])
    else:
        statuses = ("human", *STATUSES, "no_text")
        run, status = address.get("run"), address.get("status", *statuses)
        if run and run not in view.runs:
            raise NotFoundError(f"There is no run '{run}' on the leaderboard.")
        chosen = list(state.rankings.get(run, ())) if run else list(range(len(state.doc_ids)))
        chosen = [row_index for row_index in chosen if _has(state, row_index, status)]
        table, draw = _passages(view, state, chosen, is_ranked=bool(run)), _drawn(view, state, chosen, urls)
        sort = "" if run else "-label"
        values |= {"run": run, "retrieved": state.retrieved.get(run, 0), "statuses": statuses}
    return show(request, "query.html", Tables({tab: table}), sort, draw, **values)


def _passages(view: View, state: QueryView, chosen: list[int], *, is_ranked: bool) -> Table:
    """Return passages with the number of runs that retrieve each, and its best rank.

    Args:
        is_ranked: they are in a run's order.
    """
    ranks: dict[int, list[int]] = {}
    for ranking in state.rankings.values():
        for rank, row_index in enumerate(ranking, 1):
            ranks.setdefault(row_index, []).append(rank)
    reached = (state.ratings >= view.min_rating).sum(axis=1).tolist()
    rows = (
        (
            *(state.doc_ids[at], state.labels[at], state.judgments.get(state.doc_ids[at]), reached[at]),
            *(len(ranks.get(at, ())), min(ranks.get(at, ()), default=None), state.texts[at] or ""),
        )
        for at in chosen
    )
    header = ("doc_id", "label", "judgment", "reached", "runs", "best", "text")
    caption = (
        f"Passages in the first {view.depth} ranks of the runs"
        f"{', and other judged passages' * view.pool_judged}; relevant: a label of {view.least} or more"
        f"{f', a judgment of {view.min_relevant} or more' * view.is_judged}"
    )
    short = {"judgment": "judged", "reached": "ratings by item", "best": "best rank"}
    positions, without = (tuple(range(1, len(chosen) + 1)), ("runs", "best")) if is_ranked else ((), ())
    layout = Layout(("doc_id",), without=without, ranks=positions, short=short)
    return Table(header, tuple(rows), layout=layout, caption=caption)


def _drawn(view: View, state: QueryView, chosen: list[int], urls: Urls) -> dict[str, Draw]:
    ids = [state.doc_ids[row_index] for row_index in chosen]
    return {
        "doc_id": lambda at: link(urls.passage(state.query_id, ids[at]), ids[at]),
        "label": lambda at: label(state.labels[chosen[at]], view.least),
        "judgment": lambda at: label(state.judgments.get(ids[at]), view.min_relevant),
        "reached": lambda at: strip(state, chosen[at]),
    }


def _has(state: QueryView, row_index: int, status: str) -> bool:
    """Return True for a passage with a cell of this status; "" is any."""
    if status == "human":
        return any(doc_id == state.doc_ids[row_index] for doc_id, _ in state.human)
    is_gradable = state.keys[row_index] is not None
    if status in ("", "no_text"):
        return not status or not is_gradable
    return is_gradable and bool((state.codes[row_index] == STATUSES[status]).any())


def _items(view: View, state: QueryView) -> Table:
    rows = []
    for column, item in enumerate(state.items):
        ratings = state.ratings[:, column]
        rated = ratings[ratings >= 0]
        mean = float(rated.mean()) if len(rated) else None
        rows.append((item.text, item.importance, len(rated), int((rated >= view.min_rating).sum()), mean))
    short = {"text": "item", "reached": "reach it", "mean": "mean rating"}
    layout = Layout(("text",), ranks=tuple(range(1, len(rows) + 1)), short=short)
    caption = f"Items; a passage reaches an item if it is rated {view.min_rating} or better"
    return Table(
        ("text", "importance", "rated", "reached", "mean"), tuple(rows), layout=layout, caption=caption
    )


ROUTES = [Route("/query/{query_id:name}", query)]
