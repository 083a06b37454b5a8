"""Simulations on three runs and two queries, against hand and naive computations."""

from __future__ import annotations

import itertools
import math
import random

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trecexam.extensions.simulation.arithmetic.left_out import leave_out, shifts
from trecexam.extensions.simulation.arithmetic.removal import STEPS, remove
from trecexam.extensions.simulation.arithmetic.simulation import Simulation
from trecexam.features.fill.rules import IDENTITY
from trecexam.results.table import Table, Value

#: a is good, b is less good, c found a relevant passage that no other run has, in each query.
RANKINGS = {
    "a": {"q1": ["r1", "r2"], "q2": ["r1", "n1"]},
    "b": {"q1": ["r1", "n1"], "q2": ["n1", "n2"]},
    "c": {"q1": ["r3", "n1"], "q2": ["r2", "n1"]},
}
OFFICIAL = {"q1": {"r1": 1, "r2": 1, "r3": 1, "n1": 0}, "q2": {"r1": 1, "r2": 1, "n1": 0, "n2": 0, "x": 1}}
#: Equal to the judgments except for q1's r2 and q2's r2; x is in no pool.
AUTOMATIC = {"q1": {"r1": 5, "r2": 0, "r3": 5, "n1": 0}, "q2": {"r1": 5, "r2": 1, "n1": 0, "n2": 0, "y": 5}}


def simulation(measures: tuple[str, ...] = ("P@2",)) -> Simulation:
    return Simulation(RANKINGS, OFFICIAL, AUTOMATIC, measures)


def by_run(table: Table) -> dict[str, dict[str, Value]]:
    return {str(row["run"]): row for row in table}


def standing(row: dict[str, Value], how: str) -> tuple[object, ...]:
    return tuple(row[f"{what}.{how}"] for what in ("rank", "mean", "tau"))


def naive_tau(x: np.ndarray, y: np.ndarray) -> float:
    pairs = list(itertools.combinations(range(len(x)), 2))
    sign = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
    scale = math.sqrt(sum(a != 0 for a, _ in sign) * sum(b != 0 for _, b in sign))
    return sum(a * b for a, b in sign) / scale if scale else math.nan


def naive_means(labels: dict[str, dict[str, int]], measure: str, queries: list[str], rankings: dict) -> list:  # type: ignore[type-arg]
    """Computed by ir_measures, over all queries, each run separately."""
    one = ir_measures.parse_measure(measure)
    qrels = [ir_measures.Qrel(q, d, label) for q, by in labels.items() for d, label in by.items()]
    means = []
    for run in sorted(rankings):
        docs = [
            ir_measures.ScoredDoc(q, d, float(-rank))
            for q, ranking in rankings[run].items()
            for rank, d in enumerate(ranking)
        ]
        values = {m.query_id: m.value for m in ir_measures.iter_calc([one], qrels, docs)} if qrels else {}
        means.append(sum(values.get(q, 0.0) for q in queries) / len(queries))
    return means


def test_leave_one_out_equals_a_hand_computation() -> None:
    rows = by_run(leave_out(simulation(), depth=2))
    assert list(rows) == ["a", "c", "b"]
    # a alone has q1's r2 and q2's r1, both relevant: 0.25 remains, and r1 comes back.
    a = rows["a"]
    assert (a["left_out"], a["unique"], a["relevant"], a["filled"]) == ("a", 2, 2, 2)
    assert (a["rank.full"], a["mean.full"]) == (1, 0.75)
    assert standing(a, "holes") == (2, 0.25, pytest.approx(0.0))
    assert standing(a, "fill") == (1, 0.5, pytest.approx(naive_tau(*np.array([[3, 1, 2], [2, 1, 2]]))))
    # c alone has r3 and r2: nothing remains, and r3 comes back, so that it ties with b.
    c = rows["c"]
    assert (c["unique"], c["relevant"], c["filled"]) == (2, 2, 2)
    assert (c["rank.full"], c["rank.holes"], c["rank.fill"]) == (2, 3, 2)
    assert (c["mean.full"], c["mean.holes"], c["mean.fill"]) == (0.5, 0.0, 0.25)
    # b alone has n2, which is not relevant: nothing moves.
    b = rows["b"]
    assert (b["unique"], b["relevant"], b["filled"]) == (1, 0, 1)
    assert standing(b, "holes") == standing(b, "fill") == (3, 0.25, 1.0)
    assert (b["rank.full"], b["mean.full"]) == (3, 0.25)


def test_the_summary_has_means_and_extremes_of_the_rows() -> None:
    rows = leave_out(simulation(), depth=2)
    holes, fill = shifts(rows, ("holes", "fill")).rows
    taus = rows["tau.holes"]
    assert holes == (
        *("P@2", "holes", pytest.approx(2 / 3), 1, "a", pytest.approx(1 / 3)),
        *(pytest.approx(sum(taus) / 3), min(taus)),
    )
    assert fill[:6] == ("P@2", "fill", 0, 0, "", pytest.approx(0.5 / 3))


