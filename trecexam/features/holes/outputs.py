"""holes.tsv, and the holes of each run in the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trecexam.features.holes.holes import HolesReport, holes_report
from trecexam.line.assessment import Assessment, Part
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.excerpt import Excerpt, excerpt
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.text import sentence

#: Rows that the page shows; the file has the rest.
_ROWS = 15

_PARTS: tuple[Part, ...] = ("cells", "runs", "official", "settings")


def own_holes(track: Assessment) -> HolesReport:
    """The holes in the track's depth."""
    return track.derived("holes", _PARTS, lambda: holes_report(track))


def _holes(track: Assessment) -> Mapping[str, bytes]:
    return {"holes.tsv": own_holes(track).to_tsv().encode()}


def holes_section(track: Assessment) -> FeatureReport:
    """The section "holes"."""
    holes = own_holes(track)
    values = {
        "holes": _by_run(holes) if holes.rows else None,
        "lines": tuple(map(sentence, holes.notes)),
        "why": NO_RUNS,
    }
    return FeatureReport((ReportPart("holes", Path(__file__).with_name("section.html"), values, "Holes"),))


def _by_run(holes: HolesReport) -> Excerpt:
    judged = any(row.holes.unjudged is not None for row in holes.sums())
    columns = ["run", "depth", "retrieved", *(["unjudged", "Judged"] if judged else []), "ungraded"]
    return excerpt(holes.tables["runs"], _ROWS, "holes.tsv", {name: name for name in columns})


HOLES = Feature((OutputFiles(("holes.tsv",), _PARTS, _holes),), holes_section)
