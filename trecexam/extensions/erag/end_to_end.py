"""Correlations over queries with the scores of the systems' whole answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from converters.errors import ConversionError
from converters.fields import a_number, counted
from converters.lines import decode
from trecexam.extensions.erag.labels import take_lines
from trecexam.files.stamps import Rejected
from trecexam.scores.values import MeasureValues


class QueryCorrelation(NamedTuple):
    """Rank correlation of a run's values with its end-to-end scores.

    `kendall_tau` and `spearman_rho` are None with fewer than two queries or constant values on a side.
    """

    run: str
    measure: str
    n_queries: int
    kendall_tau: float | None
    spearman_rho: float | None


def read_end_to_end(
    path: Path, display_name: str, values: MeasureValues, rejected: list[Rejected]
) -> dict[str, dict[str, float]]:
    """Read run -> query_id -> score from `run<TAB>query_id<TAB>score` lines, with a header or without.

    Args:
        values: values of runs; other runs and queries are rejected.
        rejected: receives the rejected lines.
    """
    scores: dict[str, dict[str, float]] = {run: {} for run in values.runs}

    def take(number: int, line: bytes) -> None:
        text = decode(path, number, line)
        columns = [part.strip() for part in (text.split("\t") if "\t" in text else text.split())]
        if columns == ["run", "query_id", "score"]:
            return
        if len(columns) != 3 or not all(columns):
            raise ConversionError(path, number, f"{counted(columns)}: a line is `run query_id score`")
        run, query_id, score_text = columns
        score = a_number(score_text)
        if score is None or not math.isfinite(score):
            reason = f"the score is not a finite number: {score_text[:40]!r}"
        elif run not in scores:
            reason = f"run '{run}' is not evaluated here"
        elif query_id not in values.query_ids:
            reason = f"query '{query_id}' has no gold outputs, or is not in the track"
        elif query_id in scores[run]:
            reason = f"run '{run}' has a score for query '{query_id}' already; the first one counts"
        else:
            scores[run][query_id] = score
            return
        raise ConversionError(path, number, reason)

    take_lines(path, display_name, rejected, take)
    return scores


def query_correlations(
    values: MeasureValues, end_to_end: Mapping[str, Mapping[str, float]]
) -> Iterator[QueryCorrelation]:
    """Yield Kendall's tau-b and Spearman's rho over the queries that have both scores.

    This is the table of Salemi and Zamani (SIGIR 2024), section 4: a retriever's eRAG score against the
    score of the system's answer from the whole list.

    Args:
        end_to_end: run -> query_id -> score, finite.
    """
    from scipy.stats import kendalltau, spearmanr

    for run in values.runs:
        scores = end_to_end[run]
        common = [query_id for query_id in values.query_ids if query_id in scores]
        theirs = [scores[query_id] for query_id in common]
        for measure in values.measures:
            ours = values.matrix(measure, (run,), common)[0].tolist()
            tau = rho = None
            if len({*ours}) > 1 and len({*theirs}) > 1:
                tau, rho = (float(of(ours, theirs).statistic) for of in (kendalltau, spearmanr))
            yield QueryCorrelation(run, measure, len(common), tau, rho)
