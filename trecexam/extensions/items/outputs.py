"""Grades and item quality in the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError
from trecexam.extensions.items.grades_plot import GRADES, grades_plot
from trecexam.extensions.items.items_plot import ItemSummary, items_plot, items_table
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS, nothing_graded
from trecexam.line.evaluation import own_leaderboard
from trecexam.line.item_values import item_values
from trecexam.line.output_files import Feature, FeaturePlot, PlotMeasures
from trecexam.line.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.scores.ratings import MAX_RATING, covered_items
from trecexam.tables.plots.model import Plot
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import sentence

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

#: Items that the page shows of each list; the file has the rest.
_ITEMS = 20
_LAYOUT = Layout(
    ("query_id", "item_id"),
    ("text", "mean_rating", "share_reaching", "runs_covering", "discrimination", "unparsed"),
    most=6,
)
#: Half of what is to be expected of an item before anything is known of it.
_WEAK = 0.5
#: The codes of a cell in the order of GRADES.
_CODES = (*range(MAX_RATING + 1), UNPARSED, REFUSED, ERROR, MISSING)


class _Plots(NamedTuple):
    """The available plots, reasons for missing ones, and the plotted items."""

    plots: Mapping[str, Plot]
    why_no_grades: str
    why_no_ratings: str
    rated: Quality | None = None


def _plots(track: Assessment) -> _Plots:
    scores, depth = track.config.scores, track.config.track.depth
    runs = [row.run for row in own_leaderboard(track).rows]
    if not runs:
        return _Plots({}, NO_RUNS, NO_RUNS)
    bank = quality(track, runs)
    plots: list[Plot] = []
    is_graded = bool(bank.grades.sum())
    if is_graded:
        plots.append(grades_plot(bank.grades))
    rated = any(item.rated for item in bank.live)
    if rated:
        plots.append(items_plot(bank.items, scores.min_rating, depth))
    why = nothing_graded(track)
    by_name = {plot.name: plot for plot in plots}
    return _Plots(by_name, "" if is_graded else why, "" if rated else why, bank if rated else None)


def items_report(track: Assessment) -> tuple[ReportPart, ...]:
    """The sections "grades" and "items"."""
    made = _plots(track)
    no_ratings, no_grades = (why and sentence(why) for why in (made.why_no_ratings, made.why_no_grades))

    def of(*names: str) -> tuple[Plot, ...]:
        return tuple(made.plots[name] for name in names if name in made.plots)

    lists = {} if made.rated is None else dict(_lists(made.rated))
    return (
        ReportPart("grades", Tables({}, plots=of("grades")), "Grades", why=no_grades),
        ReportPart(
            "items",
            Tables(lists, plots=of("items")),
            "Item quality",
            why=no_ratings,
            files=("plots/items.tsv",) if lists else (),
            rows=_ITEMS,
            folded=True,
            link="Items",
        ),
    )


def _lists(bank: Quality) -> Iterator[tuple[str, Table]]:
    """Lists of items that an organizer should check, by reason."""
    live = bank.live
    hard = sorted((i for i in live if i.covering == 0), key=lambda i: (_number(i.mean_rating), i.query_id))
    easy = sorted(
        (i for i in live if i.covering == i.n_runs), key=lambda i: (-_number(i.mean_rating), i.query_id)
    )
    weak = sorted((i for i in live if i.discrimination < _WEAK), key=lambda i: (i.discrimination, i.query_id))
    unread = sorted((i for i in live if i.unparsed), key=lambda i: (-i.unparsed, i.query_id))
    retired = [i for i in bank.items if i.retired]
    vital = [i for i in hard if i.importance == "vital"]
    for title, note, items in (
        (
            "Covered by no run",
            "Too hard, about something no run finds, or not to be answered from a passage.",
            hard,
        ),
        ("Vital, and covered by no run", "What an answer must have, and none has.", vital),
        ("Covered by all runs", "These tell no runs apart.", easy),
        (
            "Tell runs apart badly",
            "Able runs cover these hardly more often than others: the item's discrimination in `trecexam "
            f"exam fit` is below {_WEAK:g}.",
            weak,
        ),
        (
            "With answers that could not be read",
            "Unparsed or refused; `trecexam verify grading` shows them.",
            unread,
        ),
        ("Retired", "No longer asked about; their grades are kept.", retired),
    ):
        if items:
            caption = f"{title}: {len(items):,}. {note}"
            yield title, replace(items_table(items), layout=_LAYOUT, caption=caption)


def _number(value: float) -> float:
    return value if value == value else -1.0


def _plot_named(name: str) -> Callable[[Assessment, PlotMeasures], Plot]:
    def make(track: Assessment, plot_measures: PlotMeasures) -> Plot:
        made = _plots(track)
        if name not in made.plots:
            why = made.why_no_grades if name.startswith("grades") else made.why_no_ratings
            raise TrecexamError(why, path=track.folder.root)
        return made.plots[name]

    return make


ITEMS = Feature(
    report=items_report,
    early=True,
    plots={
        name: FeaturePlot(what, _plot_named(name))
        for name, what in {
            "grades": "how often each rating was given",
            "items": "the items by mean rating and by how many runs cover them",
        }.items()
    },
)


assert len(_CODES) == len(GRADES)


@dataclass(frozen=True, eq=False)
class Quality:
    """Statistics of a track's items.

    Attributes:
        items: all, retired ones last.
        grades: how often each of GRADES was given to items that are not retired; shape (len(GRADES),).
    """

    items: tuple[ItemSummary, ...]
    grades: NDArray[np.int64]

    @property
    def live(self) -> tuple[ItemSummary, ...]:
        """The active items."""
        return tuple(item for item in self.items if not item.retired)


def quality(track: Assessment, runs: Sequence[str]) -> Quality:
    """The items of a loaded track.

    Args:
        runs: the names of the runs that count.
    """
    scores = track.config.scores
    depth = track.config.track.depth
    items: list[ItemSummary] = []
    grades = np.zeros(len(GRADES), np.int64)
    discriminations = item_values(track, "discrimination")
    row_of = {run: row for row, run in enumerate(track.runs)}
    rows = [row_of[run] for run in runs]
    for q in track.ratings():
        sheet = track.sheets[q.query_id]
        gradable, flat, n_items = sheet.gradable, sheet.flat(), len(sheet.items)
        columns = [sheet.where(gradable & (flat == code))[1] for code in _CODES]
        counts = np.stack([np.bincount(of_code, minlength=n_items) for of_code in columns], axis=1)
        ranks = track.pool[q.query_id].ranks[rows, :depth]
        reached = covered_items(q, ranks, scores.min_rating)
        rated = q.ratings >= 0
        n_rated, total = rated.sum(axis=0), np.where(rated, q.ratings, 0).sum(axis=0, dtype=np.int64)
        reaching = (q.ratings >= scores.min_rating).sum(axis=0)
        unread = counts[:, [_CODES.index(UNPARSED), _CODES.index(REFUSED)]].sum(axis=1)
        for n, item in enumerate(track.bank.items[q.query_id]):
            items.append(
                ItemSummary(
                    q.query_id,
                    item.item_id,
                    item.text,
                    item.kind,
                    item.importance,
                    passages=int(counts[n].sum()),
                    rated=int(n_rated[n]),
                    unparsed=int(unread[n]),
                    mean_rating=int(total[n]) / int(n_rated[n]) if n_rated[n] else float("nan"),
                    reaching=int(reaching[n]),
                    covering=int(reached[:, n].sum()),
                    n_runs=len(runs),
                    # Further digits may differ between machines, and so would the outputs.
                    discrimination=round(discriminations.get((q.query_id, item.item_id), math.nan), 3),
                )
            )
        grades += counts.sum(axis=0)
    retired = [
        ItemSummary(query_id, item.item_id, item.text, item.kind, item.importance, retired=True)
        for query_id, retired_items in track.bank.retired.items()
        for item in retired_items
    ]
    return Quality((*items, *retired), grades)
