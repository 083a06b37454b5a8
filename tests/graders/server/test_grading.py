from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import Callable, Iterable
from math import log
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_server import KEY, Exchange, serving
from support import ask, hashed_rating

from trecexam.errors import GraderError
from trecexam.graders import Answer, Cell
from trecexam.graders.base import identity_json
from trecexam.graders.prompts import DEFAULT, named
from trecexam.graders.server import exchange
from trecexam.graders.server.client import HIDDEN
from trecexam.graders.server.grader import ServerGrader
from trecexam.graders.server.model import shortened

Make = Callable[..., ServerGrader]


def graded(grader: ServerGrader, cells: Iterable[Cell]) -> dict[tuple[str, str], Answer]:
    found = [(c, a) for batch in grader.grade(cells) for c, a in batch]
    answers = {(cell.doc_id, cell.item.item_id): answer for cell, answer in found}
    assert len(answers) == len(found)
    return answers


def answer_of(grader: ServerGrader, cell: Cell | None = None) -> Answer:
    (answer,) = graded(grader, [cell or ask("Paris is big.", "How big is Paris?")]).values()
    return answer


def test_every_cell_is_requested_once_with_the_same_prompts_as_for_local_models(
    make: Make, cells: list[Cell], tmp_path: Any
) -> None:
    prompt = named(DEFAULT[0], tmp_path).passage_first()
    with serving() as server:
        answers = graded(make(server.url), cells)
    assert sorted(server.seen) == sorted(prompt.text(c.query_text, c.item, c.text) for c in cells)
    assert set(server.seen.values()) == {1}
    assert set(server.keys) == {f"Bearer {KEY}"}
    for cell in cells:
        text = prompt.text(cell.query_text, cell.item, cell.text)
        answer = answers[cell.doc_id, cell.item.item_id]
        assert (answer.rating, answer.status) == (hashed_rating(text, ""), "ok")
    body = server.bodies[0]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("tiny", 0.0, 2048)
    assert "stream" not in body
    assert "seed" not in body


def test_plain_completions_are_used_if_configured(make: Make, cells: list[Cell]) -> None:
    with serving() as server:
        answers = graded(make(server.url, api="completions", key_env=None, seed=7), cells)
    assert len(answers) == len(cells)
    assert server.keys == [None] * len(cells)
    assert server.bodies[0]["seed"] == 7
    assert "messages" not in server.bodies[0]


def test_a_refusal_is_an_answer(make: Make) -> None:
    with serving(lambda exchange: exchange.say(None, refusal="I will not.")) as server:
        assert answer_of(make(server.url))[:2] == (None, "refused")
    with serving(
        lambda exchange: exchange.fail(400, "The response was filtered", "content_filter")
    ) as server:
        assert answer_of(make(server.url))[:2] == (None, "refused")
        assert len(server.bodies) == 1


def chat_logprobs(shares: dict[str, float], token: Any = "4") -> dict[str, Any]:
    top = [{"token": name, "logprob": log(share)} for name, share in shares.items()]
    return {"content": [{"token": token, "logprob": -0.1, "top_logprobs": top}]}


ALL = {"4": 0.5, "5": 0.2, "3": 0.1, "2": 0.1, "1": 0.05, "0": 0.04, "Rating": 0.01}


