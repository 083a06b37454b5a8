"""The judge: its prompts, one request for both items, and the parsing of its answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import ask

pytest.importorskip("httpx2")

from ragval import judging
from scripted_server import Exchange, serving

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.ragval.grader import Judge
from trecexam.extensions.ragval.grader.reading import read_scores
from trecexam.graders import Answer, Cell, create

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


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    from tiny_models import save_llama

    return save_llama(tmp_path_factory.mktemp("judge") / "llama")


def test_a_local_model_can_judge_too(local: Path) -> None:
    settings = {
        "name": "ragval",
        "model": str(local),
        "device": "cpu",
        "max_new_tokens": 8,
        "dtype": "float32",
    }
    grader = create(GraderSection.model_validate(settings), local.parent)
    assert isinstance(grader, Judge)
    assert grader.meter is None
    asked = [*cells("They fly.", "the cost of it " * 400), *cells("Who was that?")]
    answers = [pair for batch in grader.grade(asked) for pair in batch]
    assert {cell for cell, _ in answers} == set(asked)
    # The model is untrained, and gives no scores.
    assert {(answer.rating, answer.status) for _, answer in answers} == {(None, "unparsed")}
    assert grader.cut == 1
    assert "system" in grader.identity["writer"]
    assert ask("p", "q").item.kind not in grader.item_kinds
