"""agreement.tsv, and how far labels agree with judgments in the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trecexam.features.agreement.agreement import Agreements, agreements_if_any
from trecexam.line.assessment import Assessment, Part
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.text import sentence

_PARTS: tuple[Part, ...] = ("cells", "people", "official", "settings")


def own_agreement(track: Assessment) -> Agreements | None:
    """The agreement at the track's thresholds; None where no passage has both labels."""
    return track.derived("agreement", _PARTS, lambda: agreements_if_any(track))


def _agreement(track: Assessment) -> Mapping[str, bytes]:
    agreed = own_agreement(track)
    return {} if agreed is None else {"agreement.tsv": agreed.to_tsv().encode()}


def agreement_report(track: Assessment) -> FeatureReport:
    """The end of the section "official"."""
    agreements = own_agreement(track)
    if agreements is None:
        none = track.official is None
        why = "No official judgments." if none else "No passage has both an automatic label and a judgment."
        values: dict[str, object] = {"crosstabs": (), "why": why}
    else:
        tables = {table.name: table for table in agreements.found[0].tables}
        values = {
            "crosstabs": (tables["graded"], tables["binary"]),
            "lines": tuple(map(sentence, agreements.notes)),
        }
    return FeatureReport((ReportPart("official", Path(__file__).with_name("section.html"), values),))


AGREEMENT = Feature((OutputFiles(("agreement.tsv",), _PARTS, _agreement),), agreement_report)
