"""One run: its values on every query, and its ranking for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from trecexam.extensions.page.downloads import named_columns
from trecexam.extensions.page.listing import Address, columns, in_order, listed
from trecexam.extensions.page.rendering import NotFoundError, query_of, render, view_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.view import View


@dataclass(frozen=True)
class OnQuery:
    """A run on one query.

    Attributes:
        values, official: by measure; `official` is empty where the query has no judgments.
        place: of the run among all runs on this query by the first measure, from 1; ties share it.
    """

    query_id: str
    text: str
    values: tuple[float, ...]
    official: tuple[float, ...]
    place: int
    retrieved: int
    unjudged: int | None
    ungraded: int


def run(request: Request) -> Response:
    """A run's values on every query."""
    view, address = view_of(request), Address.of(request)
    name = _name(request, view)
    search_text = address.get("q").casefold()
    rows = [
        line for line in _on_queries(view, name) if search_text in f"{line.query_id}\t{line.text}".casefold()
    ]
    measures = view.values.measures
    theirs = () if view.official_values is None else view.official_values.measures
    keys: dict[str, Callable[[OnQuery], Any]] = {
        "query": lambda line: line.query_id,
        "place": lambda line: line.place,
        "ungraded": lambda line: line.ungraded,
        "unjudged": lambda line: line.unjudged,
        **columns("m", len(measures), lambda line: line.values),
        **columns("o", len(theirs), lambda line: line.official),
    }
    file_columns: dict[str, Callable[[Any], Any]] = {
        **{name: keys[name] for name in ("query", "place", "ungraded", "unjudged")},
        **named_columns(measures, lambda line: line.values),
        **named_columns([f"official {measure}" for measure in theirs], lambda line: line.official),
    }
    standing = next(n for n, row in enumerate(view.board.rows, 1) if row.run == name)
    return render(
        request,
        "run.html",
        name=name,
        head=view.runs[name],
        standing=standing,
        row=view.board.rows[standing - 1],
        measures=measures,
        theirs=theirs,
        rows=in_order(rows, address, keys, "query", file_columns),
    )


def run_query(request: Request) -> Response:
    """A run's first ranks for one query."""
    view, state = view_of(request), query_of(request)
    name = _name(request, view)
    ranking = state.rankings.get(name, ())
    values = view.values.of_run(name)[view.values.query_ids.index(state.query_id)].tolist()
    return render(
        request,
        "run_query.html",
        name=name,
        state=state,
        measures=view.values.measures,
        values=values,
        rows=listed(
            [(rank, place) for rank, place in enumerate(ranking, 1)],
            Address.of(request),
            columns={
                "rank": lambda row: row[0],
                "doc": lambda row: state.doc_ids[row[1]],
                "label": lambda row: state.labels[row[1]],
                "judgment": lambda row: state.judgments.get(state.doc_ids[row[1]]),
            },
        ),
        retrieved=state.retrieved.get(name, 0),
    )


def _name(request: Request, view: View) -> str:
    name: str = request.path_params["run"]
    if name not in view.runs:
        raise NotFoundError(f"There is no run '{name}' on the leaderboard.")
    return name


def _on_queries(view: View, name: str) -> list[OnQuery]:
    at = list(view.runs).index(name)
    values = view.values.of_run(name)
    # Ties share the better place.
    places = 1 + (view.values.values[:, :, 0] > values[:, 0]).sum(axis=0) if values.shape[1] else None
    official: dict[str, tuple[float, ...]] = {}
    if view.official_values is not None:
        theirs = view.official_values
        official = dict(zip(theirs.query_ids, map(tuple, theirs.of_run(name).tolist()), strict=True))
    holes = view.holes
    return [
        OnQuery(
            head.query_id,
            head.text,
            tuple(values[n].tolist()),
            official.get(head.query_id, ()),
            1 if places is None else int(places[n]),
            int(holes.retrieved[at, n]),
            None if holes.unjudged is None else int(holes.unjudged[at, n]),
            int(holes.ungraded[at, n]),
        )
        for n, head in enumerate(view.heads.values())
    ]


ROUTES = [
    Route("/run/{run:name}", run),
    Route("/run/{run:name}/query/{query_id:name}", run_query),
]
