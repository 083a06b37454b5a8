from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.ragval.grader.reading import PERMITTED, Scores, read_scores

SCORES = st.sampled_from(PERMITTED)


@pytest.mark.parametrize(
    "answer",
    [
        '{"relevance": 4, "truthfulness": 4.5}',
        '{"truthfulness":"4.5","relevance":"4"}',
        '{"Relevance_Score": 4.0, "Truthfulness score": "4.5/5", "why": "relevance: 2"}',
        '{"relevance": {"score": 4, "reason": "so"}, "truthfulness": {"score": 4.5}}',
        '```json\n{"relevance": 4, "truthfulness": 4.5}\n```',
        'Here you are: {"relevance": 4, "truthfulness": 4.5}. Anything else?',
        '<think>relevance: 1, truthfulness: 1</think>\n{"relevance": 4, "truthfulness": 4.5}',
        "relevance: 4, truthfulness: 4.5",
        "Relevance: 4\nTruthfulness: 4.5",
        "**Relevance:** 4/5\n**Truthfulness:** 4.5/5",
        "**Relevance**: **4**\n\n**Truthfulness**: **4.5**",
        "Relevance score: 4 out of 5. Truthfulness score: 4.5 out of 5.",
        "Relevance (1-5): 4; Truthfulness (1-5): 4.5",
        "Relevance (4), truthfulness (4.5)",
        "The relevance is 4 and the truthfulness is 4.5.",
        "relevance=4,truthfulness=4.5",
        "Relevance - 4, Truthfulness - 4.5",
        "| relevance | 4 |\n| truthfulness | 4.5 |",
        "Relevance 4, truthfulness 4.5; again: relevance 4.",
    ],
)
def test_two_scores_are_read_in_the_usual_forms(answer: str) -> None:
    assert read_scores(answer) == Scores(truthfulness=4.5, relevance=4)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "4 4.5",
        "I cannot judge this.",
        "relevance and truthfulness: 4",
        "null",
        "[4, 5]",
        '{"relevance": 4}',
        "Relevance: 4",
        "Truthfulness: 4",
        '{"relevance": null, "truthfulness": 4}',
        '{"relevance": 6, "truthfulness": 4}',
        '{"relevance": 0, "truthfulness": 4}',
        '{"relevance": -4, "truthfulness": 4}',
        '{"relevance": true, "truthfulness": 4}',
        '{"relevance": NaN, "truthfulness": 4}',
        '{"relevance": 4, "relevance": 5, "truthfulness": 4}',
        '{"relevance": 1e999, "truthfulness": 4}',
        '{"relevance": [4, 5], "truthfulness": 4}',
        "Relevance: 4.2, truthfulness: 4",
        "Relevance: 4,5 Truthfulness: 4",
        "Relevance: 45, truthfulness: 4",
        "Relevance: 4-5, truthfulness: 4",
        "Relevance: 4 to 5, truthfulness: 4",
        "relevance: 4 or 5, truthfulness: 4",
        "Relevance: 4/10, truthfulness: 4",
        "Relevance: 5 out of 50, truthfulness: 4",
        "Relevance: 80%, truthfulness: 4",
        "relevance: 4, truthfulness: 4, relevance: 5",
        "irrelevance: 4, truthfulness: 4",
        "Relevance: -4, truthfulness: 4",
        "Give a score of 1 for relevance if the chatbot doesn't know; scores from 1 to 5.",
    ],
)
def test_ambiguous_scores_are_unparsed(answer: str) -> None:
    assert read_scores(answer) is None


@given(SCORES, SCORES)
def test_written_scores_are_read_exactly(truthfulness: float, relevance: float) -> None:
    expected = Scores(truthfulness, relevance)
    assert read_scores(json.dumps({"relevance": relevance, "truthfulness": truthfulness})) == expected
    assert read_scores(f"Truthfulness: {truthfulness}\nRelevance: {relevance:g}") == expected
    assert read_scores(f"relevance {relevance:g}/5; truthfulness {truthfulness}/5.") == expected


@given(SCORES, st.floats().filter(lambda value: value not in PERMITTED))
def test_a_score_outside_the_scale_makes_both_unparsed(score: float, other: float) -> None:
    assert read_scores(json.dumps({"relevance": score, "truthfulness": other})) is None
    assert read_scores(f"relevance: {score}, truthfulness: {other!r}") is None


@given(st.text())
def test_any_text_is_read_or_unparsed(text: str) -> None:
    found = read_scores(text)
    assert found is None or set(found) <= set(PERMITTED)


@pytest.mark.parametrize(
    "part", ["relevance", "relevance: ", "relevance (", "{", "relevance is ", "4 ", "(", "\n", '"relevance":']
)
def test_reading_an_answer_is_fast(part: str) -> None:
    began = time.process_time()
    read_scores(part * 20_000)
    read_scores("relevance" + part * 20_000)
    assert time.process_time() - began < 2
