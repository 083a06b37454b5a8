"""The report of a track with several graders: their leaderboard, how alike they order runs, who they are."""

from __future__ import annotations

from dataclasses import replace

from trecexam.features.correlation.joint import compare_all
from trecexam.features.correlation.paired_scores import NothingToCompareError
from trecexam.features.leaderboard.joint_plot import joint_plot
from trecexam.files.kept import read_object
from trecexam.line.loaded_track import LoadedTrack
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.earlier_files import stale_files
from trecexam.outputs.page.model import PagePart, Report
from trecexam.outputs.page.render import render
from trecexam.outputs.report.contents import cautions, rejected_part
from trecexam.scores.leaderboard import Leaderboard
from trecexam.tables.notes import each_once, of_grader
from trecexam.tables.plots.canvas import draw
from trecexam.tables.result import Tables
from trecexam.tables.section import Picture, ReportPart
from trecexam.tables.table import Table, Value
from trecexam.tables.text import sentence

#: Rows that the report lists of runs, and of pairs of columns.
_ROWS = 200
_LEAD = (
    "Automatic evaluation by several graders. They differ in the texts that they rate or in what they ask; "
    "runs are scored by these ratings."
)
_MEANS = "Means over each grader's queries; below each mean is ± its standard error."
_TAUS = (
    "Rank correlation of each pair of columns over the runs that have both, with 95% intervals over queries. "
    "Columns of document graders are also compared with the official judgments. `trecexam correlate` takes "
    "other measures."
)


def joint_page(track: LoadedTrack, board: Leaderboard, rejected: Table) -> bytes:
    """report.html of the track; the report of each grader is its own page.

    Args:
        board: the leaderboard of all graders.
        rejected: out/rejected.tsv.
    """
    every = track.assessments
    counts = [each.counts for each in every.values()]
    numbers = {
        "runs": len(board.rows),
        "graders": len(every) + len(track.unable),
        "cells": sum(each.cells for each in counts),
        "cells rated": sum(each.ok for each in counts),
    }
    complete = {
        name: bool(read_object(each.folder.manifest_path).get("complete")) for name, each in every.items()
    }
    cautions_by_grader = {
        name: tuple(cautions(each, complete=complete[name])) for name, each in every.items()
    }
    notes = each_once({name: each.notes for name, each in every.items()}, of_grader)
    out = track.folder.shared_out
    pages = {
        name: grader_folder.output("report.html")
        for name, grader_folder in usable_folders(track.folder).items()
    }
    plots = (joint_plot(track),) if board.rows else ()
    stale = stale_files(track.folder, track.unable)
    report = Report(
        title=track.folder.config.report.title,
        lead=_LEAD,
        numbers=tuple((f"{count:,}", what) for what, count in numbers.items()),
        cautions=(
            *(f"{name} cannot go on; {line}" for name, line in stale.items()),
            *each_once(cautions_by_grader, of_grader),
        ),
        parts=(
            PagePart(
                ReportPart(
                    "leaderboard",
                    Tables({"leaderboard": board.table}, board.notes),
                    "All graders",
                    lead=_MEANS if board.rows else "",
                    files=("leaderboard.tsv",),
                    rows=_ROWS,
                ),
                tuple(Picture(plot, draw(plot)) for plot in plots),
                plots="",
            ),
            PagePart(_taus(track)),
            PagePart(ReportPart("graders", Tables({"graders": _graders(track)}), "Graders")),
            PagePart(rejected_part(rejected, notes)),
        ),
        provenance={},
        pages={name: page.relative_to(out).as_posix() for name, page in pages.items() if page.exists()},
    )
    return render(report)


def _taus(track: LoadedTrack) -> ReportPart:
    part = ReportPart("correlation", title="Rank correlation of graders", rows=_ROWS)
    try:
        return replace(part, result=compare_all(track), lead=_TAUS)
    except NothingToCompareError as error:
        return replace(part, why=sentence(error.reason))


def _graders(track: LoadedTrack) -> Table:
    """A row a grader: what it grades, its model, and how far it is."""
    rows: list[tuple[Value, ...]] = [
        (
            name,
            each.kind.name,
            " ".join(
                str(each.grader.identity[key]) for key in ("grader", "model") if each.grader.identity.get(key)
            ),
            len(each.bank.query_ids),
            each.counts.cells,
            each.counts.ok,
            "",
        )
        for name, each in track.assessments.items()
    ]
    rows += [(name, "", "", None, None, None, str(error)) for name, error in track.unable.items()]
    return Table(("grader", "kind", "asks", "queries", "cells", "rated", "why"), tuple(rows))
