"""Servers behind gateways: other headers, addresses with a query, limits a minute, engines that batch."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from scripted_server import Exchange, serving

from trecexam.errors import GraderError
from trecexam.graders import Answer, Cell
from trecexam.graders.server import exchange
from trecexam.graders.server.client import HIDDEN
from trecexam.graders.server.grader import ServerGrader

Make = Callable[..., ServerGrader]


def graded(grader: ServerGrader, cells: list[Cell]) -> list[tuple[Cell, Answer]]:
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
        ((_, answer),) = graded(grader, cells[:1])
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
        assert len(graded(make(server.url), cells)) == len(cells)
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
        assert len(graded(make(server.url, concurrency=1, **settings), cells[:4])) == 4
    assert waits[0] == 0
    assert all(later - earlier >= least for earlier, later in itertools.pairwise(waits))


def test_a_model_that_takes_one_temperature_says_what_to_set(make: Make, cells: list[Cell]) -> None:
    said = "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1)"
    with (
        serving(lambda exchange: exchange.fail(400, said, "unsupported_value")) as server,
        pytest.raises(GraderError, match=r"Only the default \(1\): set `temperature = 1` in \[grader\]$"),
    ):
        graded(make(server.url), cells[:1])
