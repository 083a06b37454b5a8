"""Evaluation of rankings, against explicit formulas."""

from __future__ import annotations

import ast
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from column_cases import evaluated
from support import ROOT

from converters.records import Qrel
from trecexam.scores.columns import Judged
from trecexam.scores.labels import labels
from trecexam.scores.measures import measures_on_qrels
from trecexam.scores.ratings import QueryRatings

Rankings = dict[str, list[str]]


def naive_precision(gains: Mapping[str, int], ranking: Sequence[str], rel: int, k: int) -> float:
    return sum(gains.get(d, 0) >= rel for d in ranking[:k]) / k


def naive_ap(gains: Mapping[str, int], ranking: Sequence[str], rel: int) -> float:
    relevant = [d for d, gain in gains.items() if gain >= rel]
    hits, total = 0, 0.0
    for rank, doc_id in enumerate(ranking, 1):
        if doc_id in relevant:
            hits += 1
            total += hits / rank
    return total / len(relevant) if relevant else 0.0


def naive_ndcg(gains: Mapping[str, int], ranking: Sequence[str], k: int) -> float:
    def dcg(values: Sequence[int]) -> float:
        return sum(value / math.log2(rank + 1) for rank, value in enumerate(values[:k], 1))

    ideal = dcg(sorted(gains.values(), reverse=True))
    return dcg([gains.get(d, 0) for d in ranking]) / ideal if ideal else 0.0


def naive_alpha_ndcg(q: QueryRatings, ranking: Sequence[str], rel: int, k: int, alpha: float = 0.5) -> float:
    """Clarke et al., SIGIR 2008; the ideal ranking is built greedily."""
    items = {
        d: {i for i, r in enumerate(row) if r >= rel} for d, row in zip(q.doc_ids, q.ratings, strict=True)
    }

    def gain(doc_id: str, seen: list[int]) -> float:
        return sum((1 - alpha) ** seen[item] for item in items.get(doc_id, ()))

    def dcg(order: Sequence[str]) -> float:
        seen, total = [0] * q.n_items, 0.0
        for rank, doc_id in enumerate(order[:k], 1):
            total += gain(doc_id, seen) / math.log2(rank + 1)
            for item in items.get(doc_id, ()):
                seen[item] += 1
        return total

    left, ideal, seen = set(q.doc_ids), [], [0] * q.n_items
    while left and len(ideal) < k:
        best = max(sorted(left, reverse=True), key=lambda doc_id: gain(doc_id, seen))
        left.remove(best)
        ideal.append(best)
        for item in items[best]:
            seen[item] += 1
    return dcg(ranking) / dcg(ideal) if dcg(ideal) else 0.0


@pytest.mark.parametrize(("rule", "min_rating", "min_answers"), [("max", 4, 1), ("count", 3, 2)])
def test_label_measures_equal_their_formulas(
    queries: list[QueryRatings], rankings: Rankings, rule: str, min_rating: int, min_answers: int
) -> None:
    judged = Judged.from_ratings(queries, rule, min_rating, min_answers)  # type: ignore[arg-type]
    names = ["nDCG@10", "P(rel=4)@20", "P@5", "AP(rel=4)", "AP", "nDCG@1000", "RR(rel=5)", "R(rel=2)@10",
             "Success(rel=5)@3", "Judged@10", "RR@1", "NumRet", "SetF(beta=2.0)", "SetF"]  # fmt: skip
    values = evaluated(names, judged, rankings)
    for q in queries:
        gains = labels(q, rule, min_rating, min_answers)  # type: ignore[arg-type]
        ranking = rankings[q.query_id]
        found = values[q.query_id]
        good = {rel: [d for d in gains if gains[d] >= rel] for rel in range(1, 6)}
        first = [rank for rank, d in enumerate(ranking, 1) if gains.get(d, 0) >= 5]
        expected = {
            "nDCG@10": naive_ndcg(gains, ranking, 10),
            "nDCG@1000": naive_ndcg(gains, ranking, 1000),
            "P(rel=4)@20": naive_precision(gains, ranking, 4, 20),
            "P@5": naive_precision(gains, ranking, 1, 5),
            "AP(rel=4)": naive_ap(gains, ranking, 4),
            "AP": naive_ap(gains, ranking, 1),
            "RR(rel=5)": 1 / first[0] if first else 0,
            "R(rel=2)@10": len({*good[2]} & {*ranking[:10]}) / len(good[2]),
            "Success(rel=5)@3": float(bool(first) and first[0] <= 3),
            "Judged@10": len(gains.keys() & {*ranking[:10]}) / 10,
            "RR@1": float(gains.get(ranking[0], 0) >= 1),
            "NumRet": len(ranking),
        }
        assert {name: found[name] for name in expected} == pytest.approx(expected)
        hits = len({*good[1]} & {*ranking})
        precision, recall = hits / len(ranking), hits / len(good[1])
        assert found["SetF"] == pytest.approx(2 * precision * recall / (precision + recall))
        # trec_eval's set_F weights recall by beta itself, not by its square.
        assert found["SetF(beta=2.0)"] == pytest.approx(3 * precision * recall / (recall + 2 * precision))


