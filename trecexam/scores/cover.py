"""Rubric-Cover as `ir_measures` measures: `Cover(rel=t)@k`, `nCover(rel=t)@k`, `ECover(rel=t)@k`.

All have a weighted form, `Cover(rel=5,partial=3,weights='vital')@20`, which gives nuggetizer's scores. With
`weights='item'`, the weights of the bank, Cover gives ResearchRubrics' compliance score.

Importing this module registers them, and nuggetizer's names of its scores (`vital_score@20`), with
`ir_measures.parse_measure` and with the pipeline behind
`ir_measures.calc`, `calc_aggregate`, `iter_calc` and `evaluator`. Doing it again changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import ir_measures
import numpy as np
from ir_measures import Measure, Metric, ParamInfo, measures, providers
from ir_measures.providers import base as provider_base
from ir_measures.util import TYPE_QREL, TYPE_RUN, RunConverter
from numpy.typing import NDArray

from trecexam.scores.cover_kernel import best_ratings, credit, expected_credit, shares, trec_order
from trecexam.scores.from_rows import QueryJudgments, rows_of, tables, together
from trecexam.scores.weights import EQUAL, ITEM, NO_WEIGHTS, WEIGHTS, item_weights, whole_weight

DEFAULT_REL = 4
NO_PROBABILITIES = (
    "{} needs the probability of each rating, and these judgments carry none: pass "
    "track.qrels(probabilities=True) of trecexam"
)


class _Positive(ParamInfo):
    """An int of at least 1, or the default."""

    def validate(self, value: Any) -> bool:
        if value is provider_base.NOT_PROVIDED or value is self.default:
            return True
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1


class _CoverBase(Measure):
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": _Positive(dtype=int, desc="ranking cutoff threshold"),  # type: ignore[no-untyped-call]
        "rel": _Positive(  # type: ignore[no-untyped-call]
            dtype=int, default=DEFAULT_REL, desc="rating from which a passage reaches an item (inclusive)"
        ),
        "partial": _Positive(  # type: ignore[no-untyped-call]
            dtype=int, default=None, desc="rating from which an item has half the credit (inclusive)"
        ),
        "weights": ParamInfo(  # type: ignore[no-untyped-call]
            dtype=str,
            choices=list(WEIGHTS),
            default=EQUAL,
            desc="what items weigh by their importance, or in the bank",
        ),
    }

    def validate_params(self) -> None:
        """As of any measure.

        Raises:
            AssertionError: a parameter is impossible, `partial` is not below `rel`, or it is nCover with
                `weights='item'`, some of which count against: no pool has a best of these.
        """
        super().validate_params()  # type: ignore[no-untyped-call]
        partial, rel = self["partial"], self["rel"]
        assert partial is None or partial < rel, f"partial={partial} is not below rel={rel}"
        assert self["weights"] != ITEM or self.NAME != "nCover", f"weights={ITEM!r} are of Cover alone"

    def __repr__(self) -> str:
        """The name, always with `rel`, and with texts in quotes."""
        return self._printed

    @cached_property
    def _printed(self) -> str:
        # Measures are compared and hashed by it, several times for each value.
        params = {key: self[key] for key in ("rel", "partial", "weights")} | self.params
        inner = ",".join(
            f"{key}={value!r}"
            for key, value in params.items()
            if key != self.AT_PARAM and (key, value) not in (("partial", None), ("weights", EQUAL))
        )
        at = f"@{params[self.AT_PARAM]!r}" if self.AT_PARAM in params else ""
        return f"{self.NAME}({inner}){at}"


class _Cover(_CoverBase):
    """Rubric-Cover (EXAM Cover): the share of the query's items that the first passages reach.

    `Cover(rel=t)@k` is |union over the first k passages of {items rated t or better}| / |items of the
    query|, 0..1. `rel` is 4 unless given; without a cutoff the whole ranking counts.

    - `partial=p`: an item whose best rating is p or better, but below `rel`, counts a half.
    - `weights='vital'`: vital items alone count. `weights='importance'`: a vital item counts 1, any other
      0.5. The share is one of the sum of weights; a query without vital items has 0, as for nuggetizer.
    - `weights='item'`: each item has the weight that the bank gives it, negative where it counts against; 1
      where the bank gives none. Cover is (sum of w_i * c_i) / (sum of the positive w_i), where c_i is 1, 1/2
      or 0 as above: at most 1, below 0 where more is reached that counts against, and 0 without a positive
      weight.

    Of nuggetizer's assignments, where support is read as the rating 5 and partial support as 3, its scores
    are Cover with the parameters of `NUGGET_SCORES`, and so is ResearchRubrics' compliance score.

    Qrels, by what they are:

    - rows that carry `ratings` (`trecexam.scores.RubricQrel`), and data frames with a row for each passage
      and item (`Track.export.qrels_frame`): the items are those of the test bank. They alone carry the items'
      importance and weights, without which all weights but equal ones are refused;
    - other rows with the item as iteration and the rating as relevance: the items are the distinct
      iterations among the query's rows, which have to name every item of the query. A data frame's column
      `iteration` is the same. Rows of 0 and 1 (`rubric.subtopics.qrels`) say which items a passage reaches:
      `rel` must be 1;
    - rows that name no item (iteration 0, Q0 or none) and dicts have labels of passages alone, from which
      Cover cannot be computed: ValueError.

    Computed by `trecexam.scores.cover_kernel.cover_values`.

    .. cite.arxiv:: 2402.00309
    .. cite.arxiv:: 2411.09607
    .. cite.arxiv:: 2511.07685
    """

    __name__ = "Cover"
    NAME = "Cover"
    PRETTY_NAME = "Rubric-Cover"
    SHORT_DESC = "The share of a query's test bank items that the top k passages reach."


class _nCover(_CoverBase):  # noqa: N801
    """Rubric-Cover divided by the best that the pool allows.

    As `Cover`, but divided by the number of items that any passage of the qrels reaches, with the same
    credits and weights; 0 where none is reached. 0..1, and never below Cover.

    .. cite.arxiv:: 2402.00309
    """

    __name__ = "nCover"
    NAME = "nCover"
    PRETTY_NAME = "Normalised Rubric-Cover"
    SHORT_DESC = "The share of the items that any pooled passage reaches, that the top k passages reach."


class _ECover(_CoverBase):
    """The expected Rubric-Cover with uncertain ratings.

    `ECover(rel=t)@k` is the mean over the items of 1 - prod over the first k passages of (1 - P(rated t or
    better on the item)), 0..1: what Cover is on average, were the ratings of different passages drawn
    independently. With `partial` and `weights` it is the expected value of that Cover, too. Where all
    probabilities are 0 or 1 it is Cover.

    Qrels have to carry the probabilities: rows of `Track.qrels(probabilities=True)`.

    Computed by `trecexam.scores.cover_kernel.expected_credit`.

    .. cite.arxiv:: 2402.00309
    """

    __name__ = "ECover"
    NAME = "ECover"
    PRETTY_NAME = "Expected Rubric-Cover"
    SHORT_DESC = "The expected share of a query's test bank items that the top k passages reach."


class _ItemTable:
    """One query's ratings: a row for each passage of the qrels, a column for each item."""

    def __init__(self, of_query: QueryJudgments) -> None:
        self.ratings = of_query.ratings
        self.importances = of_query.importances
        self.at_least = of_query.at_least
        self.own_weights = of_query.weights
        self._weights: dict[str, NDArray[np.float64]] = {}
        self._pooled: dict[tuple[int, int | None, str], tuple[float, float]] = {}
        self.doc_ids = {doc_id: number for number, doc_id in enumerate(of_query.doc_ids)}

    def weights(self, name: str) -> NDArray[np.float64] | None:
        """The items' weights; None for equal ones."""
        if name == EQUAL:
            return None
        if name not in self._weights:
            importances = self.importances or ("",) * self.ratings.shape[1]
            self._weights[name] = item_weights(name, importances, self.own_weights)
        return self._weights[name]

    def pooled(self, rel: int, partial: int | None, weights: str) -> tuple[float, float]:
        """The credit of all passages together, and of all items."""
        key = rel, partial, weights
        if key not in self._pooled:
            values = self.weights(weights)
            whole = float(self.ratings.shape[1] if values is None else whole_weight(values))
            best = self.ratings.max(axis=0, initial=-1)
            self._pooled[key] = credit(best, rel, partial, values), whole
        return self._pooled[key]

    def expected(self, ranking: NDArray[np.intp], rel: int, partial: int | None, weights: str) -> float:
        """ECover of a ranking, given the passages' row numbers."""
        assert self.at_least is not None
        at_least = self.at_least[ranking[ranking >= 0]]
        whole = self.pooled(rel, partial, weights)[1]
        return expected_credit(at_least, rel, partial, self.weights(weights)) / whole if whole else 0.0

    def rows(self, ranking: Iterable[str]) -> NDArray[np.intp]:
        """The passages' row numbers; -1 for a passage outside of the qrels."""
        return np.array([self.doc_ids.get(doc_id, -1) for doc_id in ranking], np.intp)


