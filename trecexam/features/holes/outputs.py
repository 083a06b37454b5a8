"""holes.tsv, and the holes of each run in the report."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.holes.holes import HolesReport, holes_report
from trecexam.line.assessment import Assessment, Part
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.section import ReportPart

#: Rows that the page shows; the file has the rest.
_ROWS = 15

_PARTS: tuple[Part, ...] = ("cells", "runs", "official", "settings")


def own_holes(track: Assessment) -> HolesReport:
    """The holes in the track's depth."""
    return track.derived("holes", _PARTS, lambda: holes_report(track))


def _holes(track: Assessment) -> Mapping[str, bytes]:
    return {"holes.tsv": own_holes(track).to_tsv().encode()}


def holes_section(track: Assessment) -> tuple[ReportPart, ...]:
    """The section "holes"."""
    holes = own_holes(track)
    if not holes.rows:
        return (ReportPart("holes", title="Holes", why=NO_RUNS),)
    return (ReportPart("holes", holes, "Holes", files=("holes.tsv",), rows=_ROWS),)


HOLES = Feature((OutputFiles(("holes.tsv",), _PARTS, _holes),), holes_section)
