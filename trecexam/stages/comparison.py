"""How far the rubric leaderboard agrees with the official one: gathers values, calls the statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from trecexam.reports.results import correlation_table
from trecexam.reports.tables import Table

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline
    from trecexam.scores.correlation import Correlation
    from trecexam.stages.scoring import Values

#: What an official leaderboard file is called beside official measures.
LEADERBOARD = "official_leaderboard"


@dataclass(frozen=True)
class Comparison:
    """Correlations of every rubric measure with every official one.

    Attributes:
        n_queries: queries that both sides have; official values are over these.
        keys: the names of the parts of each pair's key.
        pairs: ((rubric measure, official measure[, query_id]), its correlation).
    """

    n_queries: int
    keys: tuple[str, ...]
    pairs: tuple[tuple[tuple[str, ...], Correlation], ...]

    def table(self) -> Table:
        """One row a pair."""
        return correlation_table(self.pairs, self.keys)

    def as_json(self) -> dict[str, Any]:
        """The table with full precision and the number of queries."""
        return {
            "n_queries": self.n_queries,
            "correlations": [
                dict(zip(self.keys, key, strict=True)) | asdict(value) for key, value in self.pairs
            ],
        }


def compare(
    pipeline: Pipeline,
    measures: Sequence[str] | None = None,
    official_measures: Sequence[str] | None = None,
    *,
    per_query: bool = False,
) -> Comparison | None:
    """Compares the two leaderboards over the runs and queries that both have.

    Returns:
        None where the track has neither official judgments nor an official leaderboard, or no runs.
    """
    import numpy as np

    from trecexam.scores.correlation import correlate, per_query_correlations
    from trecexam.scores.evaluate import measure

    snapshot = pipeline.snapshot
    assert snapshot is not None
    if not snapshot.runs or (snapshot.official is None and snapshot.official_ranks is None):
        return None
    rubric = pipeline.rubric_values(measures)
    names = [str(measure(name)) for name in (measures or pipeline.config.measures())]
    bank_queries = list(snapshot.bank.query_ids)
    keys = ("measure", "official_measure")
    pairs: list[tuple[tuple[str, ...], Correlation]] = []
    queries = bank_queries
    runs = list(snapshot.runs)
    if snapshot.official is not None:
        judged = {qrel.query_id for qrel in snapshot.official}
        queries = [q for q in bank_queries if q in judged]
    if snapshot.official is not None and queries:
        official = pipeline.official_values(official_measures, set(queries))
        official_names = [str(measure(n)) for n in (official_measures or pipeline.config.official_measures())]
        for name in names:
            ours = _matrix(rubric, runs, queries, name)
            for official_name in official_names:
                theirs = _matrix(official, runs, queries, official_name)
                if per_query:
                    pairs += [
                        ((name, official_name, query_id), value)
                        for query_id, value in zip(queries, per_query_correlations(ours, theirs), strict=True)
                    ]
                else:
                    pairs.append(((name, official_name), correlate(ours, theirs)))
    if snapshot.official_ranks is not None and not per_query and official_measures is None:
        ranked = [run for run in runs if run in snapshot.official_ranks]
        worth = np.array([-snapshot.official_ranks[run] for run in ranked])
        pairs += [
            ((name, LEADERBOARD), correlate(_matrix(rubric, ranked, bank_queries, name), worth))
            for name in names
        ]
    return Comparison(len(queries), (*keys, "query_id") if per_query else keys, tuple(pairs))


def _matrix(values: Values, runs: Sequence[str], queries: Sequence[str], measure: str) -> Any:
    import numpy as np

    return np.array(
        [[values[run][query][measure] for query in queries] for run in runs], dtype=float
    ).reshape(len(runs), len(queries))