@pytest.mark.parametrize(
    ("logprobs", "expected"),
    [
        (chat_logprobs(ALL), [0.04, 0.05, 0.1, 0.1, 0.5, 0.2]),
        # Fewer than requested: the missing probability could be anything.
        (chat_logprobs({"4": 0.5, "5": 0.2}), None),
        # Fewer than requested, but nothing of weight is missing.
        (chat_logprobs({"4": 0.9, "5": 0.099}), [0, 0, 0, 0, 0.9, 0.099]),
        ({"content": None}, None),
        ({"content": [{"token": "4"}]}, None),
        ({"content": [{"token": "4", "top_logprobs": [{"token": "4", "logprob": "x"}]}]}, None),
        ({"content": [{"token": "4", "top_logprobs": [{"token": "4", "logprob": 3.0}]}]}, None),
        ({"content": [{"token": "4", "top_logprobs": [{"token": "4", "logprob": -(10**400)}]}]}, None),
        (chat_logprobs({"4": 0.999}, token=4), None),
        ({"content": [{"token": "4", "top_logprobs": [{"token": "4", "logprob": float("nan")}]}]}, None),
        ("junk", None),
    ],
)
def test_probabilities_are_stored_if_complete(
    make: Make, logprobs: Any, expected: list[float] | None
) -> None:
    with serving(lambda exchange: exchange.say("4", logprobs)) as server:
        answer = answer_of(make(server.url))
    assert server.bodies[0]["top_logprobs"] == 20
    assert (answer.rating, answer.status) == (4, "ok")
    if expected is None:
        assert answer.probabilities is None
    else:
        total = sum(expected)
        assert answer.probabilities == pytest.approx([share / total for share in expected], abs=1e-6)


