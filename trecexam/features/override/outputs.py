"""human.tsv, and people's ratings in the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trecexam.features.override.overriding import human_table
from trecexam.line.assessment import EVERYTHING, Assessment
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.excerpt import excerpt
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.table import Table, to_tsv

#: Rows that the page shows; the file has the rest.
_ROWS = 50


def own_ratings(track: Assessment) -> Table | None:
    """People's ratings and what became of them; None where nobody rated anything."""
    return human_table(track) if track.overrides.decisions or track.judgments.decisions else None


def _human(track: Assessment) -> Mapping[str, bytes]:
    table = own_ratings(track)
    return {} if table is None else {"human.tsv": to_tsv(table).encode()}


def override_report(track: Assessment) -> FeatureReport:
    """The end of the section "grades"."""
    table = own_ratings(track)
    values = {
        "ratings": None if table is None else excerpt(table, _ROWS, "human.tsv"),
        "rule": track.config.judging.rule if track.config.has_judging else None,
    }
    return FeatureReport((ReportPart("grades", Path(__file__).with_name("section.html"), values),))


OVERRIDE = Feature((OutputFiles(("human.tsv",), EVERYTHING, _human),), override_report, of_any_kind=True)
