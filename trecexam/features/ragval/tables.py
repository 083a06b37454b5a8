"""The tables of systems' judged answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trecexam.features.ragval.judged_scores import BINS, SCORES
from trecexam.tables.table import Table, Value
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.features.ragval.judged_scores import Comparison, Place, System
    from trecexam.features.ragval.sweep import Sweep

REPORT_COLUMNS = ("run_id", "n", "unparsed", *SCORES, "n_input_tokens", "n_output_tokens")


def report_table(systems: Iterable[System]) -> Table:
    """A row a system: how many answers, how many without scores, mean scores of the others, all tokens."""
    rows = [
        (
            one.run_id,
            one.n,
            one.unparsed,
            *(one.mean(name).mean for name in SCORES),
            one.input_tokens.total,
            one.output_tokens.total,
        )
        for one in systems
    ]
    return Table(REPORT_COLUMNS, tuple(rows), digits=4)


def intervals_table(systems: Iterable[System]) -> Table:
    """A row a system and score; `n` is of the answers that have scores."""
    rows: list[tuple[Value, ...]] = [
        (one.run_id, name, mean.n, mean.mean, mean.sd, mean.low, mean.high)
        for one in systems
        for name in SCORES
        for mean in [one.mean(name)]
    ]
    return Table(("run_id", "score", "n", "mean", "sd", "mean.low", "mean.high"), tuple(rows))


def histogram_table(systems: Iterable[System]) -> Table:
    """A row a system and sum: how many answers have it, and their share of those that have scores."""
    rows: list[tuple[Value, ...]] = []
    for one in systems:
        counts = one.histogram()
        total = sum(counts)
        rows += [
            (one.run_id, bin_, count, count / total if total else None)
            for bin_, count in zip(BINS, counts, strict=True)
        ]
    return Table(("run_id", "sum", "n", "share"), tuple(rows))


def significance_table(comparisons: Iterable[Comparison]) -> Table:
    """A row a score and pair of systems."""
    differences = ("difference", "difference.low", "difference.high")
    header = ("score", "run_a", "run_b", "n", *differences, "p", "p_holm")
    rows = [
        (one.score, one.run_a, one.run_b, one.n, one.difference, one.low, one.high, one.p, one.p_holm)
        for one in comparisons
    ]
    return Table(header, tuple(rows), small=("p", "p_holm"))


def bounds_table(places: Iterable[Place]) -> Table:
    """A row a system and score: where it is between the baseline (0) and the oracle (1)."""
    header = ("run_id", "score", "n", "mean", "baseline", "oracle", "place")
    rows = [(one.run_id, one.score, one.n, one.mean, one.baseline, one.oracle, one.place) for one in places]
    return Table(header, tuple(rows))


def sweep_table(sweep: Sweep) -> Table:
    """A row a system that has a value of the parameter."""
    scored = [f"{name}{end}" for name in SCORES for end in ("", ".low", ".high")]
    header = ("parameter", "value", "series", "run_id", "n", "unparsed", *scored)
    rows: list[tuple[Value, ...]] = []
    for point in sweep.points:
        one = point.system
        means = [one.mean(name) for name in SCORES]
        rows.append(
            (
                sweep.parameter,
                point.value,
                point.series,
                one.run_id,
                one.n,
                one.unparsed,
                *(value for mean in means for value in (mean.mean, mean.low, mean.high)),
                one.input_tokens.total,
                one.output_tokens.total,
            )
        )
    return Table((*header, "n_input_tokens", "n_output_tokens"), tuple(rows))


def systems_json(systems: Sequence[System]) -> list[dict[str, Any]]:
    """The rows of the report with full precision, intervals, and how many answers tell no tokens."""
    return [
        {
            **row,
            "intervals": {name: asdict(one.mean(name)) for name in SCORES},
            "histogram": dict(zip(map(str, BINS), one.histogram(), strict=True)),
            "without_input_tokens": one.input_tokens.missing,
            "without_output_tokens": one.output_tokens.missing,
            "repeated_questions": one.repeated,
            "unanswered_questions": one.unanswered,
        }
        for row, one in zip(report_table(systems).records(), systems, strict=True)
    ]


def remarks(systems: Sequence[System]) -> Iterator[str]:
    """What one must know of the figures, a line each."""
    for one in systems:
        if one.unparsed == one.n:
            yield f"{one.run_id}: no answer has scores, so there are no means"
        for what, tokens in (("input", one.input_tokens), ("output", one.output_tokens)):
            if tokens.missing and tokens.total is not None:
                yield (
                    f"{one.run_id}: {tokens.missing:,} of {one.n:,} answers do not say their {what} tokens; "
                    "the total is of the others"
                )
        if one.repeated:
            yield (
                f"{one.run_id}: {one.repeated:,} of {one.n:,} answers are to a question that was answered "
                "before (by its text: there are no ids); each counts"
            )
        if one.unanswered:
            yield (
                f"{one.run_id}: no answer to {plural(one.unanswered, 'question')} that others answered; its "
                "means are over its own answers"
            )
        unknown = sum(not question for question in one.questions)
        if unknown and len(systems) > 1:
            yield (
                f"{one.run_id}: {unknown:,} answers have neither question_id nor question, and are compared "
                "with no other system's"
            )
