"""HTML report: all sections of one grader, or the shared results of several graders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trecexam.errors import sentence
from trecexam.feature import Feature
from trecexam.features.correlation.comparison import compare_all
from trecexam.features.correlation.paired_scores import NothingToCompareError
from trecexam.features.leaderboard.board import boards_of
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.files.kept import read_object
from trecexam.graders.base import identity_digest
from trecexam.grades.diagnostics import POLICY, unread_answers, without_label
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.inputs.track_graders import each_once, of_grader, usable_folders
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Table, Value, to_json
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard

PAGE = "report.html"
#: Maximum rows on the page for rejected inputs, for inputs, and for runs and column pairs of several graders;
#: the files have all rows.
_ROWS, _INPUTS, _JOINT_ROWS = 50, 300, 200
_LEAD = (
    "Automatic evaluation with a test bank: a grader rates how well each retrieved passage answers each "
    "item, and runs are scored by these ratings."
)
_JOINT_LEAD = (
    "Automatic evaluation by several graders. They differ in the texts that they rate or in what they ask; "
    "runs are scored by these ratings."
)
_MEANS = "Means over each grader's queries; below each mean is ± its standard error."
_TAUS = (
    "Rank correlation of each pair of columns over the runs that have both, with 95% intervals over queries. "
    "Columns of document graders are also compared with the official judgments. `trecexam correlate` takes "
    "other measures."
)


def report(
    track: GradedTrack,
    features: Iterable[Feature],
    rejected: Table,
    versions: Mapping[str, str | None],
    *,
    complete: bool,
) -> dict[str, bytes]:
    """Return the report of a grader and the files of its plots, by their names in out/.

    Args:
        rejected: out/rejected.tsv.
        versions: package -> version, None where it is not installed.
        complete: True if the grader was asked about all cells.
    """
    counts, folder = track.counts, track.folder
    page = Page(_LEAD, folder.link, pdf=track.config.report.pdf)
    for feature in features:
        if feature.page is not None and feature.applies(track):
            feature.page(track, page)
    _add_rejected(page, rejected, track.notes)
    title = track.config.report.title
    html = page.to_html(
        f"{title}, {track.name}" if folder.is_one_of_several else title,
        {
            "runs": len(track.runs),
            "queries": len(track.bank.query_ids),
            "items": len(track.bank),
            "pooled passages": counts.passages,
            "cells": counts.cells,
            "cells rated": counts.ok,
        },
        list(_cautions(track, complete=complete)),
        _provenance(track, versions),
        {"all graders": "../report.html"} if folder.is_one_of_several else {},
    )
    return {**page.files, PAGE: html}


def joint_report(track: LoadedTrack, board: Leaderboard, rejected: Table, stale: Mapping[str, str]) -> bytes:
    """Return the report of several graders, with links to the report of each grader.

    Args:
        board: the leaderboard of all graders.
        rejected: out/rejected.tsv.
        stale: grader -> a sentence that the grader failed and has files of an earlier update.
    """
    every, page = track.graded_tracks, Page(_JOINT_LEAD)
    plots = (leaderboard_plot(board, boards_of(track, None)),) if board.has_scores else ()
    page.add(
        "leaderboard",
        Tables({"leaderboard": board.table}, board.notes, plots),
        title="All graders",
        lead=_MEANS if board.rows else "",
        files=("leaderboard.tsv",),
        rows=_JOINT_ROWS,
    )
    title = "Rank correlation of graders"
    try:
        page.add("correlation", compare_all(track), title=title, lead=_TAUS, rows=_JOINT_ROWS)
    except NothingToCompareError as error:
        page.add("correlation", title=title, why=sentence(error.reason))
    page.add("graders", Tables({"graders": _graders(track)}), title="Graders")
    _add_rejected(page, rejected, each_once({name: each.notes for name, each in every.items()}, of_grader))
    complete = {name: read_object(each.folder.manifest_path).get("complete") for name, each in every.items()}
    cautions = {name: list(_cautions(each, complete=bool(complete[name]))) for name, each in every.items()}
    grader_pages = {name: folder.output(PAGE) for name, folder in usable_folders(track.folder).items()}
    return page.to_html(
        track.folder.config.report.title,
        {
            "runs": len(board.rows),
            "graders": len(every) + len(track.unable),
            "cells": sum(each.counts.cells for each in every.values()),
            "cells rated": sum(each.counts.ok for each in every.values()),
        },
        [
            *(f"{name} cannot go on; {line}" for name, line in stale.items()),
            *each_once(cautions, of_grader),
        ],
        pages={
            name: path.relative_to(track.folder.shared_out).as_posix()
            for name, path in grader_pages.items()
            if path.exists()
        },
    )


def _graders(track: LoadedTrack) -> Table:
    """Return a row per grader: what it grades, its model, and its progress."""
    rows: list[tuple[Value, ...]] = [
        (
            name,
            each.kind.name,
            _model(each),
            len(each.bank.query_ids),
            each.counts.cells,
            each.counts.ok,
            "",
        )
        for name, each in track.graded_tracks.items()
    ]
    rows += [(name, "", "", None, None, None, str(error)) for name, error in track.unable.items()]
    return Table(("grader", "kind", "asks", "queries", "cells", "rated", "why"), tuple(rows))


def _model(track: GradedTrack) -> str:
    """Return the grader and its model."""
    identity = track.grader.identity
    return " ".join(str(identity[key]) for key in ("grader", "model") if identity.get(key))


def _add_rejected(page: Page, rejected: Table, notes_on_files: Sequence[str]) -> None:
    """Add rejected inputs and unusual content of accepted files."""
    notes, more = tuple(notes_on_files[:_ROWS]), len(notes_on_files) - _ROWS
    if more > 0:
        notes = (*notes, f"{more:,} more notes on files are in what `trecexam status` says")
    lead = "These were rejected; everything else counts. `lost` says how much does not count."
    some = len(rejected) > 0
    page.add(
        "rejected",
        Tables({"rejected": rejected} if some else {}, notes),
        title="Rejected files",
        lead=lead if some else "",
        why="" if some else "Nothing was rejected.",
        files=("rejected.tsv",) if some else (),
        rows=_ROWS,
    )


def _cautions(track: GradedTrack, *, complete: bool) -> Iterator[str]:
    """Yield the most important warnings on a grader's numbers."""
    counts = track.counts
    if not complete:
        yield (
            f"Grading had not ended when this was written: {counts.missing:,} of {counts.cells:,} cells have "
            "no grade yet, and all scores will change."
        )
    elif unlabelled := without_label(track):
        yield sentence(unlabelled)
    elif counts.missing:
        meaning = "; they count as not relevant" if track.counts.is_graded else ""
        yield f"The grader left {counts.missing:,} of {counts.cells:,} cells without a grade{meaning}."
    yield from map(sentence, unread_answers(track))
    if counts.no_text:
        yield (
            f"{counts.no_text:,} of {counts.passages:,} pooled passages have no text: they are not graded "
            "and count as not relevant."
        )


