"""Weighted precision and recall of support, against the sums written out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from converters.rag_responses import read_responses
from trecexam.features.support.comparison import with_labels
from trecexam.features.support.tables import labels_table
from trecexam.line.support import SupportCells, statements_of
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


REFERENCES = ["a", "b", "c"]
CITATIONS = st.lists(st.integers(-2, 4) | st.sampled_from([*REFERENCES, "elsewhere"]), max_size=5)
ANSWERS = st.lists(
    st.tuples(st.sampled_from(["One.", "Two two.", "  ", "\u200f\u0645."]), CITATIONS), max_size=7
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ANSWERS,
    st.dictionaries(
        st.tuples(st.integers(1, 7), st.sampled_from([*REFERENCES, "elsewhere"])), st.integers(0, 2)
    ),
    st.sampled_from(["first", "all"]),
)
def test_scores_of_any_response_are_those_of_the_definition_on_its_json(
    tmp_path: Path, answer: list[Any], labels: dict[tuple[int, str], int], citations: Literal["first", "all"]
) -> None:
    # A sentence of its own, so that there is text.
    answer = [*answer, ("Last.", [0])]
    row = {"run_id": "r", "topic_id": "q", "references": REFERENCES}
    row["answer"] = [{"text": text, "citations": cited} for text, cited in answer]
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n")
    statements = statements_of({"r": list(read_responses(tmp_path / "r.jsonl"))}, citations)
    cells = with_labels(
        SupportCells(statements, (), {}, citations),
        {("r", "q", place, doc_id): rating for (place, doc_id), rating in labels.items()}
        | {("r", "q", len(answer), "a"): 1},
    )
    labels = labels | {(len(answer), "a"): 1}

    cited_weights, sentence_weights, uncited = [], [], 0
    for place, (text, cited) in enumerate(answer, 1):
        if not text.strip():
            continue
        in_range = [
            c if isinstance(c, str) else REFERENCES[c] for c in cited if isinstance(c, str) or 0 <= c < 3
        ]
        outside = len([c for c in cited if not isinstance(c, str) and not 0 <= c < 3])
        looked_at = sorted(set(in_range), key=in_range.index)
        weights = [labels.get((place, doc_id), 0) / 2 for doc_id in looked_at] + [0.0] * outside
        weights = weights[:1] if citations == "first" else weights
        cited_weights += weights
        sentence_weights.append(max([0.0, *weights]))
        uncited += not cited
    precision = sum(cited_weights) / len(cited_weights)
    recall = sum(sentence_weights) / len(sentence_weights)
    both = precision + recall
    values = cells.values(["r"], ["q", "not answered"]).array
    assert values[0, 0] == pytest.approx([precision, recall, 2 * precision * recall / both if both else 0])
    assert not values[0, 1].any()
    table = labels_table(cells)
    assert sum(row[4] == "uncited" for row in table.rows) == uncited
