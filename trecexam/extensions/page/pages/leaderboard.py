"""The leaderboard, and what extensions say of the runs beside it: a page each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.drawing import count, interval, link, number
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import NotFoundError, first_view_of, render, view_of
from trecexam.extensions.page.tabled import Draw, tabled
from trecexam.features.leaderboard.differences import compare
from trecexam.tables.table import Layout, Table

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.view import View

_SMALL = Markup(' <small class="soft">{}</small>')


def start(request: Request) -> Response:
    """The leaderboard of all graders; of one, its own."""
    view = first_view_of(request)
    if view.joint is None or "grader" in request.path_params:
        return leaderboard(request)

    def address(run: str) -> str:
        """The run's page, of the first grader that looks at it."""
        whose = next((name for name, other in view.others.items() if run in other.runs), view.own)
        return urls.run(run) if run in view.runs else urls.grader(whose, f"/run/{urls.segment(run)}")

    return render(request, "joint.html", table=tabled(view.joint.table, Address.of(request), links=address))


def leaderboard(request: Request) -> Response:
    """All runs with their means, by any column."""
    view, address = view_of(request), Address.of(request)
    baseline = address.get("baseline")
    compared = _compared(view, baseline) if baseline in view.runs else ()
    return render(
        request,
        "leaderboard.html",
        board=view.board,
        theirs=() if view.official_board is None else view.official_board.measures,
        baseline=baseline if compared else "",
        compared=compared,
        table=tabled(_table(view), address, links=urls.run, draw=_draw(view, compared)),
        n_queries=0 if view.official_board is None else view.official_board.n_queries,
    )


def _table(view: View) -> Table:
    """A row a run, best first; `queries` is how many of the bank's it answers where these are not all."""
    board, official = view.board, view.official_board
    theirs = {} if official is None else {row.run: (n, row) for n, row in enumerate(official.rows, 1)}
    measures = () if official is None else official.measures
    header = (
        *("rank", "run", "group", "official_rank", *board.measures),
        *(f"{measure}.stderr" for measure in board.measures),
        *(f"official {measure}" for measure in measures),
        "queries",
    )
    rows = []
    for rank, row in enumerate(board.rows, 1):
        official_rank, of = theirs.get(row.run, (None, None))
        rows.append(
            (
                *(rank, row.run, view.groups.get(row.run), official_rank),
                *(score.mean for score in row.scores),
                *(score.stderr for score in row.scores),
                *((score.mean for score in of.scores) if of is not None else [None] * len(measures)),
                row.n_answered,
            )
        )
    short = {"official_rank": "official #"}
    layout = Layout(("run",), without=("rank", "queries"), ranks=tuple(range(1, len(rows) + 1)), short=short)
    return Table(header, tuple(rows), layout=layout)


def _draw(view: View, compared: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Draw]:
    """Means with their intervals, or with what they differ from the baseline by; how far ranks differ."""
    rows, t, n_queries = view.board.rows, view.t, view.board.n_queries
    official = () if view.official_board is None else view.official_board.rows
    theirs = {row.run: n for n, row in enumerate(official, 1)}

    def run(place: int) -> Markup:
        name, answered = rows[place].run, rows[place].n_answered
        few = _SMALL.format(f"{answered:,} queries") if answered < n_queries else ""
        return link(urls.run(name), name) + few

    def official_rank(place: int) -> Markup:
        rank = theirs.get(rows[place].run)
        moved = _SMALL.format(f"{rank - place - 1:+d}") if rank not in (None, place + 1) else ""
        return Markup("{} {}").format(moved, count(rank))

    def mean(measure: int) -> Draw:
        scores = [row.scores[measure] for row in rows]
        low = min((score.mean - t * score.stderr for score in scores), default=0.0)
        high = max((score.mean + t * score.stderr for score in scores), default=0.0)

        def of_run(place: int) -> Markup:
            score = scores[place]
            known = compared[measure].get(rows[place].run) if compared else None
            beside = _SMALL.format(f"± {number(t * score.stderr, 3)}") if t and not compared else ""
            if known is not None:
                mark = ("▲" if known["difference"] > 0 else "▼") if known["reject"] else ""
                p = number(known["p-value corrected"], 3)
                beside = _SMALL.format(f"{known['difference']:+.3f}, p {p} {mark}".rstrip())
            drawn = interval(score, t * score.stderr, low, high) if measure == 0 else ""
            return Markup("{} {}{}").format(number(score.mean), beside, drawn)

        return of_run

    means = {name: mean(n) for n, name in enumerate(view.board.measures)}
    return {"run": run, "official_rank": official_rank, **means}


def _compared(view: View, baseline: str) -> tuple[dict[str, dict[str, Any]], ...]:
    """For each measure, facts about each run against the baseline."""
    values = view.values
    return tuple(
        compare(measure, values.runs, values.array[:, :, place], baseline).of_baseline()
        for place, measure in enumerate(values.measures)
    )


def section(request: Request) -> Response:
    """A section that an extension has in the report."""
    name = request.path_params["section"]
    found = next((each for each in view_of(request).sections if each.name == name), None)
    if found is None:
        raise NotFoundError(f"There is nothing here called '{name}' (any more).")
    return render(request, "section.html", section=found)


ROUTES = [Route("/", start), Route("/section/{section:name}", section)]
