"""The leaderboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.downloads import named_columns
from trecexam.extensions.page.listing import Address, columns, in_order
from trecexam.extensions.page.rendering import first_view_of, render, view_of
from trecexam.extensions.page.tabled import tabled
from trecexam.features.leaderboard.differences import compare

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.view import View
    from trecexam.scores.leaderboard import Leaderboard, Row, Score


@dataclass(frozen=True)
class LeaderboardLine:
    """A run's line: its place by the first measure, on both sides."""

    rank: int
    row: Row
    official: tuple[Score, ...]
    official_rank: int | None


def start(request: Request) -> Response:
    """The leaderboard of all graders; of one, its own."""
    view = first_view_of(request)
    if view.joint is None or "grader" in request.path_params:
        return leaderboard(request)

    def link(run: str) -> str:
        """The run's page, of the first grader that looks at it."""
        whose = next((name for name, other in view.others.items() if run in other.runs), view.own)
        return urls.run(run) if run in view.runs else urls.grader(whose, f"/run/{urls.segment(run)}")

    table = tabled(view.joint.table, Address.of(request))
    return render(request, "joint.html", table=table, rows=table.rows, link=link)


def leaderboard(request: Request) -> Response:
    """All runs with their means, by any column."""
    view, address = view_of(request), Address.of(request)
    measures = view.board.measures
    theirs = () if view.official_board is None else view.official_board.measures
    search_text = address.get("q").casefold()
    rows = [
        line for line in standings(view.board, view.official_board) if search_text in line.row.run.casefold()
    ]
    baseline = address.get("baseline")
    compared = _compared(view, baseline) if baseline in view.runs else ()
    keys: dict[str, Callable[[LeaderboardLine], Any]] = {
        "rank": lambda line: line.rank,
        "run": lambda line: line.row.run,
        "group": lambda line: view.groups.get(line.row.run),
        "official_rank": lambda line: line.official_rank,
        **columns("m", len(measures), lambda line: [score.mean for score in line.row.scores]),
        **columns("o", len(theirs), lambda line: [score.mean for score in line.official]),
    }
    file_columns: dict[str, Callable[[Any], Any]] = {
        **{name: keys[name] for name in ("rank", "run", "group")},
        **named_columns(measures, lambda line: [score.mean for score in line.row.scores]),
        **named_columns(
            [f"{measure}.stderr" for measure in measures],
            lambda line: [score.stderr for score in line.row.scores],
        ),
        "queries": lambda line: line.row.n_answered,
        "official_rank": keys["official_rank"],
        **named_columns(
            [f"official {measure}" for measure in theirs],
            lambda line: [score.mean for score in line.official],
        ),
    }
    return render(
        request,
        "leaderboard.html",
        board=view.board,
        theirs=theirs,
        baseline=baseline if compared else "",
        compared=compared,
        rows=in_order(rows, address, keys, "rank", file_columns),
        n_queries=0 if view.official_board is None else view.official_board.n_queries,
    )


def _compared(view: View, baseline: str) -> tuple[dict[str, dict[str, Any]], ...]:
    """For each measure, what is known of each run against the baseline."""
    values = view.values
    return tuple(
        compare(measure, values.runs, values.values[:, :, place], baseline).of_baseline()
        for place, measure in enumerate(values.measures)
    )


def standings(board: Leaderboard, official: Leaderboard | None) -> list[LeaderboardLine]:
    """The runs in the leaderboard's order."""
    theirs = {} if official is None else {row.run: (n, row) for n, row in enumerate(official.rows, 1)}
    return [
        LeaderboardLine(
            n, row, theirs[row.run][1].scores if row.run in theirs else (), theirs.get(row.run, (None,))[0]
        )
        for n, row in enumerate(board.rows, 1)
    ]


ROUTES = [Route("/", start)]