def test_a_passage_below_the_depth_does_not_count_as_retrieved() -> None:
    rows = by_run(leave_out(simulation(), depth=1))
    # In the first rank q1's r1 is a's and b's, q2's r1 a's alone, n1 b's alone, r3 and r2 c's alone.
    assert [rows[run]["unique"] for run in "abc"] == [1, 1, 2]


places = [(q, d) for q, by in OFFICIAL.items() for d in by]


@given(st.lists(st.sampled_from(places), unique=True))
@settings(deadline=None)
def test_a_drop_equals_a_full_evaluation_of_all_queries(dropped: list[tuple[str, str]]) -> None:
    measures = ("nDCG@2", "AP", "P@2")
    outcome = simulation(measures).drop(dropped)
    remain = {q: {d: label for d, label in by.items() if (q, d) not in dropped} for q, by in OFFICIAL.items()}
    filled = {
        q: {
            d: outcome.rule(AUTOMATIC[q][d]) if (q, d) in dropped else label
            for d, label in by.items()
            if (q, d) not in dropped or d in AUTOMATIC[q]
        }
        for q, by in OFFICIAL.items()
    }
    assert outcome.filled == sum(d in AUTOMATIC[q] for q, d in dropped)
    for index, name in enumerate(measures):
        for how, labels in (("holes", remain), ("fill", filled)):
            means = naive_means(labels, name, ["q1", "q2"], RANKINGS)
            assert outcome.boards[how][index] == pytest.approx(means)


@given(st.lists(st.sampled_from(places), unique=True, min_size=1), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_dropped_judgments_are_not_used(dropped: list[tuple[str, str]], rng: random.Random) -> None:
    other = {q: dict(by) for q, by in OFFICIAL.items()}
    for q, d in dropped:
        other[q][d] = rng.randrange(4)
    outcomes = [
        Simulation(RANKINGS, by, AUTOMATIC, ("nDCG@2", "P@2")).drop(dropped) for by in (OFFICIAL, other)
    ]
    assert outcomes[0].rule == outcomes[1].rule
    assert (outcomes[0].boards["holes"] == outcomes[1].boards["holes"]).all()
    assert (outcomes[0].boards["fill"] == outcomes[1].boards["fill"]).all()


def test_if_no_map_can_be_fitted_labels_are_used_unchanged_with_a_note() -> None:
    one = simulation()
    outcome = one.drop(places)
    assert outcome.rule is IDENTITY
    assert outcome.unfitted == "no passage has both an automatic and an official label"
    assert remove(one, repeats=3, steps=(0, 100))["unfitted"] == [0, 3]


def test_removal_equals_a_naive_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    docs = [f"d{n}" for n in range(12)]
    queries = ["q1", "q2", "q3"]
    official = {q: {d: rng.randrange(3) for d in docs} for q in queries}
    automatic = {q: {d: 2 * official[q][d] + rng.randrange(2) for d in docs[:9]} for q in queries}
    rankings = {run: {q: rng.sample(docs, 6) for q in queries} for run in "abcde"}
    one = Simulation(rankings, official, automatic, ("nDCG@5",))
    dropped: list[list[tuple[str, str]]] = []
    drop = one.drop
    monkeypatch.setattr(one, "drop", lambda gone: (dropped.append(list(gone)), drop(gone))[1])
    rows = list(remove(one, repeats=4, seed=9))
    assert [row["removed"] for row in rows] == list(STEPS)
    assert [row["n_removed"] for row in rows] == [round(36 * step / 100) for step in STEPS]
    for repeat in range(4):
        parts = dropped[repeat * 9 : repeat * 9 + 9]
        for less, more in itertools.pairwise(parts):
            assert set(less) < set(more)
    assert len({frozenset(parts) for parts in dropped[8::9]}) == 4
    full = np.array(naive_means(official, "nDCG@5", queries, rankings))
    for index, row in enumerate(rows):
        taus, differences, filled = [], [], []
        for gone in dropped[index::9]:
            labels = {
                q: {d: label for d, label in by.items() if (q, d) not in gone} for q, by in official.items()
            }
            filled.append(0)
            rule, _ = one.rule(gone)
            for q, d in gone:
                if d in automatic[q]:
                    labels[q][d] = rule(automatic[q][d])
                    filled[-1] += 1
            means = np.array(naive_means(labels, "nDCG@5", queries, rankings))
            taus.append(naive_tau(full.round(12), means.round(12)))
            differences.append(np.abs(means - full).mean())
        assert row["filled"] == pytest.approx(np.mean(filled))
        assert row["tau.fill"] == pytest.approx(np.mean(taus))
        half = stats.t.ppf(0.975, len(taus) - 1) * np.std(taus, ddof=1) * math.sqrt(1 + 1 / len(taus))
        assert row["tau.fill.low"] == pytest.approx(max(-1, np.mean(taus) - half))
        assert row["tau.fill.high"] == pytest.approx(min(1, np.mean(taus) + half))
        assert row["difference.fill"] == pytest.approx(np.mean(differences))


def test_measures_of_items_are_rejected() -> None:
    with pytest.raises(ValueError, match="needs ratings of a test bank's items"):
        simulation(measures=("Cover@10",))
