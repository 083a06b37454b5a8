"""What a table of agreement compares, in words: axes, thresholds, and how graded labels are paired."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trecexam.config import ScoresSection
    from trecexam.features.agreement.arithmetic import Agreement, Crosstab, Thresholds
    from trecexam.line.relevance import RelevanceThresholds


def agreement_notes(
    agreed: Agreement, at: RelevanceThresholds, grader: str, source: str, settings: ScoresSection | None
) -> tuple[str, ...]:
    """Three lines: which axis is whose, both thresholds and why, how graded labels are paired and why.

    Args:
        grader, source: what gave the labels, and the file of the judgments.
        settings: where the thresholds come from these; None where one was given.
    """
    return (
        f"rows are labels of {grader}, columns are people's judgments ({source})",
        f"{thresholds_in_words(agreed.thresholds)} ({_scales(agreed.thresholds, at, settings)})",
        _pairing(agreed),
    )


def thresholds_in_words(t: Thresholds) -> str:
    """From which label and from which judgment on a passage counts as relevant."""
    if t.rule == "count":
        label = f"label {t.min_answers} or more (items rated {t.min_rating} or better)"
    elif t.min_answers > 1:
        label = f"label {t.min_rating} or more (its {t.min_answers} best ratings are that high)"
    else:
        label = f"label {t.min_rating} or more"
    return f"{label} counts as relevant; judgment {t.min_relevant} or more counts as relevant"


def _scales(t: Thresholds, at: RelevanceThresholds, settings: ScoresSection | None) -> str:
    if t.rule == "count":
        return "labels count items, so each side has a threshold of its own"
    if not at.same_scale:
        return (
            f"labels are on the scale 0..{at.max_rating} and judgments on 0..{at.max_judgment}, so each side "
            "has a threshold of its own"
        )
    both = f"labels and judgments are both on the scale 0..{at.max_rating}"
    if t.min_rating != t.min_relevant:
        return f"{both}, but two different thresholds were given"
    if settings is None:
        return f"{both}, so both have the same threshold"
    return (
        f"{both}, so both have the same threshold, the greater of min_rating {settings.min_rating} and "
        f"min_relevant {settings.min_relevant}"
    )


def _pairing(agreed: Agreement) -> str:
    if agreed.same_scale:
        return "graded table: a label is compared with the judgment of the same number"
    table, groups = agreed.graded, agreed.merged
    sides = ", ".join(
        f"labels {label} with judgments {judgment}"
        for label, judgment in zip(groups.labels, groups.judgments, strict=True)
    )
    return (
        "graded table: the scales differ, so a label is compared with the lowest judgment of its group "
        f"({sides}){_first_pair(table)}"
    )


def _first_pair(table: Crosstab) -> str:
    """The pair of the highest label, as an example."""
    column = table.paired[0]
    return "" if column is None else f"; label {table.labels[0]} with judgment {table.judgments[column]}"
