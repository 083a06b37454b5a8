"""The columns as a provider of ir_measures.

    from trecexam.scores.columns import provider
    provider.calc_aggregate([nDCG @ 10], qrels, run)

`register()` lets `ir_measures.calc` and its kin take it before pytrec_eval. Measures that ir_measures does
not have, as Cover, are registered with `ir_measures.calc`, `calc_aggregate`, `iter_calc` and `evaluator` on
import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import ir_measures
from ir_measures import Measure, Metric, measures, providers
from ir_measures.util import TYPE_QREL, TYPE_RUN, RunConverter

from converters.run import Run
from trecexam.scores.columns.evaluator import Evaluator, supported
from trecexam.scores.columns.judged import Judged, rows_of
from trecexam.scores.columns.measures import MEASURES

_DIVERSITY = "alpha_nDCG"


class ColumnsEvaluator(providers.Evaluator):
    """Values of runs on fixed qrels."""

    def __init__(self, measures: Iterable[Measure], judged: Judged, of_qrels: Sequence[Any]) -> None:
        """`of_qrels`: the query_id and the doc_id of a row of the qrels; empty where there is none."""
        measures = list(measures)
        super().__init__(measures, judged.query_ids)
        self._columns = Evaluator(measures, judged)
        self._of_qrels = of_qrels

    def _iter_calc(self, run: TYPE_RUN | Run) -> Iterator[Metric]:
        values = self._columns.values(as_run(run, self._of_qrels)).tolist()
        for query_id, of_query in zip(self._columns.judged.query_ids, values, strict=True):
            for measure, value in zip(self.measures, of_query, strict=True):
                yield Metric(query_id, measure, value)


class ColumnsProvider(providers.Provider):
    """Computes the measures that `trecexam.scores.columns.supported` accepts; see examples/trec-eval.md."""

    NAME = "trecexam_columns"
    SUPPORTED_MEASURES = [type(measures.registry[name])() for name in MEASURES]  # noqa: RUF012

    def supports(self, measure: Measure) -> bool:
        """Return True where the measure is computed here with its parameters.

        Raises:
            AssertionError: its parameters are impossible.
        """
        measure.validate_params()  # type: ignore[no-untyped-call]
        return supported(measure)

    def _evaluator(self, measures: Iterable[Measure], qrels: TYPE_QREL) -> ColumnsEvaluator:
        chosen = list(dict.fromkeys(measures))
        for measure in chosen:
            if not supported(measure):
                raise ValueError(f"{measure.NAME} with these parameters is not computed on columns")
        query_ids = qrels.keys() if isinstance(qrels, dict) else ()
        rows = rows_of(qrels)
        if any(hasattr(row, "ratings") for row in rows):
            for measure in chosen:
                if measure.NAME == _DIVERSITY:
                    raise ValueError(
                        f"{measure} needs a row for each passage and item, and these rows carry all items' "
                        "ratings each: make rows with `trecexam.scores.labels.subtopic_qrels`"
                    )
        of_qrels = (rows[0].query_id, rows[0].doc_id) if rows else ()
        if rows and not isinstance(rows[0].doc_id, str):
            rows = [row._replace(doc_id=str(row.doc_id)) for row in rows]
        return ColumnsEvaluator(chosen, Judged.from_qrels(rows, query_ids), of_qrels)

    def qrel_inputs(self, measures: Iterable[Measure]) -> list[str]:
        """The columns that qrels need."""
        on_items = any(MEASURES[measure.NAME or ""].on_items for measure in measures)
        return ["query_id", "doc_id", "relevance", *(["iteration"] if on_items else [])]


#: Declared measures that ir_measures does not have, such as Cover.
_OURS = frozenset(
    name for name in MEASURES if not type(measures.registry[name]).__module__.startswith("ir_measures")
)


class OwnProvider(ColumnsProvider):
    """Computes the declared measures that ir_measures does not have: Cover, nCover, ECover and others."""

    NAME = "trecexam"
    SUPPORTED_MEASURES = [measures.registry[name] for name in sorted(_OURS)]  # noqa: RUF012

    def supports(self, measure: Measure) -> bool:
        return measure.NAME in _OURS and super().supports(measure)


def as_run(run: Any, of_qrels: Sequence[Any] = ()) -> Run:
    """Return a run as columns in trec_eval's order, from any form that ir_measures accepts, or a `Run`.

    Scores are compared in 64 bits, the highest first, ties by doc_id, the highest first. Where a document
    occurs twice for a query, its last score counts, as it does to ir_measures. A score that is not a number
    is a ValueError, and so are ids that are numbers here or in the row of qrels `of_qrels` alone, as in data
    frames, since none would match.
    """
    if isinstance(run, Run):
        return run
    scores = RunConverter(run).as_dict_of_dict()  # type: ignore[no-untyped-call]
    entries = [
        (query_id, doc_id, score)
        for query_id, of_query in scores.items()
        for doc_id, score in of_query.items()
    ]
    for column, ours, theirs in zip(
        ("query_id", "doc_id"), entries[0] if entries else (), of_qrels, strict=False
    ):
        if isinstance(ours, str) != isinstance(theirs, str):
            raise ValueError(
                f"{column} {ours!r} of the run and {theirs!r} of the qrels: one is text and one is not; read "
                "both as text (in pandas, dtype=str)"
            )
    return Run.from_entries("run", ((query_id, str(doc_id), score) for query_id, doc_id, score in entries))


def register() -> None:
    """Registers this provider first in ir_measures; idempotent.

    `providers.register` alone puts it into the registry, at which `ir_measures.calc` does not look.
    """
    providers.register(provider)  # type: ignore[no-untyped-call]
    pipeline = ir_measures.DefaultPipeline.providers
    pipeline[:] = [provider, *(existing for existing in pipeline if existing.NAME != provider.NAME)]


#: Ready for use.
provider = ColumnsProvider()  # type: ignore[no-untyped-call]
_own = OwnProvider()  # type: ignore[no-untyped-call]
providers.register(_own)  # type: ignore[no-untyped-call]
ir_measures.DefaultPipeline.providers.append(_own)
