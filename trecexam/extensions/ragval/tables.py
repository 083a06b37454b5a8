"""The tables of systems' judged answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from trecexam.extensions.ragval.judged_scores import SCORES
from trecexam.tables.table import Layout, Table, Value
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.ragval.judged_scores import Comparison, Place, System

REPORT_COLUMNS = ("run_id", "n", "unparsed", *SCORES, "n_input_tokens", "n_output_tokens")
RETRIEVED_COLUMNS = ("n_retrieved", "mean_blocks")


def report_table(systems: Iterable[System]) -> Table:
    """A row per system: answers, answers without scores, mean scores, and tokens.

    Where an answer says it, too how many retrieved anything, and the blocks an answer.
    """
    systems = tuple(systems)
    has_retrieved = any(system.retrieved.answers is not None for system in systems)
    rows = [
        (
            system.run_id,
            system.n,
            system.unparsed,
            *(system.mean(name).mean for name in SCORES),
            system.input_tokens.total,
            system.output_tokens.total,
            *((system.retrieved.answers, system.retrieved.mean_blocks) if has_retrieved else ()),
        )
        for system in systems
    ]
    header = (*REPORT_COLUMNS, *(RETRIEVED_COLUMNS if has_retrieved else ()))
    return Table(header, tuple(rows), digits=4, layout=Layout(("run_id",)))


def answers_table(systems: Iterable[System]) -> Table:
    """A row per system: statistics of its answers."""
    header = (
        *("run_id", "without_input_tokens", "without_output_tokens"),
        *("repeated_questions", "unanswered_questions"),
    )
    rows = [
        (each.run_id, each.input_tokens.missing, each.output_tokens.missing, each.repeated, each.unanswered)
        for each in systems
    ]
    return Table(header, tuple(rows))


def intervals_table(systems: Iterable[System]) -> Table:
    """A row per system and score; `n` counts answers with scores."""
    rows: list[tuple[Value, ...]] = [
        (system.run_id, name, mean.n, mean.mean, mean.sd, mean.low, mean.high)
        for system in systems
        for name in SCORES
        for mean in [system.mean(name)]
    ]
    return Table(("run_id", "score", "n", "mean", "sd", "mean.low", "mean.high"), tuple(rows))


def significance_table(comparisons: Iterable[Comparison]) -> Table:
    """A row a score and pair of systems."""
    differences = ("difference", "difference.low", "difference.high")
    header = ("score", "run_a", "run_b", "n", *differences, "p", "p_holm")
    return Table(header, tuple(map(astuple, comparisons)), small=("p", "p_holm"))


def bounds_table(bounds: Iterable[Place]) -> Table:
    """A row a system and score: where it is between the baseline (0) and the oracle (1)."""
    header = ("run_id", "score", "n", "mean", "baseline", "oracle", "place")
    return Table(header, tuple(map(astuple, bounds)))


def remarks(systems: Sequence[System]) -> Iterator[str]:
    """Notes on the figures, one per line."""
    for system in systems:
        if system.unparsed == system.n:
            yield f"{system.run_id}: no answer has scores, so there are no means"
        for what, tokens in (("input", system.input_tokens), ("output", system.output_tokens)):
            if tokens.missing and tokens.total is not None:
                yield (
                    f"{system.run_id}: {tokens.missing:,} of {system.n:,} answers do not give their {what} "
                    f"tokens; the total covers the other answers"
                )
        if system.repeated:
            yield (
                f"{system.run_id}: {system.repeated:,} of {system.n:,} answers are to a question that was "
                f"answered before (by its text, as they have no ids); each counts"
            )
        if system.unanswered:
            yield (
                f"{system.run_id}: no answer to {plural(system.unanswered, 'question')} that other systems "
                f"answered; its means cover only the questions that it answered"
            )
        unknown = sum(not question for question in system.questions)
        if unknown and len(systems) > 1:
            yield (
                f"{system.run_id}: not compared with other systems: {plural(unknown, 'answer')} without "
                "question_id and question"
            )
