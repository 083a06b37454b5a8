"""One run: its values on every query, and its ranking for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.gather import run_holes
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.pages.queries import passage_lines, passages_tabled
from trecexam.extensions.page.rendering import NotFoundError, live_of, query_of, render, view_of
from trecexam.extensions.page.tabled import tabled
from trecexam.results.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.extensions.page.view import View
    from trecexam.scores.values import MeasureValues


def run(request: Request) -> Response:
    """A run's values on every query."""
    view = view_of(request)
    name = _name(request, view)
    holes = live_of(request).call(view.own, run_holes, name)
    links = lambda query_id: urls.run_query(name, query_id)  # noqa: E731
    table = tabled(_on_queries(view, name, holes), Address.of(request), "query", links=links)
    row_index = next(row_index for row_index, row in enumerate(view.board.rows) if row.run == name)
    return render(
        request,
        "run.html",
        name=name,
        head=view.runs[name],
        standing=view.board.ranks[row_index],
        row=view.board.rows[row_index],
        measures=view.values.measures,
        table=table,
    )


def run_query(request: Request) -> Response:
    """A run's first ranks for one query."""
    view, state = view_of(request), query_of(request)
    name = _name(request, view)
    values = _of_run(view.values, name)[view.values.query_ids.index(state.query_id)].tolist()
    lines = {line.place: line for line in passage_lines(view, state)}
    ranking = [lines[row_index] for row_index in state.rankings.get(name, ())]
    return render(
        request,
        "run_query.html",
        name=name,
        state=state,
        measures=view.values.measures,
        values=values,
        table=passages_tabled(view, state, ranking, Address.of(request), ranked=True),
        retrieved=state.retrieved.get(name, 0),
    )


def _name(request: Request, view: View) -> str:
    name: str = request.path_params["run"]
    if name not in view.runs:
        raise NotFoundError(f"There is no run '{name}' on the leaderboard.")
    return name


def _of_run(values: MeasureValues, run: str) -> NDArray[np.float64]:
    """A run's values, shape (queries, measures)."""
    return np.asarray(values.of_runs([run]).array[0])


def _on_queries(view: View, name: str, holes: Mapping[str, tuple[int, int | None, int]]) -> Table:
    """A row a query; `rank` is the run's among all runs by the first measure, from 1.

    Args:
        holes: retrieved, unjudged and ungraded passages of each query, see `run_holes`.
    """
    values = _of_run(view.values, name)
    # Ties share the better rank.
    query_ranks = 1 + (view.values.array[:, :, 0] > values[:, 0]).sum(axis=0) if values.shape[1] else None
    theirs = view.official_values
    judged: tuple[str, ...] = () if theirs is None else theirs.measures
    official = {}
    if theirs is not None:
        official = dict(zip(theirs.query_ids, _of_run(theirs, name).tolist(), strict=True))
    header = (
        *("query", "text", *view.values.measures, "rank"),
        *(f"official {measure}" for measure in judged),
        *("retrieved", "unjudged", "ungraded"),
    )
    rows = (
        (
            *(
                query_id,
                text,
                *values[n].tolist(),
                1 if query_ranks is None else int(query_ranks[n]),
            ),
            *official.get(query_id, [None] * len(judged)),
            *holes.get(query_id, (None, None, None)),
        )
        for n, (query_id, text) in enumerate(view.queries.items())
    )
    return Table(header, tuple(rows), layout=Layout(("query",)))


ROUTES = [
    Route("/run/{run:name}", run),
    Route("/run/{run:name}/query/{query_id:name}", run_query),
]