@pytest.mark.parametrize("structured", ["json_schema", "choice"])
def test_the_model_is_restricted_to_the_permitted_answers_if_configured(make: Make, structured: str) -> None:
    with serving(lambda exchange: exchange.say('{"answer": "2"}')) as server:
        answer = answer_of(make(server.url, structured=structured))
    assert answer.rating == 2
    body = server.bodies[0]
    permitted = ["5", "4", "3", "2", "1", "0"]
    if structured == "choice":
        assert body["structured_outputs"] == {"choice": permitted}
    else:
        schema = body["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["answer"]["enum"] == permitted


def test_sglang_gets_the_permitted_answers_as_a_regular_expression(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {"object": "list", "data": [{"id": "tiny", "owned_by": "sglang"}]}
    listing = lambda exchange: exchange.send(200, json.dumps(models).encode())  # noqa: E731
    monkeypatch.setattr(Exchange, "do_GET", listing, raising=False)
    with serving(lambda exchange: exchange.say("2")) as server:
        assert answer_of(make(server.url, structured="choice", concurrency=1)).rating == 2
        assert answer_of(make(server.url)).rating == 2
    restricted, free = server.bodies
    assert "structured_outputs" not in restricted
    permitted = [text for text in ("5", "0", "6", "55", "") if re.fullmatch(restricted["regex"], text)]
    assert permitted == ["5", "0"]
    assert "regex" not in free


def test_fields_that_a_server_does_not_know_are_omitted_or_renamed(make: Make, cells: list[Cell]) -> None:
    def strict(exchange: Exchange) -> None:
        if "logprobs" in exchange.body:
            exchange.fail(400, "Unknown field: logprobs")
        elif "max_tokens" in exchange.body:
            exchange.fail(400, "Unsupported parameter: use 'max_completion_tokens' instead")
        else:
            exchange.say()

    with serving(strict) as server:
        assert len(graded(make(server.url, concurrency=1), cells)) == len(cells)
    assert len(server.bodies) == len(cells) + 2
    with (
        serving(lambda exchange: exchange.fail(400, "response_format is not supported")) as server,
        pytest.raises(GraderError, match="take `structured` out of"),
    ):
        answer_of(make(server.url, structured="json_schema"))


def test_the_identity_has_exactly_the_settings_that_change_answers(make: Make) -> None:
    def identity(url: str = "http://a/v1", **settings: Any) -> str:
        return identity_json(make(url, **settings).identity)

    same = identity()
    for settings in (
        {"concurrency": 3},
        {"timeout": 3.0},
        {"retries": 0},
        {"logprobs": False},
        {"key_env": None},
        {"max_new_tokens": 9},
    ):
        assert identity(**settings) == same
    assert identity("https://elsewhere:81/x/v1/") == same
    others = [
        identity(**settings)
        for settings in (
            {"model": "other"},
            {"temperature": 1.0},
            {"seed": 1},
            {"structured": "choice"},
            {"revision": "2"},
            {"structured": "json_schema"},
            {"extra": {"top_k": 3}},
            {"max_characters": 9},
            {"api": "completions"},
            {"prompt": "Sun"},
            {"passage_first": False},
        )
    ]
    assert len({same, *others}) == 12
    assert KEY not in same


def test_a_passage_is_cut_at_a_word_and_contains_no_control_tokens(make: Make) -> None:
    assert shortened("one two three", 8) == "one two"
    assert shortened("one two three", 7) == "one two"
    assert shortened("abcdefgh", 3) == "abc"
    assert shortened("one", 3) == "one"
    # Scripts without spaces, and a blank much earlier.
    assert shortened("1 " + "\u6f22" * 300, 200) == "1 " + "\u6f22" * 198
    assert shortened(f"{'x' * 200} {'y' * 98} end", 300) == f"{'x' * 200} {'y' * 98}"
    with serving() as server:
        answer_of(
            make(server.url, max_characters=40), ask("<|im_end|> [/INST] </s> <b> word " + "more " * 20, "q?")
        )
    (prompt,) = server.seen
    assert "< |im_end|> [ /INST] < /s> <b> word" in prompt
    assert prompt.count("more") == 1


def test_an_item_without_the_key_that_a_prompt_needs_is_an_error_without_request(make: Make) -> None:
    with serving() as server:
        answer = answer_of(make(server.url, prompt="QuestionCompleteConcisePromptWithAnswerKey2"))
    assert answer.status == "error"
    assert "has no answer key" in answer.raw
    assert server.bodies == []


def test_invalid_settings_are_rejected(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GraderError, match="needs `base_url`"):
        make(None)
    with pytest.raises(GraderError, match="needs `price_in` and `price_out`"):
        make("http://a/v1", budget=3.0)
    with pytest.raises(GraderError, match="needs `model`"):
        make("http://a/v1", model=None)
    with pytest.raises(GraderError, match="`structured` holds a server's"):
        make("http://a/v1", decode="beam")
    with pytest.raises(GraderError, match="wants free text"):
        make("http://a/v1", prompt="NuggetExtractionPrompt", structured="choice")
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(GraderError, match="the environment variable TEST_KEY is not set"):
        list(make("http://a/v1").grade([]))
    for key in ("two words", "four"):
        monkeypatch.setenv("TEST_KEY", key)
        with pytest.raises(GraderError, match="TEST_KEY holds no key of 5 or more plain") as caught:
            list(make("http://a/v1").grade([]))
        assert key[:3] not in str(caught.value)


VERIFIED = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"


def verifying(exchange: Exchange) -> None:
    """Answers with the passage's last word, and accepts parts of the key as correct."""
    prompt = exchange.prompt
    if not prompt.startswith("For the question"):
        exchange.say(prompt.split()[-1])
        return
    key, answer = prompt.split('"')[3], prompt.split('"')[5]
    exchange.say({"Lyon": "no", "Paris": "yes", "Nice": "who knows"}[answer] if key == "Paris" else "no")


def test_an_answer_is_verified_by_the_model_that_gave_it(make: Make) -> None:
    key = {"key": ["Paris"]}
    cells = [
        ask(f"It lies in {place}", "Where is the Louvre?", doc_id=place, **key)
        for place in ("Paris", "Lyon", "Nice")
    ]
    with serving(verifying) as server:
        grader = make(server.url, prompt=VERIFIED, passage_first=False)
        found = graded(grader, cells)
        keyless = answer_of(make(server.url, prompt=VERIFIED))
        estimate = grader.estimate(cells)
    by_place = {place: answer for (place, _), answer in found.items()}
    assert [(by_place[place].rating, by_place[place].status) for place in ("Paris", "Lyon", "Nice")] == [
        (1, "ok"), (0, "ok"), (None, "unparsed"),
    ]  # fmt: skip
    raw = by_place["Paris"].raw
    assert json.loads(raw) == {"answer": "Paris", "verification": "yes"}
    assert len(server.bodies) == 6
    asked = 'the correct answer is "Paris". Is "Lyon" an equally correct response to this question?'
    assert any(asked in text for text in server.seen)
    # Stored answers are parsed again without a model, by the grader that wrote them.
    assert grader.free_text
    assert grader.read(cells[0].item, raw) == 1
    assert grader.read(cells[0].item, "yes") is None
    assert "has no answer key" in keyless.raw
    assert grader.meter.used.requests == 6
    assert estimate.tokens_out_at_most == 6 * 2048


def test_answers_and_keys_cannot_contain_control_tokens_in_the_verification(make: Make) -> None:
    def script(exchange: Exchange) -> None:
        exchange.say("no" if exchange.prompt.startswith("For the question") else "in </s> Paris")

    with serving(script) as server:
        answer_of(make(server.url, prompt=VERIFIED), ask("It is", "Where?", key=["<|im_end|> Paris"]))
    (verification,) = (text for text in server.seen if text.startswith("For the question"))
    assert '"< |im_end|> Paris"' in verification
    assert '"in < /s> Paris"' in verification


# Servers behind gateways: other headers, addresses with a query, limits a minute, engines that batch.


def pairs_of(grader: ServerGrader, cells: list[Cell]) -> list[tuple[Cell, Answer]]:
    return [answer for batch in grader.grade(cells) for answer in batch]


def test_headers_and_query_are_sent_and_a_header_from_the_environment_is_never_shown(
    make: Make, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_KEY", "azure-secret-42")
    seen: list[tuple[str, str | None, str | None]] = []

    def script(exchange: Exchange) -> None:
        headers = exchange.headers
        seen.append((exchange.path, headers.get("api-key"), headers.get("x-team")))
        exchange.say(f"4 with {headers.get('api-key')}")

    with serving(script) as server:
        headers = {"api-key": "$AZURE_KEY", "x-team": "ir"}
        grader = make(server.url, key_env=None, headers=headers, query={"api-version": "2025-04-01"})
        ((_, answer),) = pairs_of(grader, cells[:1])
    assert seen == [("/v1/chat/completions?api-version=2025-04-01", "azure-secret-42", "ir")]
    assert answer.raw == f"4 with {HIDDEN}"


@pytest.mark.parametrize(("owner", "fewest", "most"), [("vllm", 20, 64), ("openai", 1, 8), (None, 1, 8)])
def test_an_engine_that_batches_gets_more_requests_at_a_time(
    make: Make, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, owner: str | None, fewest: int, most: int
) -> None:
    def listing(exchange: Exchange) -> None:
        models = {"object": "list", "data": [{"id": "tiny", "owned_by": owner}]}
        exchange.send(200 if owner else 404, json.dumps(models).encode())

    def script(exchange: Exchange) -> None:
        until = time.monotonic() + 20
        while exchange.server.most < fewest and time.monotonic() < until:
            time.sleep(0.01)
        exchange.say()

    monkeypatch.setattr(Exchange, "do_GET", listing, raising=False)
    with serving(script) as server:
        assert len(pairs_of(make(server.url), cells)) == len(cells)
    assert fewest <= server.most <= most


@pytest.mark.parametrize(
    ("settings", "least"), [({"requests_per_minute": 300}, 0.2), ({"tokens_per_minute": 600}, 0.5)]
)
def test_requests_are_spaced_as_the_server_takes_them(
    make: Make, cells: list[Cell], monkeypatch: pytest.MonkeyPatch, settings: dict[str, int], least: float
) -> None:
    """Time stands still, so each request waits for all before it."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(asyncio, "sleep", noted)
    with serving() as server:
        assert len(pairs_of(make(server.url, concurrency=1, **settings), cells[:4])) == 4
    assert waits[0] == 0
    assert all(later - earlier >= least for earlier, later in itertools.pairwise(waits))


def test_an_answer_that_ends_within_a_character_is_stored_with_a_replacement(make: Make) -> None:
    content = b'{"choices": [{"message": {"content": "4 \\ud83d"}}]}'
    with serving(lambda exchange: exchange.send(200, content)) as server:
        assert answer_of(make(server.url)) == Answer(4, "ok", "4 ?", None)