def _provenance(track: GradedTrack, versions: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the provenance of the numbers: inputs, grader, versions."""
    scores, identity, overrides = track.config.scores, dict(track.grader.identity), track.override_summary()
    human = "none"
    if overrides["who"]:
        who = ", ".join(overrides["who"])
        passages = plural(overrides["passages"], "passage")
        human = f"{plural(overrides['cells'], 'cell')} and {passages} as a whole, by {who}"
    label = "the number of items reached" if scores.label == "count" else "the best rating"
    if scores.label == "expected":
        label += ", its expected value as the gain of nDCG"
    if scores.min_answers > 1:
        label += f", min_answers {scores.min_answers}"
    pooled = f"the first {track.config.track.depth} of each run and query"
    if track.config.track.pool_judged:
        pooled += f", and {track.n_judged_only:,} judged passages that are not among them"
    n_judged = len(track.inputs.judged_queries)
    judged = f"{len(track.official):,} of {n_judged:,} queries" if track.official else "none"
    rows = {
        "Grader": _model(track),
        "Grader identity, sha256": identity_digest(identity).hex(),
        "Unparsed answers": f"{track.counts.unparsed:,} of {track.counts.cells:,} cells; "
        f'policy "{scores.unparsed}": an unparsed answer {POLICY[scores.unparsed]}',
        "Human ratings": human,
        "Label": f"{label}; items are reached from rating {scores.min_rating} on",
        "Pool": pooled,
        "Test bank": f"{len(track.bank):,} items, {track.bank.n_retired:,} retired",
        "Official judgments": judged,
    }
    inputs = Table(("file", "sha256"), tuple(track.digests.items()))
    settings = track.config.values(exclude_none=True)
    return {
        "facts": tuple(rows.items()),
        "grader": to_json(identity),
        "settings": to_json(settings),
        "inputs": inputs.view(_INPUTS, page=True),
        "versions": tuple((name, version or "not installed") for name, version in versions.items()),
    }
