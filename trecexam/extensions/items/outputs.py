"""Grades and item quality in the report, and the plot of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trecexam.errors import TrecexamError, sentence
from trecexam.extensions.items.items_plot import items_plot
from trecexam.extensions.items.quality import ItemRow, grades_table, item_rows
from trecexam.feature import Feature
from trecexam.grades.diagnostics import NO_RUNS, nothing_graded
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.result import Plot, Tables
from trecexam.results.table import Layout, Table

_FIRST = ("text", "mean_rating", "share_reaching", "runs_covering", "unparsed")
_HIDDEN = ("kind", "passages", "rated", "n_runs", "share_of_runs")
_LAYOUT = Layout(("query_id", "item_id"), _FIRST, without=_HIDDEN)
_GRADES_LEAD = (
    "The grader's own answers for every passage and item of the pool that has a text. People's ratings are "
    "not among them."
)


def _page(track: GradedTrack, page: Page) -> None:
    """Add the sections "grades" and "items"."""
    grades, items = grades_table(track), item_rows(track)
    why = "" if items else sentence(_why_no_ratings(track))
    if items and grades.rows:
        page.add("grades", Tables({"grades": grades}), title="Grades", lead=_GRADES_LEAD)
    else:
        page.add("grades", title="Grades", why=why)
    lists = Tables(dict(_lists(items)))
    page.add("items", lists, title="Item quality", why=why, folded=True, link="Items")


def _why_no_ratings(track: GradedTrack) -> str:
    return nothing_graded(track) if track.runs else NO_RUNS


def _lists(items: Sequence[ItemRow]) -> Iterator[tuple[str, Table]]:
    """Yield lists of items that an organizer should check, by reason."""
    live = [item for item in items if not item.retired]
    hard = sorted((i for i in live if i.runs_covering == 0), key=lambda i: (i.mean_rating or -1, i.query_id))
    easy = sorted(
        (i for i in live if i.share_of_runs == 1), key=lambda i: (-(i.mean_rating or 0), i.query_id)
    )
    unread = sorted((i for i in live if i.unparsed), key=lambda i: (-(i.unparsed or 0), i.query_id))
    vital = [item for item in hard if item.importance == "vital"]
    no_run = "Too hard, about something no run finds, or not to be answered from a passage."
    unparsed = "Unparsed or refused; `trecexam verify grading` shows them."
    for title, note, listed in (
        ("Covered by no run", no_run, hard),
        ("Vital, and covered by no run", "What an answer must have, and none has.", vital),
        ("Covered by all runs", "These tell no runs apart.", easy),
        ("With answers that could not be read", unparsed, unread),
        ("Retired", "No longer asked about; their grades are kept.", [i for i in items if i.retired]),
    ):
        if listed:
            caption = f"{title}: {len(listed):,}. {note}"
            yield title, Table(ItemRow._fields, tuple(listed), layout=_LAYOUT, caption=caption)


def _plot(track: GradedTrack) -> Plot:
    items = item_rows(track)
    if not items:
        raise TrecexamError(_why_no_ratings(track), path=track.folder.root)
    return items_plot(items, track.config.scores.min_rating, track.config.track.depth)


ITEMS = Feature(
    page=_page,
    early=True,
    plots={"items": ("the items by mean rating and by how many runs cover them", _plot)},
)
