"""Tokens and costs: counted, estimated before grading, and limited."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scripted_server import KEY, Exchange, serving

import trecexam
from trecexam.cli.main import run
from trecexam.config import load_config
from trecexam.errors import GraderError
from trecexam.graders.meter import Usage
from trecexam.graders.server.grader import ServerGrader

Make = Callable[..., ServerGrader]
MakeTrack = Callable[..., Path]
PRICES = {"price_in": 2.0, "price_out": 10.0}


def usage(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "out" / "manifest.json").read_text())["usage"]
    return found


def estimate(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert run(["watch", str(root), "--estimate"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    return dict(zip(header.split("\t"), row.split("\t"), strict=True))


def test_the_manifest_has_the_usage_of_this_update_and_in_total(track: MakeTrack) -> None:
    with serving() as server:
        root = track(server.url, **PRICES)
        assert run(["watch", str(root), "--once"]) == 0
        asked = len(server.bodies)
        words = sum(len(prompt.split()) for prompt in server.seen)
        cost = (2 * words + 10 * 3 * asked) / 1e6
        with trecexam.open_track(root) as opened:
            assert opened.status()["requests"] == asked
            assert opened.status()["cost"] == pytest.approx(cost)
        all_of_it = {
            "requests": asked,
            "tokens_in": words,
            "tokens_out": 3 * asked,
            "cost": pytest.approx(cost),
        }
        assert usage(root) == {"this_update": all_of_it, "total": all_of_it}
        text = (root / "passages.jsonl").read_text()
        (root / "passages.jsonl").write_text(text.replace("passage 1 about q1", "another text"))
        assert run(["watch", str(root), "--once"]) == 0
    found = usage(root)
    assert found["this_update"]["requests"] == 2
    assert found["total"]["requests"] == asked + 2 == len(server.bodies)


def test_paid_but_useless_answers_count_too(make: Make, cells: list[Any]) -> None:
    content = b'{"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 500}}'
    with serving(lambda exchange: exchange.send(200, content)) as server:
        grader = make(server.url, retries=2, concurrency=1)
        with pytest.raises(GraderError, match="holds no completion"):
            list(grader.grade(cells[:1]))
    assert grader.meter.used == Usage(4, 4 * 70, 4 * 500)


@pytest.mark.parametrize("number", ["null", "-1", str(10**40), '"many"'])
def test_token_counts_that_are_missing_or_impossible_are_estimated(track: MakeTrack, number: str) -> None:
    counted = f'{{"prompt_tokens": {number}, "completion_tokens": {number}}}'
    content = f'{{"choices": [{{"message": {{"content": "4"}}}}], "usage": {counted}}}'.encode()
    with serving(lambda exchange: exchange.send(200, content)) as server:
        root = track(server.url)
        assert run(["watch", str(root), "--once"]) == 0
    total = usage(root)["total"]
    assert total["requests"] == len(server.bodies)
    assert 100 * total["requests"] < total["tokens_in"] < 10**6
    assert total["cost"] is None


def test_an_estimate_sends_no_request_and_needs_no_key(
    track: MakeTrack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_KEY")
    with serving() as server:
        root = track(server.url, max_new_tokens=100, **PRICES)
        found = estimate(root, capsys)
        assert server.bodies == []
    assert not (root / "out").exists()
    with trecexam.open_track(root) as opened:
        cells = opened.grading.counts().missing
    assert int(found["cells"]) == cells
    assert int(found["tokens_out"]) == 8 * cells
    assert int(found["tokens_out_at_most"]) == 100 * cells
    tokens_in = int(found["tokens_in"])
    assert float(found["cost"]) == pytest.approx((2 * tokens_in + 10 * 8 * cells) / 1e6, abs=1e-4)
    assert float(found["cost_at_most"]) == pytest.approx((2 * tokens_in + 1000 * cells) / 1e6, abs=1e-4)


def test_an_estimate_uses_observed_answer_lengths_and_counts_only_new_cells(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        root = track(server.url)
        assert run(["watch", str(root), "--once"]) == 0
    assert estimate(root, capsys)["cells"] == "0"
    bank = (root / "bank.questions.jsonl").read_text()
    (root / "bank.questions.jsonl").write_text(bank.replace("question 1 of q1?", "quite another one?"))
    found = estimate(root, capsys)
    assert int(found["cells"]) > 0
    assert int(found["tokens_out"]) == 3 * int(found["cells"])
    assert "set `price_in`" in capsys.readouterr().err or found["cost"] in {"", "None", "-"}


def test_two_exceeded_limits_are_both_reported(track: MakeTrack, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        root = track(server.url, max_new_tokens=20, budget_tokens=1, budget=1e-9, **PRICES)
        assert run(["watch", str(root), "--once"]) == 1
        both = "ended early: `budget` = 1e-09 and `budget_tokens` = 1 in [grader] are reached; raise both"
        assert both in capsys.readouterr().err
        assert not server.bodies


@pytest.mark.parametrize(
    ("limit", "said"),
    [({"budget_tokens": 3000}, "`budget_tokens` = 3,000"), ({"budget": 0.005, **PRICES}, "`budget` = 0.005")],
)
def test_grading_stops_before_a_budget_is_exceeded_and_resumes_when_it_is_raised(
    track: MakeTrack, capsys: pytest.CaptureFixture[str], limit: dict[str, float], said: str
) -> None:
    with serving() as server:
        root = track(server.url, max_new_tokens=20, **limit)
        assert run(["watch", str(root), "--once"]) == 1
        assert f"ended early: {said} in [grader] is reached" in capsys.readouterr().err
        total = usage(root)["total"]
        if "budget" in limit:
            assert 0.004 < total["cost"] <= 0.005
        else:
            assert 1500 < total["tokens_in"] + total["tokens_out"] <= 3000
        assert not json.loads((root / "out" / "manifest.json").read_text())["complete"]
        first = len(server.bodies)
        with trecexam.open_track(root) as opened:
            assert len(list(opened.grades())) == first == total["requests"]
        # A second estimate: the usage is stored.
        assert run(["watch", str(root), "--once"]) == 1
        assert usage(root)["total"]["tokens_in"] + usage(root)["total"]["tokens_out"] <= 4 * 3000
        again = len(server.bodies)
        assert again - first <= 2
        config = (root / "trecexam.toml").read_text()
        for name, value in limit.items():
            if name.startswith("budget"):
                config = config.replace(f"{name} = {value}", f"{name} = {value * 1000}")
        (root / "trecexam.toml").write_text(config)
        assert run(["watch", str(root), "--once"]) == 0
    assert set(server.seen.values()) == {1}


# Replies that `max_new_tokens` ends: unparsed with the remedy, and asked again with more tokens.


def set_limit(root: Path, limit: int) -> None:
    path = root / "trecexam.toml"
    lines = [line for line in path.read_text().splitlines() if "max_new_tokens" not in line]
    lines.insert(lines.index("[grader]") + 1, f"max_new_tokens = {limit}")
    path.write_text("\n".join(lines) + "\n")


def thinking(exchange: Exchange) -> None:
    """Thinks about passage 3 for 1,000 tokens, and answers the others at once."""
    if "passage 3" not in exchange.prompt.lower():
        exchange.say("4", finish="length" if "passage 4" in exchange.prompt.lower() else "stop")
    elif exchange.body["max_tokens"] < 1000:
        exchange.say("<think>\n3\nbecause", finish="length")
    else:
        exchange.say("<think>\n3?</think>5")


def test_raising_the_limit_asks_again_for_cut_cells_alone(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(thinking) as server:
        root = track(server.url, max_new_tokens=100)
        run(["watch", str(root), "--once"])
        first = len(server.bodies)
        with trecexam.open_track(root) as opened:
            counts = opened.grading.counts()
            n_cut = counts.unparsed
            assert n_cut > 0
        capsys.readouterr()
        run(["status", str(root)])
        assert "ends early: raise `max_new_tokens`" in "".join(capsys.readouterr())
        set_limit(root, 50)
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == first
        set_limit(root, 2000)
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == first + n_cut
        with trecexam.open_track(root) as opened:
            assert opened.grading.counts().unparsed == 0
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == first + n_cut


def test_kept_answers_are_read_anew_and_not_asked_for_again(track: MakeTrack) -> None:
    with serving(lambda exchange: exchange.say("Final answer: 4")) as server:
        root = track(server.url)
        run(["watch", str(root), "--once"])
        asked = len(server.bodies)
        # An older reader could not read them.
        with closing(sqlite3.connect(root / ".trecexam" / "grades.sqlite")) as store:
            store.execute("UPDATE grade SET rating = NULL, status = 'unparsed'")
            store.commit()
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == asked
    with trecexam.open_track(root) as opened:
        assert opened.grading.counts().unparsed == 0


def test_init_rejects_an_address_with_a_key_and_does_not_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--grader", "openai", "--base-url", f"https://u:{KEY}@host/v1"]
    assert run(["init", str(tmp_path / "new"), *words]) == 2
    err = capsys.readouterr().err
    assert "--base-url" in err
    assert KEY not in err
    assert not (tmp_path / "new").exists()


def test_a_setting_that_the_grader_ignores_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--grader", "embedding", "--base-url", "http://host/v1", "--prompt", "Sun", "--metric", "f1"]
    assert run(["init", str(tmp_path / "new"), *words]) == 0
    err = capsys.readouterr().err
    for option in ("--base-url", "--prompt", "--metric"):
        assert f"note: {option} changes nothing: it is for --grader " in err


@pytest.mark.parametrize(
    ("words", "grader"),
    [
        (["--base-url", "http://host/v1", "--model", "m"], "openai"),
        (["--metric", "f1", "--base-url", "http://host/v1", "--model", "m"], "erag"),
    ],
)
def test_a_setting_for_one_grader_only_names_it(words: list[str], grader: str, tmp_path: Path) -> None:
    assert run(["init", str(tmp_path / "new"), *words]) == 0
    assert load_config(tmp_path / "new" / "trecexam.toml").grader.name == grader