class CoverEvaluator(providers.Evaluator):
    """Cover, nCover and ECover of runs on fixed qrels."""

    def __init__(self, measures: Iterable[Measure], made: Iterable[QueryJudgments]) -> None:
        made = list(made)
        tables = {of_query.query_id: _ItemTable(of_query) for of_query in made}
        super().__init__(list(measures), tables.keys())
        self._tables = tables
        item_rows = together([of_query.item_rows for of_query in made])
        self._by_parameters: dict[tuple[int, int | None, int | None, str], list[Measure]] = defaultdict(list)
        unknown = any(table.importances is None for table in tables.values())
        unweighted = bool(tables) and all(table.own_weights is None for table in tables.values())
        for metric in self.measures:
            if metric["weights"] == ITEM and unweighted:
                raise ValueError(NO_WEIGHTS.format(metric))
            if metric["weights"] not in (EQUAL, ITEM) and unknown:
                raise ValueError(
                    f"{metric} needs the importance of items, and these qrels carry none: give rows of "
                    "trecexam (`Track.qrels`, RubricQrel) of a bank whose items have it"
                )
            item_rows.check(metric)
            if metric.NAME == ECover.NAME and any(table.at_least is None for table in tables.values()):
                raise ValueError(NO_PROBABILITIES.format(metric))
            cutoff = metric.params.get("cutoff")
            self._by_parameters[metric["rel"], cutoff, metric["partial"], metric["weights"]].append(metric)
        self._cutoffs = {cutoff for _, cutoff, _, _ in self._by_parameters}

    def _iter_calc(self, run: TYPE_RUN) -> Iterator[Metric]:
        scores = RunConverter(run).as_dict_of_dict()  # type: ignore[no-untyped-call]
        _check_kinds("query_id", scores, self._tables)
        for query_id, table in self._tables.items():
            of_query = scores.get(query_id, {})
            _check_kinds("doc_id", of_query, table.doc_ids)
            ranking = table.rows(trec_order(of_query))
            best = {cutoff: best_ratings(table.ratings, ranking, cutoff) for cutoff in self._cutoffs}
            for (rel, cutoff, partial, weights), metrics in self._by_parameters.items():
                covered = credit(best[cutoff], rel, partial, table.weights(weights))
                values = shares(covered, *table.pooled(rel, partial, weights))
                for metric in metrics:
                    value = values.cover if metric.NAME == Cover.NAME else values.ncover
                    if metric.NAME == ECover.NAME:
                        value = table.expected(ranking[:cutoff], rel, partial, weights)
                    yield Metric(query_id, metric, value)


