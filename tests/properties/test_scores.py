"""Properties of scores for any ratings."""

from __future__ import annotations

from collections.abc import Sequence

import ir_measures
import numpy as np
from column_cases import evaluated
from hypothesis import given, settings
from hypothesis import strategies as st

from trecexam.scores import Cover, nCover
from trecexam.scores.columns import Judged
from trecexam.scores.columns.provider import as_run
from trecexam.scores.correlation import correlate
from trecexam.scores.labels import label_qrels
from trecexam.scores.rank_correlation import QueryDraws, Ranks, tau_ap_columns
from trecexam.scores.ratings import QueryRatings


def tau_ap(truth: Sequence[float], estimate: Sequence[float]) -> float:
    """tau_AP of one pair of leaderboards."""
    of_truth, of_estimate = (Ranks.of(np.array(side, np.float64)[:, None]) for side in (truth, estimate))
    return float(tau_ap_columns(of_truth, of_estimate)[0])


@st.composite
def query_ratings(draw: st.DrawFn, query_id: str = "q") -> QueryRatings:
    n_docs, n_items = draw(st.integers(0, 6)), draw(st.integers(0, 5))
    cells = draw(st.lists(st.integers(-1, 5), min_size=n_docs * n_items, max_size=n_docs * n_items))
    doc_ids = tuple(f"d{number}" for number in range(n_docs))
    return QueryRatings(query_id, doc_ids, n_items, np.array(cells, np.int8).reshape(n_docs, n_items))


@st.composite
def ranked(draw: st.DrawFn) -> tuple[QueryRatings, list[str]]:
    q = draw(query_ratings())
    ranking = draw(st.permutations([*q.doc_ids, "none", "no other"]))
    return q, ranking[: draw(st.integers(0, len(ranking)))]


def covers(q: QueryRatings, ranking: list[str], rel: int, k: int) -> tuple[float, float]:
    """Cover and nCover of a ranking."""
    wanted = [Cover(rel=rel) @ k, nCover(rel=rel) @ k]
    values = evaluated(wanted, Judged.from_ratings([q]), {"q": ranking})["q"]
    return values[str(wanted[0])], values[str(wanted[1])]


@given(ranked(), st.integers(1, 4), st.integers(1, 8))
@settings(deadline=None)
def test_cover_is_bounded_and_monotone(case: tuple[QueryRatings, list[str]], rel: int, k: int) -> None:
    q, ranking = case
    cover, ncover = covers(q, ranking, rel, k)
    assert 0 <= cover <= ncover <= 1
    deeper, deeper_ncover = covers(q, ranking, rel, k + 1)
    assert cover <= deeper
    assert ncover <= deeper_ncover
    assert covers(q, ranking, rel + 1, k)[0] <= cover
    assert covers(q, ranking, rel, len(ranking) + 1) == covers(q, ranking, rel, 1000)


@given(query_ratings(), st.integers(1, 5))
@settings(deadline=None)
def test_the_whole_pool_covers_all_reachable_items(q: QueryRatings, rel: int) -> None:
    assert covers(q, list(q.doc_ids), rel, 1000)[1] == float((q.ratings >= rel).any())


@given(query_ratings("q1"), query_ratings("q2"), st.randoms(use_true_random=False))
def test_order_of_queries_and_rows_makes_no_difference(
    q1: QueryRatings, q2: QueryRatings, rng: object
) -> None:
    wanted = [Cover(rel=3) @ 3, nCover @ 2, ir_measures.nDCG @ 5]
    rows = list(label_qrels([q1, q2]))
    run = {q: {f"d{number}": float(number % 4) for number in range(8)} for q in ("q1", "q2")}
    shuffled = list(rows)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]

    def values(qrels: list[ir_measures.Qrel]) -> dict[tuple[str, str], float]:
        return {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc(wanted, qrels, run)}

    assert values(rows) == values(shuffled) == values(list(label_qrels([q2, q1])))
    rankings = {query_id: as_run(run).ranking(query_id) for query_id in run}
    ours = evaluated(wanted, Judged.from_ratings([q2, q1]), rankings)
    judged = {row.query_id for row in rows}
    assert {(q, name): v for q in judged for name, v in ours[q].items()} == values(rows)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=10), st.data())
@settings(deadline=None)
def test_tau_ap_is_bounded_and_independent_of_the_order_of_runs(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    truth, estimate = zip(*pairs, strict=True)
    value = tau_ap(truth, estimate)
    assert -1 - 1e-12 <= value <= 1 + 1e-12
    again = data.draw(st.permutations(pairs))
    assert abs(tau_ap(*zip(*again, strict=True)) - value) < 1e-12
    # Reversing the truth reverses every concordance.
    assert abs(tau_ap([-t for t in truth], estimate) + value) < 1e-12


@given(st.data(), st.integers(2, 6), st.integers(1, 8))
def test_correlation(data: st.DataObject, n_runs: int, n_queries: int) -> None:
    cell = st.integers(0, 4).map(float)
    matrix = st.lists(
        st.lists(cell, min_size=n_queries, max_size=n_queries), min_size=n_runs, max_size=n_runs
    )
    rubric, official = np.array(data.draw(matrix)), np.array(data.draw(matrix))
    found = correlate(rubric, official, draws=QueryDraws(30))
    queries = data.draw(st.permutations(range(n_queries)))
    runs = data.draw(st.permutations(range(n_runs)))
    again = correlate(rubric[runs][:, queries], official[runs][:, queries], draws=QueryDraws(30))
    for name in ("kendall_tau", "spearman_rho", "tau_ap", "rbo"):
        np.testing.assert_allclose(getattr(again, name).value, getattr(found, name).value, atol=1e-12)
    if not np.isnan(found.kendall_tau.value):
        for name in ("kendall_tau", "spearman_rho", "tau_ap", "rbo"):
            value, low, high = getattr(found, name)
            assert np.isnan(low) or -(name != "rbo") <= low <= value + 1e-12 <= high + 2e-12 <= 1 + 3e-12
        # All except tau_AP, which treats one side as the truth, are symmetric.
        turned = correlate(official, rubric, draws=QueryDraws(0))
        assert turned.kendall_tau.value == found.kendall_tau.value
        np.testing.assert_allclose(
            [turned.spearman_rho.value, turned.rbo.value], [found.spearman_rho.value, found.rbo.value]
        )
        assert abs(correlate(rubric, rubric, draws=QueryDraws(5)).kendall_tau.value - 1) < 1e-12
