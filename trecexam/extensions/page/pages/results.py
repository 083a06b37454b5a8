"""The leaderboard, a run, and any other result of the track."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.drawing import link
from trecexam.extensions.page.gather import (
    compared_with,
    disagreements,
    grading,
    queries,
    rejected,
    run_values,
)
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import (
    NotFoundError,
    first_view_of,
    live_of,
    render,
    show,
    urls_of,
    view_of,
)

if TYPE_CHECKING:
    from trecexam.grades.graded_track import GradedTrack
    from trecexam.results.result import Result

#: The name in an address -> the title, and the call that gives the result.
RESULTS: Mapping[str, tuple[str, Callable[[GradedTrack], Result]]] = {
    "queries": ("Queries", queries),
    "disagreements": ("Disagreements with the official judgments", disagreements),
    "rejected": ("Rejected", rejected),
    "grading": ("Grading", grading),
}


def start(request: Request) -> Response:
    """Show the joint leaderboard, or that of a single grader."""
    view, urls = first_view_of(request), urls_of(request)
    if view.joint is None or "grader" in request.path_params:
        return leaderboard(request)
    runs = view.joint.table["run"]

    def run(at: int) -> Markup:
        """Draw a link to the run's page of the first grader that evaluates it."""
        owner = next((each for each in (view, *view.other_views.values()) if runs[at] in each.runs), view)
        return link(urls.of(owner.grader_name).run(runs[at]), runs[at])

    return show(request, "joint.html", view.joint, draw={"run": run})


def leaderboard(request: Request) -> Response:
    """Show all runs with their means, by any column, or their differences from a baseline."""
    view, baseline = view_of(request), Address.of(request).get("baseline")
    is_compared = baseline in view.runs
    result = live_of(request).call(view.grader_name, compared_with, baseline) if is_compared else view.board
    return show(request, "leaderboard.html", result, baseline=baseline if is_compared else "")


def run(request: Request) -> Response:
    """Show a run's values on every query."""
    view, name, urls = view_of(request), request.path_params["run"], urls_of(request)
    if name not in view.runs:
        raise NotFoundError(f"There is no run '{name}' on the leaderboard.")
    result = live_of(request).call(view.grader_name, run_values, name)
    ids = result.table["query_id"]
    draw = {"query_id": lambda at: link(urls.query(ids[at], run=name), ids[at])}
    means = next(row for row in view.board.table if row["run"] == name)
    return show(request, "run.html", result, draw=draw, name=name, means=means)


def result(request: Request) -> Response:
    """Show a result of the track."""
    name = request.path_params["result"]
    if name not in RESULTS:
        raise NotFoundError(f"There is no result '{name}' here: the results are {', '.join(RESULTS)}.")
    title, function = RESULTS[name]
    answer = live_of(request).call(view_of(request).grader_name, function)
    return show(request, "result.html", answer, title=title)


def section(request: Request) -> Response:
    """Show a section that an extension has in the report."""
    name = request.path_params["section"]
    report_section = next((each for each in view_of(request).sections if each.name == name), None)
    if report_section is None:
        raise NotFoundError(f"The report has no section '{name}' (any more).")
    return render(request, "section.html", section=report_section)


ROUTES = [
    Route("/", start),
    Route("/run/{run:name}", run),
    Route("/result/{result:name}", result),
    Route("/section/{section:name}", section),
]
