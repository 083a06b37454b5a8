from __future__ import annotations

from collections.abc import Collection

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Judged

from trecexam.features.holes.holes import Holes, holes_of_runs, is_among, total

DOCS = [f"d{n}" for n in range(12)]
docs = st.lists(st.sampled_from(DOCS), unique=True)


def holes(ranking: list[str], judged: Collection[str], rated: Collection[str], depth: int) -> Holes:
    """The holes of a single run."""
    ranks = [DOCS.index(doc_id) for doc_id in ranking[:depth]] + [-1] * (depth - len(ranking))
    (found,) = holes_of_runs(np.array([ranks], np.int32), is_among(DOCS, judged), is_among(DOCS, rated))
    return found


@given(st.lists(docs, min_size=1, max_size=4), st.data(), st.integers(1, 15))
def test_judged_at_k_equals_ir_measures(rankings: list[list[str]], data: st.DataObject, depth: int) -> None:
    labels = st.dictionaries(st.sampled_from(DOCS), st.integers(-2, 3), min_size=1)
    judged = [data.draw(labels) for _ in rankings]
    qrels = [ir_measures.Qrel(f"q{n}", d, label) for n, by in enumerate(judged) for d, label in by.items()]
    run = [
        ir_measures.ScoredDoc(f"q{n}", doc_id, -rank)
        for n, ranking in enumerate(rankings)
        for rank, doc_id in enumerate(ranking)
    ]
    found = [holes(one, by, (), depth) for one, by in zip(rankings, judged, strict=True)]
    if run:
        theirs = {m.query_id: m.value for m in ir_measures.iter_calc([Judged @ depth], qrels, run)}
        assert {f"q{n}": one.judged for n, one in enumerate(found)} == pytest.approx(theirs)
        mean = ir_measures.calc_aggregate([Judged @ depth], qrels, run)[Judged @ depth]
        assert total(found).judged == pytest.approx(mean)
