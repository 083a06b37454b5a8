"""Verification on real data: TREC DL 2019 with FLAN-T5-large's recorded grades, against naive counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from scipy import stats

import trecexam

Ratings = Mapping[str, Mapping[str, Mapping[str, int]]]


@pytest.mark.parametrize("min_rating", [1, 3, 4, 5])
def test_missed_passages_equal_a_naive_loop(
    track: Path, ratings: Ratings, judgments: Mapping[tuple[str, str], int], min_rating: int
) -> None:
    with trecexam.open_track(track) as opened:
        found = opened.verify.missing(min_rating=min_rating, min_relevant=2)
        grid = opened.verify.grid()
    pool = set(zip(grid["query_id"], grid["doc_id"], strict=True))
    expected = {
        (query_id, doc_id)
        for (query_id, doc_id), label in judgments.items()
        if label >= 2 and (query_id, doc_id) in pool and max(ratings[query_id][doc_id].values()) < min_rating
    }
    assert {(missed.query_id, missed.doc_id) for missed in found} == expected
    relevant = sum(label >= 2 and query_id in ratings for (query_id, _), label in judgments.items())
    assert sum(found.tables["queries"]["relevant"]) == relevant


def test_item_discrimination_equals_scipy(
    track: Path, ratings: Ratings, judgments: Mapping[tuple[str, str], int]
) -> None:
    with trecexam.open_track(track) as opened:
        found = opened.verify.spurious(min_relevant=2)
        grid = opened.verify.grid()
    pool = set(zip(grid["query_id"], grid["doc_id"], strict=True))
    assert len(found) == 210
    for item in found:
        pairs = [
            (ratings[q][d][item.item_id] >= 4, judgments[q, d] >= 2)
            for q, d in pool
            if q == item.query_id and (q, d) in judgments
        ]
        assert item.nonrelevant_reached == sum(reached and not relevant for reached, relevant in pairs)
        assert item.relevant_reached == sum(reached and relevant for reached, relevant in pairs)
        if not item.note:
            reached, relevant = zip(*pairs, strict=True)
            assert item.phi == pytest.approx(stats.pearsonr(reached, relevant).statistic)
    # Measured: a question on public transport, where the query asks in which part of a city an airport is.
    assert found["phi"][0] == pytest.approx(-0.30, abs=0.01)
