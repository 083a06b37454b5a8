"""The judge: its prompts, one request for both items, and the parsing of its answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragval import judging
from scripted_server import Exchange, serving

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.ragval.grader import Judge
from trecexam.extensions.ragval.grader.reading import PERMITTED, Scores, read_scores
from trecexam.graders import Answer, Cell, create

pytest.importorskip("httpx2")


SYSTEM = (
    "Your task is to evaluate answers given by a chatbot. You are provided the user query, the chatbot "
    "generated answer and a knowledge block that contains information about the true answer. Given this "
    "information generate two scores from 1 to 5, where 5 is the best, for the chatbot generated answer, "
    "concerning relevance and truthfulness. Give a score of 1 for relevance if the answer is that the "
    "chatbot doesn't know."
)


def judge(url: str, **settings: object) -> Judge:
    words = {"name": "ragval", "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
    found = create(GraderSection.model_validate(words), Path())
    assert isinstance(found, Judge)
    return found


def cells(answer: str, block: str = "Heat rises.", question: str = "Why?") -> list[Cell]:
    kinds = ("truthfulness", "relevance")
    return [Cell("q", "", "d", answer, Item("q", f"q/{kind}", question, kind, (block,))) for kind in kinds]


def graded(grader: Judge, asked: list[Cell]) -> dict[str, Answer]:
    return {cell.item.kind: answer for batch in grader.grade(asked) for cell, answer in batch}


def test_one_request_with_the_published_system_prompt_answers_both_items() -> None:
    with serving(judging) as server:
        found = graded(judge(server.url), cells("So it is [4.5 3]."))
        (body,) = server.bodies
    system, user = body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"] == SYSTEM
    assert user["content"] == (
        "User query: Why?\n\nChatbot generated answer: So it is [4.5 3].\n\nKnowledge block: Heat rises.\n\n"
        'Answer with nothing but a JSON object: {"relevance": score, "truthfulness": score}'
    )
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["relevance", "truthfulness"]
    assert schema["properties"]["truthfulness"]["enum"] == [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]
    raw = '{"relevance": 3, "truthfulness": 4.5}'
    # A rating is the score, rounded down; the score itself is read from the stored answer.
    assert found == {"truthfulness": Answer(4, "ok", raw), "relevance": Answer(3, "ok", raw)}
    assert read_scores(raw) == (4.5, 3)


def test_for_plain_completions_the_system_prompt_precedes_the_prompt() -> None:
    with serving(judging) as server:
        graded(judge(server.url, api="completions", structured="none"), cells("[1 1]"))
        (body,) = server.bodies
    assert body["prompt"].startswith(f"{SYSTEM}\n\nUser query: Why?\n\n")
    assert "response_format" not in body


@pytest.mark.parametrize(
    ("say", "status"),
    [
        (lambda exchange: exchange.say("Good."), "unparsed"),
        (lambda exchange: exchange.say('{"relevance": 9, "truthfulness": 3}'), "unparsed"),
        (lambda exchange: exchange.say("No.", finish="content_filter"), "refused"),
        (
            lambda exchange: judging(exchange) if exchange.is_probe else exchange.fail(400, "no such text"),
            "error",
        ),
    ],
)
def test_an_answer_without_two_scores_gives_no_rating(say: Callable[[Exchange], None], status: str) -> None:
    with serving(say) as server:
        found = graded(judge(server.url), cells("So it is."))
    assert {(answer.rating, answer.status) for answer in found.values()} == {(None, status)}
    assert len(found) == 2


def test_without_structured_output_support_the_error_names_the_setting() -> None:
    def script(exchange: Exchange) -> None:
        if "response_format" in exchange.body:
            exchange.fail(400, "response_format is not supported")
        else:
            judging(exchange)

    with serving(script) as server:
        with pytest.raises(GraderError, match='set `structured = "none"` in'):
            graded(judge(server.url), cells("[1 1]"))
        assert graded(judge(server.url, structured="none"), cells("[1 2]"))["relevance"].rating == 2


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"prompt": "Sun"}, "`prompt` in .* is not for `ragval`"),
        ({"decode": "beam"}, "`decode`"),
        ({"structured": "choice"}, "two scores"),
        ({"base_url": None, "model": None}, "needs a language model"),
    ],
)
def test_inapplicable_settings_are_rejected(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(GraderError, match=reason):
        judge("http://127.0.0.1:9/v1", **settings)


def test_the_identity_has_all_that_changes_answers_but_not_the_server() -> None:
    one = judge("http://127.0.0.1:9/v1").identity
    assert one == judge("http://127.0.0.1:10/v1", concurrency=3).identity
    assert one["grader"] == "ragval"
    for change in ({"model": "other"}, {"temperature": 1.0}, {"max_characters": 99}, {"structured": "none"}):
        assert judge("http://127.0.0.1:9/v1", **change).identity != one


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
        "**Relevance:** 4/5\n**Truthfulness:** 4.5/5",
        "**Relevance**: **4**\n\n**Truthfulness**: **4.5**",
        "Relevance score: 4 out of 5. Truthfulness score: 4.5 out of 5.",
        "Relevance (1-5): 4; Truthfulness (1-5): 4.5",
        "Relevance (4), truthfulness (4.5)",
        "The relevance is 4 and the truthfulness is 4.5.",
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
        "relevance and truthfulness: 4",
        "[4, 5]",
        '{"relevance": 4}',
        "Relevance: 4",
        '{"relevance": null, "truthfulness": 4}',
        '{"relevance": 6, "truthfulness": 4}',
        '{"relevance": 0, "truthfulness": 4}',
        '{"relevance": true, "truthfulness": 4}',
        '{"relevance": NaN, "truthfulness": 4}',
        '{"relevance": 4, "relevance": 5, "truthfulness": 4}',
        '{"relevance": [4, 5], "truthfulness": 4}',
        "Relevance: 4.2, truthfulness: 4",
        "Relevance: 4,5 Truthfulness: 4",
        "Relevance: 4-5, truthfulness: 4",
        "Relevance: 4 to 5, truthfulness: 4",
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