@pytest.mark.parametrize("min_rating", [2, 4])
def test_diversity_measures_equal_their_formulas(
    queries: list[QueryRatings], rankings: Rankings, min_rating: int
) -> None:
    judged = Judged.from_ratings(queries, min_rating=min_rating)
    names = ["alpha_nDCG@20", "alpha_nDCG(rel=5)@10", "alpha_nDCG(rel=3)@10", "StRecall@5", "P_IA@10"]
    values = evaluated(names, judged, rankings)
    for q in queries:
        ranking, found = rankings[q.query_id], values[q.query_id]
        reached = {
            d: {i for i, r in enumerate(row) if r >= min_rating}
            for d, row in zip(q.doc_ids, q.ratings, strict=True)
        }
        possible = set().union(*reached.values())
        top5 = set().union(*(reached.get(d, set()) for d in ranking[:5]))
        assert found["alpha_nDCG@20"] == pytest.approx(naive_alpha_ndcg(q, ranking, min_rating, 20))
        assert found["alpha_nDCG(rel=5)@10"] == pytest.approx(naive_alpha_ndcg(q, ranking, 5, 10))
        assert found["alpha_nDCG(rel=3)@10"] == pytest.approx(naive_alpha_ndcg(q, ranking, 3, 10))
        assert found["StRecall@5"] == pytest.approx(len(top5) / len(possible))
        in_top10 = sum(len(reached.get(d, ())) for d in ranking[:10])
        assert found["P_IA@10"] == pytest.approx(in_top10 / 10 / len(possible))


ALL = ["nDCG@10", "nDCG(gains={5:100})@10", "P(rel=4)@20", "P(judged_only=True)@10", "P@10", "AP(rel=2)",
       "SetF(beta=0.5)", "SetF", "IPrec@0.1", "IPrec@0.101", "NumRet", "NumRel", "NumQ", "Judged@3", "RR@10",
       "Cover(rel=4)@20", "nCover(rel=4)@20", "Cover(rel=2)", "alpha_nDCG@20", "alpha_nDCG(rel=3)@20",
       "nNRBP", "NRBP", "ERR_IA@20", "nERR_IA@5", "AP_IA", "P_IA@5", "StRecall@10", "alpha_DCG@20", "Compat",
       "Accuracy", "infAP", "Bpref", "Rprec"]  # fmt: skip


def test_exactly_the_judged_queries_are_evaluated(queries: list[QueryRatings], rankings: Rankings) -> None:
    rankings["nobody asked"] = ["d01"]
    rankings["q3"] = []
    del rankings["q4"]
    by_id = {q.query_id: q for q in queries}
    judged = Judged.from_ratings([by_id[query_id] for query_id in ("q4", "q3", "q2")])
    values = evaluated(ALL, judged, rankings)
    assert list(values) == ["q4", "q3", "q2"]
    for query_id in ("q4", "q3"):
        zero = {name: value for name, value in values[query_id].items() if name not in ("NumQ", "NumRel")}
        assert set(zero.values()) == {0.0}
    assert values["q2"]["NumRet"] == len(rankings["q2"])
    assert evaluated(ALL, Judged.from_ratings([]), rankings) == {}
    assert evaluated([], judged, rankings) == {"q4": {}, "q3": {}, "q2": {}}


def test_queries_without_relevant_passages_score_zero_without_warnings(
    capfd: pytest.CaptureFixture[str],
) -> None:
    ratings = np.array([[0, 0], [-1, 0]], np.int8)
    nothing = QueryRatings("q1", ("a", "b"), 2, ratings)
    unrated = QueryRatings("q2", ("a", "b"), 2, np.full((2, 2), -1, np.int8))
    no_items = QueryRatings("q3", ("a", "b"), 0, np.empty((2, 0), np.int8))
    judged = Judged.from_ratings([nothing, unrated, no_items])
    names = [name for name in ALL if not name.startswith(("Num", "Judged"))]
    values = evaluated(names, judged, {q: ["b", "a"] for q in ("q1", "q2", "q3")})
    assert list(values) == ["q1", "q2", "q3"]
    assert {value for found in values.values() for value in found.values()} == {0.0}
    # A single subtopic.
    one_item = QueryRatings("q", ("a", "b"), 1, np.array([[5], [0]], np.int8))
    names = ["alpha_nDCG@20", "alpha_nDCG(rel=4)@20"]
    found = evaluated(names, Judged.from_ratings([one_item]), {"q": ["b", "a"]})
    assert found["q"] == pytest.approx(dict.fromkeys(names, 1 / math.log2(3)))
    official = Judged.from_qrels([Qrel("q", "a", 1, "1"), Qrel("q", "b", 0, "1")])
    assert evaluated(["StRecall@1"], official, {"q": ["a"]}) == {"q": {"StRecall@1": 1.0}}
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("unused", ["0", "Q0"])
def test_official_judgments_reject_measures_they_cannot_compute(unused: str) -> None:
    plain = [Qrel("q", "a", 1, unused)]
    with pytest.raises(ValueError, match="needs subtopics"):
        measures_on_qrels(["nDCG@10", "alpha_nDCG@10"], plain)
    with pytest.raises(ValueError, match="needs ratings"):
        measures_on_qrels(["Cover@10"], plain)
    with pytest.raises(ValueError, match="unknown measure"):
        measures_on_qrels(["nope"], plain)


def test_only_junk_labels_score_zero_whatever_uninitialised_memory_contains() -> None:
    """pytrec_eval reads uninitialised counts: with some contents of memory it counted for hours."""
    code = """
from ir_measures import Qrel
from trecexam.scores.columns import Evaluator, Judged, run_of
from trecexam.scores.measures import measure
names, ranking = ["Bpref", "infAP", "SetF"], ["d0", "d1"]
judged = [Qrel("q1", f"d{n}", 3) for n in range(5)]
junk = [Qrel("q1", f"d{n}", -2) for n in range(5)] + [Qrel("q2", "d0", -1)]
for qrels in (judged, junk):
    evaluator = Evaluator(map(measure, names), Judged.from_qrels(qrels, ["q1", "q2"]))
    values = evaluator.values(run_of({"q1": ranking, "q2": ranking}))
print(values.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MALLOC_PERTURB_": "165"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert ast.literal_eval(done.stdout) == [[0.0] * 3] * 2