def _check_kinds(column: str, of_run: Iterable[Any], of_qrels: Iterable[Any]) -> None:
    """Raises an error for ids that are numbers on one side only, as in data frames, since none would match.

    Raises:
        ValueError: with the first of each.
    """
    for ours, theirs in zip(of_run, of_qrels, strict=False):
        if isinstance(ours, str) != isinstance(theirs, str):
            raise ValueError(
                f"{column} {ours!r} of the run and {theirs!r} of the qrels: one is text and one is not; read "
                "both as text (in pandas, dtype=str)"
            )
        return


class CoverProvider(providers.Provider):
    """Computes Cover, nCover and ECover."""

    NAME = "trecexam"
    SUPPORTED_MEASURES = [  # noqa: RUF012
        _Cover(cutoff=provider_base.Any(), rel=provider_base.Any()),  # type: ignore[no-untyped-call]
        _nCover(cutoff=provider_base.Any(), rel=provider_base.Any()),  # type: ignore[no-untyped-call]
        _ECover(cutoff=provider_base.Any(), rel=provider_base.Any()),  # type: ignore[no-untyped-call]
    ]

    def _evaluator(self, measures: Iterable[Measure], qrels: TYPE_QREL) -> CoverEvaluator:
        return CoverEvaluator(measures, tables(rows_of(qrels)))

    def qrel_inputs(self, measures: Iterable[Measure]) -> list[str]:
        """The columns that qrels need."""
        return ["query_id", "doc_id", "relevance", "iteration"]


def register() -> None:
    """Registers the measures and nuggetizer's names in `ir_measures`; called on import."""
    measures.registry.update({each.NAME: each for each in (Cover, nCover, ECover)} | NUGGET_SCORES)
    provider = CoverProvider()  # type: ignore[no-untyped-call]
    providers.register(provider)  # type: ignore[no-untyped-call]
    pipeline = ir_measures.DefaultPipeline.providers
    pipeline[:] = [existing for existing in pipeline if existing.NAME != provider.NAME] + [provider]


Cover = _Cover()  # type: ignore[no-untyped-call]
nCover = _nCover()  # type: ignore[no-untyped-call]  # noqa: N816
ECover = _ECover()  # type: ignore[no-untyped-call]
#: nuggetizer's names of its scores -> what they are here. The weighted ones are the paper's W and W strict
#: (arXiv:2411.09607), which nuggetizer does not compute; compliance is ResearchRubrics' (arXiv:2511.07685).
NUGGET_SCORES: dict[str, Measure] = {
    "all_score": Cover(rel=5, partial=3),
    "strict_all_score": Cover(rel=5),
    "vital_score": Cover(rel=5, partial=3, weights="vital"),
    "strict_vital_score": Cover(rel=5, weights="vital"),
    "weighted_score": Cover(rel=5, partial=3, weights="importance"),
    "strict_weighted_score": Cover(rel=5, weights="importance"),
    "compliance_score": Cover(rel=5, partial=3, weights=ITEM),
    "strict_compliance_score": Cover(rel=5, weights=ITEM),
}
register()
