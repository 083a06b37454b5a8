"""What the report's page says beside the features: numbers, warnings, what was rejected, provenance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trecexam.graders.base import identity_digest
from trecexam.line.diagnostics import POLICY, unread_answers, without_label
from trecexam.outputs.page.model import PagePart, Report
from trecexam.outputs.page.render import render
from trecexam.tables.excerpt import excerpt
from trecexam.tables.plots.canvas import Drawings, plot_files
from trecexam.tables.result import Tables
from trecexam.tables.section import Picture, ReportPart
from trecexam.tables.table import Table, to_json
from trecexam.tables.terminal import cut
from trecexam.tables.text import plural, sentence

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.output_files import Feature
    from trecexam.tables.section import ReportHead

#: Rows that the page shows of each table; the files have the rest.
_ROWS, _INPUTS = 50, 300
#: Characters of a text in the grader's identity or the settings.
_TEXT = 4_000
#: What was done, where a grader's items have no scores of their own.
_LEAD = (
    "Automatic evaluation with a test bank: a grader rates how well each retrieved passage answers each "
    "item, and runs are scored by these ratings."
)


@dataclass(frozen=True, eq=False)
class UpdateFacts:
    """What an update knows beside the track.

    Attributes:
        rejected: out/rejected.tsv.
        complete: whether the grader was asked about all cells.
        versions: package -> version.
        head: what the page begins with where a grader's items have scores of their own, else None.
    """

    rejected: Table
    complete: bool
    versions: Mapping[str, str | None]
    head: ReportHead | None


def page_of(track: Assessment, facts: UpdateFacts, parts: Sequence[PagePart]) -> Report:
    """The page. `parts` are those of the features."""
    counts, head, folder = track.counts, facts.head, track.folder
    numbers = {
        "runs": len(track.runs),
        "queries": len(track.bank.query_ids),
        "items": len(track.bank),
        "pooled passages": counts.passages,
        "cells": counts.cells,
        "cells rated": counts.ok,
    }
    link, title = folder.link, track.config.report.title
    first = () if head is None else (PagePart(head.part, link=link),)
    return Report(
        title=f"{title}, {track.name}" if folder.is_one_of_several else title,
        lead=_LEAD if head is None else head.lead,
        numbers=tuple((f"{count:,}", what) for what, count in numbers.items()),
        cautions=tuple(cautions(track, complete=facts.complete)),
        parts=(*first, *parts, PagePart(rejected_part(facts.rejected, track.notes), link=link)),
        provenance=_provenance(track, facts),
        head=head,
        pages={"all graders": "../report.html"} if folder.is_one_of_several else {},
    )


def rejected_part(rejected: Table, notes_on_files: Sequence[str]) -> ReportPart:
    """What was rejected, and what is unusual of files that were accepted."""
    notes, more = tuple(notes_on_files[:_ROWS]), len(notes_on_files) - _ROWS
    if more > 0:
        notes = (*notes, f"{more:,} more notes on files are in what `trecexam status` says")
    part = ReportPart("rejected", title="Rejected files", rows=_ROWS)
    if not rejected.rows:
        return replace(part, result=Tables({}, notes), why="Nothing was rejected.")
    lead = "These were rejected; everything else counts. `lost` says how much does not count."
    return replace(part, result=Tables({"rejected": rejected}, notes), lead=lead, files=("rejected.tsv",))


def cautions(track: Assessment, *, complete: bool) -> Iterator[str]:
    """What a reader of a grader's numbers must know before all else."""
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


def _provenance(track: Assessment, facts: UpdateFacts) -> dict[str, Any]:
    """What the numbers come from."""
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
    judged = (
        f"{len(track.official):,} of {len(track.inputs.judged_queries):,} queries"
        if track.official
        else "none"
    )
    rows = {
        "Grader": " ".join(str(identity[key]) for key in ("grader", "model") if identity.get(key)),
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
    settings = track.config.model_dump(
        mode="json", exclude={"generator", "exam", "learn", "cells"}, exclude_none=True
    )
    return {
        "facts": tuple(rows.items()),
        "grader": _json(identity),
        "settings": _json(settings),
        "inputs": excerpt(inputs, _INPUTS, "manifest.json"),
        "versions": tuple((name, version or "not installed") for name, version in facts.versions.items()),
    }


def _json(value: Any) -> str:
    return to_json(_short(json.loads(json.dumps(value))))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner) for inner in value]
    return cut(value, _TEXT) if isinstance(value, str) and len(value) > _TEXT else value


def report_files(
    track: Assessment, features: Sequence[Feature], facts: UpdateFacts
) -> Iterator[tuple[str, bytes]]:
    """report.html and the plots' files, by their names in out/."""
    folder = track.folder
    drawings = Drawings(folder.out, folder.manifest_path, pdf=track.config.report.pdf)
    parts = []
    for feature in features:
        for part in () if feature.report is None else feature.report(track):
            plots = () if part.result is None else part.result.plots
            pictures = tuple(Picture(plot, drawings.of(plot)) for plot in plots)
            parts.append(PagePart(part, pictures, link=folder.link))
            for picture in pictures:
                yield from plot_files(picture.plot, picture.drawing)
    yield "report.html", render(page_of(track, facts, parts))
