from __future__ import annotations

import random

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Judged

from trecexam.features.holes.arithmetic import Holes, contributed_alone, holes, total

docs = st.lists(st.sampled_from([f"d{n}" for n in range(12)]), unique=True)


@given(docs, docs, docs, st.integers(1, 15))
def test_holes_equal_a_naive_count(
    ranking: list[str], judged: list[str], rated: list[str], depth: int
) -> None:
    found = holes(ranking, frozenset(judged), frozenset(rated), depth)
    first = [doc_id for rank, doc_id in enumerate(ranking, 1) if rank <= depth]
    assert found.retrieved == len(first)
    assert found.unjudged == sum(doc_id not in judged for doc_id in first)
    assert found.ungraded == sum(doc_id not in rated for doc_id in first)


@given(st.lists(docs, min_size=1, max_size=4), st.data(), st.integers(1, 15))
def test_judged_at_k_equals_ir_measures(rankings: list[list[str]], data: st.DataObject, depth: int) -> None:
    labels = st.dictionaries(st.sampled_from([f"d{n}" for n in range(12)]), st.integers(-2, 3), min_size=1)
    judged = [data.draw(labels) for _ in rankings]
    qrels = [ir_measures.Qrel(f"q{n}", d, label) for n, by in enumerate(judged) for d, label in by.items()]
    run = [
        ir_measures.ScoredDoc(f"q{n}", doc_id, -rank)
        for n, ranking in enumerate(rankings)
        for rank, doc_id in enumerate(ranking)
    ]
    found = [holes(one, frozenset(by), frozenset(), depth) for one, by in zip(rankings, judged, strict=True)]
    if run:
        theirs = {m.query_id: m.value for m in ir_measures.iter_calc([Judged @ depth], qrels, run)}
        assert {f"q{n}": one.judged for n, one in enumerate(found)} == pytest.approx(theirs)
        mean = ir_measures.calc_aggregate([Judged @ depth], qrels, run)[Judged @ depth]
        assert total(found).judged == pytest.approx(mean)


def test_sums_are_over_queries_and_a_skipped_query_counts_as_zero_in_the_mean() -> None:
    parts = [Holes(4, 1, 0, 0.75), Holes(2, 0, 2, 1.0), Holes(0, 0, 0, 0.0)]
    assert total(parts) == Holes(6, 1, 2, 1.75 / 3)
    assert total([]) == Holes(0, 0, 0, 0.0)


def test_passages_unique_to_a_contributor_are_those_no_other_has() -> None:
    rng = random.Random(3)
    for _ in range(50):
        pool = {
            team: [
                [f"d{rng.randrange(15)}" for _ in range(rng.randrange(6))] for _ in range(rng.randrange(3))
            ]
            for team in "abcd"
        }
        flat = {team: {doc_id for ranking in found for doc_id in ranking} for team, found in pool.items()}
        expected = {
            team: {d for d in mine if not any(d in other for name, other in flat.items() if name != team)}
            for team, mine in flat.items()
        }
        assert contributed_alone(pool) == expected
