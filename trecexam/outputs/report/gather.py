"""The report of a track: which plots apply, drawn, and the page around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trecexam.features.correlation.paired_scores import nothing_to_compare
from trecexam.features.correlation.plots import official_plots
from trecexam.features.items.coverage_plot import coverage_plot
from trecexam.features.items.grades_plot import grades_by_item_plot, grades_plot
from trecexam.features.items.items_plot import items_plot
from trecexam.features.items.quality import Quality, quality
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.line.diagnostics import nothing_graded
from trecexam.line.rejected import not_computable
from trecexam.outputs.page.render import render
from trecexam.outputs.report.contents import page_of, sentence
from trecexam.outputs.report.findings import Findings
from trecexam.tables.plots.drawings import Drawings, plot_files
from trecexam.tables.plots.model import Plot
from trecexam.tables.section import Picture

if TYPE_CHECKING:
    from trecexam.line.loaded import LoadedTrack


def report_files(track: LoadedTrack, found: Findings) -> Iterator[tuple[str, bytes]]:
    """report.html and the plots' files, by their names in out/."""
    folder = track.folder
    runs = [row.run for row in found.board.rows]
    quality_ = quality(track, runs)
    plots, why = _plots(track, found, quality_)
    drawings = Drawings(folder.out, folder.state / "plots.json")
    pictures = {name: Picture(plot, drawings.of(plot)) for name, plot in plots.items()}
    drawings.remember()
    for one in pictures.values():
        yield from plot_files(one.plot, one.drawing)
    yield "report.html", render(page_of(track, found, quality_, pictures, why))


def _plots(track: LoadedTrack, found: Findings, items: Quality) -> tuple[dict[str, Plot], dict[str, str]]:
    """The plots that apply, and by section why others do not."""
    scores, depth = track.config.scores, track.config.track.depth
    plots: dict[str, Plot] = {}
    why = {
        "human": "No person has rated anything; `trecexam override` does.",
        "rejected": "Nothing was rejected.",
    }
    runs = [row.run for row in found.board.rows]
    no_runs = "No runs yet: drop some into the track's folder for runs."
    if runs:
        plots["leaderboard"] = leaderboard_plot(found.board)
    else:
        why |= dict.fromkeys(("leaderboard", "official", "coverage", "grades", "items", "holes"), no_runs)
    if found.compared is not None and found.outliers is not None:
        plots |= official_plots(track, found.compared, found.outliers)
        if "thresholds" not in plots:
            why["thresholds"] = "min_rating has no bearing on any of the track's measures."
    elif runs:
        why["official"] = sentence(not_computable(track) or nothing_to_compare(track).reason)
    if found.agreed is None:
        none = track.official is None
        why["agreement"] = (
            "No official judgments." if none else "No passage has both an automatic label and a judgment."
        )
    if not runs:
        return plots, why
    total = items.grades.sum(axis=0)
    if total.sum():
        plots["grades"] = grades_plot(total)
        asked = [(item.query_id, item.item_id) for item in items.live]
        plots["grades_by_item"] = grades_by_item_plot(asked, items.grades)
    else:
        why["grades"] = sentence(nothing_graded(track))
    if any(item.rated for item in items.live):
        plots["coverage"] = coverage_plot(runs, items.covered, scores.min_rating, depth)
        plots["items"] = items_plot(items.items, scores.min_rating, depth)
    else:
        nothing = sentence(nothing_graded(track))
        why |= {"coverage": nothing, "items": nothing}
    return plots, why
