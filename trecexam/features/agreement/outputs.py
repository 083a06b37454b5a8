"""agreement.tsv, and how far labels agree with judgments in the report."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.agreement.agreement import Agreements, agreements_if_any
from trecexam.line.assessment import Assessment, Part
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.section import ReportPart

NOTHING_IN_COMMON = "No passage has both an automatic label and a judgment."
_PARTS: tuple[Part, ...] = ("cells", "people", "official", "settings")


def own_agreement(track: Assessment) -> Agreements | None:
    """The agreement at the track's thresholds; None where no passage has both labels."""
    return track.derived("agreement", _PARTS, lambda: agreements_if_any(track))


def _agreement(track: Assessment) -> Mapping[str, bytes]:
    agreed = own_agreement(track)
    return {} if agreed is None else {"agreement.tsv": agreed.to_tsv().encode()}


def agreement_report(track: Assessment) -> tuple[ReportPart, ...]:
    """The end of the section "official"."""
    agreements = own_agreement(track)
    why = "No official judgments." if track.official is None else NOTHING_IN_COMMON
    return (
        ReportPart(
            "official",
            agreements,
            heading="Agreement of labels with judgments",
            why=why if agreements is None else "",
            files=() if agreements is None else ("agreement.tsv",),
        ),
    )


AGREEMENT = Feature((OutputFiles(("agreement.tsv",), _PARTS, _agreement),), agreement_report)
