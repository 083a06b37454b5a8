"""The notes of agreement: what is compared, from where on it is relevant, and what a figure says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trecexam.scores.kappa import MIN_QUERIES
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.config import ScoresSection
    from trecexam.features.agreement.arithmetic import Agreement, Crosstab, Pairs, Thresholds
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


def counts_note(pairs: Pairs, source: str) -> str:
    """How many passages have both labels, and how many only one."""
    return (
        f"{len(pairs.query):,} passages of {pairs.n_queries:,} queries have a label and a judgment "
        f"({source}); {pairs.n_label_only:,} have only a label, {pairs.n_judgment_only:,} only a judgment"
    )


def unpooled_note(n_unpooled: int) -> Iterator[str]:
    """What tells published tables from these, where judged passages are not pooled."""
    if n_unpooled:
        yield (
            f"without a label are {plural(n_unpooled, 'judged passage')} outside of the runs' first "
            "ranks; published tables have them: `pool_judged = true` in [track] grades them too"
        )


def left_out_note(left_out: Mapping[str, Any]) -> Iterator[str]:
    """Whose ratings do not count."""
    if left_out["who"]:
        yield (
            f"left out: the ratings of {', '.join(left_out['who'])} in place of the grader's "
            f"({left_out['cells']:,} cells, {left_out['passages']:,} passages)"
        )


def figures_note(agreed: Agreement) -> Iterator[str]:
    """The figures of the binary table, and where they say nothing."""
    t, binary = agreed.thresholds, agreed.binary
    at = f"min_rating {t.min_rating}, min_answers {t.min_answers}, min_relevant {t.min_relevant}"
    value, low, high = binary.kappa.value, binary.kappa.low, binary.kappa.high
    interval = "" if math.isnan(low) else f" (95% interval {low:.2f} to {high:.2f}, queries kept together)"
    yield (
        f"binary table at {at}: accuracy {_share(agreed.accuracy)}, precision {_share(agreed.precision)}, "
        f"recall {_share(agreed.recall)}, Cohen's kappa {_share(value)}{interval}"
    )
    for side, names, sums in (
        ("label", binary.labels, binary.counts.sum(axis=1)),
        ("judgment", binary.judgments, binary.counts.sum(axis=0)),
    ):
        given = [name for name, n in zip(names, sums.tolist(), strict=True) if n]
        if len(given) == 1:
            yield f"{at}: every {side} is {given[0]}, so the binary kappa says nothing"


def interval_note(n_queries: int) -> Iterator[str]:
    """Why no kappa has an interval, where there are too few queries."""
    if n_queries < MIN_QUERIES:
        yield f"no intervals: they need passages of at least {MIN_QUERIES} queries"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
