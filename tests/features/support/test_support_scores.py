"""Weighted precision and recall of support, against the sums written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.scores.measures import measure
from trecexam.scores.support import support_scores

WEIGHTS = st.sampled_from([0.0, 0.5, 1.0])


def test_a_response_of_four_sentences_has_the_scores_of_the_definition() -> None:
    # Full, partial, none, and a sentence that cites nothing.
    precision, recall, f1 = support_scores([(1.0,), (0.5,), (0.0,), ()])
    assert (precision, recall) == (1.5 / 3, 1.5 / 4)
    assert f1 == pytest.approx(2 * 0.5 * 0.375 / 0.875)


def test_of_several_citations_each_counts_for_precision_and_the_best_for_recall() -> None:
    assert support_scores([(0.5, 1.0, 0.0), ()])[:2] == (0.5, 0.5)


def test_where_nothing_is_cited_or_said_all_are_0() -> None:
    assert support_scores([(), ()]) == (0, 0, 0)
    assert support_scores([]) == (0, 0, 0)


@given(st.lists(st.lists(WEIGHTS, max_size=3), max_size=8))
def test_scores_are_those_of_a_naive_computation(sentences: list[list[float]]) -> None:
    cited, supported, citations = 0.0, 0.0, 0
    for weights in sentences:
        for weight in weights:
            cited += weight
            citations += 1
        supported += sorted([0.0, *weights])[-1]
    precision = cited / citations if citations else 0
    recall = supported / len(sentences) if sentences else 0
    scores = support_scores(sentences)
    assert scores[:2] == pytest.approx((precision, recall))
    expected = 0 if precision + recall == 0 else 2 / (1 / precision + 1 / recall)
    assert scores.f1 == pytest.approx(expected)


def test_the_measures_have_names_and_are_none_of_official_judgments() -> None:
    assert [str(measure(name)) for name in ("SupportP", "SupportR", "SupportF1")] == [
        "SupportP",
        "SupportR",
        "SupportF1",
    ]
    with pytest.raises(ValueError, match="official judgments don't have"):
        measure("SupportP", official=True)
    with pytest.raises(ValueError, match="takes no parameters"):
        measure("SupportP@5")
    with pytest.raises(ValueError, match="did you mean SupportF1"):
        measure("SupportF")
