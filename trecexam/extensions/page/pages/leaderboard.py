"""The leaderboard, and a page for each section of an extension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.drawing import count, link, number, whisker
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import NotFoundError, first_view_of, render, view_of
from trecexam.extensions.page.tabled import Draw, tabled
from trecexam.features.leaderboard.differences import compare
from trecexam.results.table import Layout, Table
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard, Row, interval

if TYPE_CHECKING:
    from trecexam.extensions.page.view import View

_SMALL = Markup(' <small class="soft">{}</small>')
_MOVED = Markup('<small class="ci moved">({})</small>')
_INTERVAL = Markup(' <small class="ci">{}</small>')
_DIFFERENCE = Markup(' <small class="ci under">{}</small>')


def start(request: Request) -> Response:
    """The joint leaderboard, or that of a single grader."""
    view = first_view_of(request)
    if view.joint is None or "grader" in request.path_params:
        return leaderboard(request)

    def address(run: str) -> str:
        """The run's page for the first grader that evaluates it."""
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
    """A row per run, best first; `queries` is the number of answered queries unless all are answered."""
    board, official = view.board, view.official_board
    theirs = {} if official is None else {run: (rank, row) for run, rank, row in _ranked(official)}
    measures = () if official is None else official.measures
    header = (
        *("rank", "run", "group", "official_rank", *board.measures),
        *(f"{measure}.stderr" for measure in board.measures),
        *(f"official {measure}" for measure in measures),
        "queries",
    )
    rows = []
    for _, rank, row in _ranked(board):
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
    # The first score has room on a phone.
    first = (*board.measures[:1], "group", "official_rank")
    layout = Layout(("run",), first, without=("rank", "queries"), ranks=board.ranks, short=short)
    return Table(header, tuple(rows), layout=layout)


def _draw(view: View, compared: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Draw]:
    """Draws means with errors and intervals, or differences from the baseline, and changes of rank."""
    rows, n_queries = view.board.rows, view.board.n_queries
    ranks, official = view.board.ranks, view.official_board
    theirs = {} if official is None else {run: rank for run, rank, _ in _ranked(official)}

    def run(row_index: int) -> Markup:
        name, answered = rows[row_index].run, rows[row_index].n_answered
        few = _SMALL.format(plural(answered, "query")) if answered < n_queries else ""
        graded = rows[row_index].graded
        part = _SMALL.format(f"{graded[0]:,} of {graded[1]:,} cells graded") if graded else ""
        return link(urls.run(name), name) + few + part

    def official_rank(row_index: int) -> Markup:
        rank, ours = theirs.get(rows[row_index].run), ranks[row_index]
        moved = "" if rank is None or ours is None or rank == ours else _MOVED.format(f"{rank - ours:+d}")
        return Markup("{}{}").format(moved, count(rank))

    def mean(measure: int) -> Draw:
        scores = [row.scores[measure] for row in rows]
        name = view.board.measures[measure]
        ends = [interval(row.scores[measure], row.n_queries, measure=name) for row in rows]
        scale = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=0.0)

        def of_run(row_index: int) -> Markup:
            score = scores[row_index]
            comparison = compared[measure].get(rows[row_index].run) if compared else None
            has_error = score.exists and rows[row_index].n_queries > 1 and not compared
            beside = _INTERVAL.format(f"± {number(score.stderr)}") if has_error else ""
            if comparison is not None:
                mark = ("▲" if comparison["difference"] > 0 else "▼") if comparison["reject"] else ""
                p = number(comparison["p-value corrected"])
                beside = _DIFFERENCE.format(f"{comparison['difference']:+.3f}, p {p} {mark}".rstrip())
            drawn = whisker(score.mean, ends[row_index], scale) if measure == 0 and has_error else ""
            return Markup("{} {}{}").format(number(score.mean), beside, drawn)

        return of_run

    means = {name: mean(n) for n, name in enumerate(view.board.measures)}
    return {"run": run, "official_rank": official_rank, **means}


def _ranked(board: Leaderboard) -> Iterator[tuple[str, int | None, Row]]:
    """Each run, its rank, and its row."""
    return ((row.run, rank, row) for rank, row in zip(board.ranks, board.rows, strict=True))


def _compared(view: View, baseline: str) -> tuple[dict[str, dict[str, Any]], ...]:
    """For each measure, the comparison of each run with the baseline."""
    values = view.values
    return tuple(
        compare(measure, values.runs, values.array[:, :, measure_index], baseline).of_baseline()
        for measure_index, measure in enumerate(values.measures)
    )


def section(request: Request) -> Response:
    """A section that an extension has in the report."""
    name = request.path_params["section"]
    report_section = next((each for each in view_of(request).sections if each.name == name), None)
    if report_section is None:
        raise NotFoundError(f"The report has no section '{name}' (any more).")
    return render(request, "section.html", section=report_section)


ROUTES = [Route("/", start), Route("/section/{section:name}", section)]
