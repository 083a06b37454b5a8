"""`trecexam ragval questions`: prompts, output, and edits by people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")

from scripted_server import Exchange, serving
from text_files import put_rows

import trecexam
from converters.bank import read_bank
from trecexam.cli.main import run

BLOCKS: list[dict[str, Any]] = [
    {"block_id": "k1", "title": "Heat", "content": "Heat rises.", "url": "u", "date": "2023", "lang": "en"},
    {"block_id": "k2", "content": "Cold sinks."},
    {"content": "No questions here."},
]


def answer_with_question(exchange: Exchange) -> None:
    """Asks about the topic of the text; another question for each seed."""
    text = exchange.prompt.rpartition("text: ")[2]
    seed = exchange.body["seed"]
    exchange.say("I will not." if text.startswith("No") else f'Question: "Why {text.split()[0]}, in {seed}?"')


def track(root: Path, url: str, blocks: list[Any] = BLOCKS, **settings: Any) -> Path:
    put_rows(root / "blocks.jsonl", *blocks)
    words = {"name": "openai", "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    (root / "trecexam.toml").write_text(f"[generator]\n{text}")
    return root


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_block_gets_a_question_with_the_block_and_its_origin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer_with_question) as server:
        root = track(tmp_path / "track", server.url, price_in=1.0, price_out=1.0)
        assert run(["ragval", "questions", str(root), "--estimate"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("3\t")
        assert not server.bodies
        assert run(["ragval", "questions", str(root)]) == 0
        bodies = {body["messages"][-1]["content"]: body for body in server.bodies}
    assert set(bodies) == {
        f"Generate a creative question about the contents of the following text: {row['content']}"
        for row in BLOCKS
    }
    # With sampling, and a seed that is stored.
    assert {(body["temperature"], body["seed"]) for body in bodies.values()} == {(1.0, 0)}
    first, second = lines(root / "bank.questions.jsonl")
    assert first["origin"].pop("time").endswith("Z")
    assert first == {
        "question_id": "k1/1",
        "question": "Why Heat, in 0?",
        **BLOCKS[0],
        "origin": {"prompt": "ragval-question", "model": "tiny", "seed": 0, "text": "Why Heat, in 0?"},
    }
    assert (second["question_id"], second["content"]) == ("k2/1", "Cold sinks.")
    (unread,) = lines(root / "questions.unread.jsonl")
    assert (unread["reason"], unread["raw"]) == ("no question mark", "I will not.")
    said = capsys.readouterr().err
    assert "no question in 1 answer: no question mark" in said
    assert "2 new questions" in said
    assert "cost" in said
    assert len(list(read_bank(root / "bank.questions.jsonl"))) == 4


def first_block(root: Path, per_block: int = 1) -> None:
    """Generates questions about the first block."""
    first = put_rows(root / "first.jsonl", *BLOCKS[:1])
    with trecexam.open_track(root) as opened:
        assert opened.ragval.write_questions(first, per_block=per_block).complete


def test_several_questions_per_block_use_different_seeds_and_no_prompt_is_repeated(tmp_path: Path) -> None:
    with serving(answer_with_question) as server:
        root = track(tmp_path / "track", server.url, seed=7, temperature=0.3)
        path = root / "bank.questions.jsonl"
        first_block(root)
        before = path.read_bytes()
        first_block(root, 3)
        assert [body["temperature"] for body in server.bodies] == [0.3] * 3
        assert path.read_bytes().startswith(before)
        assert [(row["question_id"], row["origin"]["seed"]) for row in lines(path)] == [
            ("k1/1", 7),
            ("k1/2", 8),
            ("k1/3", 9),
        ]
        first_block(root, 3)
        path.unlink()
        first_block(root, 3)
        assert len(server.bodies) == 3
    assert len(lines(path)) == 3


def test_questions_edited_by_people_are_kept(tmp_path: Path) -> None:
    with serving(answer_with_question) as server:
        root = track(tmp_path / "track", server.url)
        path = root / "bank.questions.jsonl"
        first_block(root)
        edited = path.read_bytes().replace(b'"question": "Why Heat', b'"question": "But why heat').rstrip()
        own = b'\n{"question_id": "k2/1", "question": "Mine?", "content": "Cold sinks.", "block_id": "k2"}'
        path.write_bytes(edited + own)
        assert run(["ragval", "questions", str(root)]) == 0
        assert path.read_bytes().startswith(edited + own + b"\n")
        assert [row["question_id"] for row in lines(path)] == ["k1/1", "k2/1", "k2/2"]


def test_a_question_that_a_block_already_has_is_not_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda exchange: exchange.say("Why?")) as server:
        root = track(tmp_path / "track", server.url)
        root.joinpath("blocks.jsonl").write_text(json.dumps(BLOCKS[0]) + "\n")
        assert run(["ragval", "questions", str(root), "--per-block", "2"]) == 0
    assert len(lines(root / "bank.questions.jsonl")) == 1
    assert "no question in 1 answer: the block has this question already" in capsys.readouterr().err


def test_a_long_block_is_cut_after_15000_characters_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = "x" * 14_999 + "yz"
    with serving(lambda exchange: exchange.say("Why?")) as server:
        root = track(tmp_path / "track", server.url, [{"content": content}, {"content": "x" * 15_000}])
        assert run(["ragval", "questions", str(root)]) == 0
        prompts = {body["messages"][-1]["content"] for body in server.bodies}
    assert {prompt.rpartition("text: ")[2] for prompt in prompts} == {"x" * 14_999 + "y", "x" * 15_000}
    assert "1 block cut at the end" in capsys.readouterr().err
    assert lines(root / "bank.questions.jsonl")[0]["content"] == content


def test_a_budget_covers_all_seeds_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answer_with_question) as server:
        settings = {"budget_tokens": 230, "max_new_tokens": 100, "concurrency": 1}
        root = track(tmp_path / "track", server.url, BLOCKS[:2], **settings)
        assert run(["ragval", "questions", str(root), "--per-block", "20"]) == 1
        assert len(server.bodies) < 40
    assert "`budget_tokens` = 230" in capsys.readouterr().err


def test_a_line_that_is_not_a_block_is_reported_and_the_others_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer_with_question) as server:
        root = track(tmp_path / "track", server.url, [BLOCKS[0], {"title": "nothing"}, BLOCKS[1]])
        assert run(["ragval", "questions", str(root)]) == 1
    assert len(lines(root / "bank.questions.jsonl")) == 2
    assert f"rejected: {root / 'blocks.jsonl'}:2: the block has no" in capsys.readouterr().err


def test_a_stopped_run_resumes(tmp_path: Path) -> None:
    with serving(answer_with_question) as server:
        root = track(tmp_path / "track", server.url, concurrency=1)
        with trecexam.open_track(root) as opened:
            made = opened.ragval.write_questions(per_block=2, stop=lambda: len(server.bodies) >= 1)
            assert made.why == "stopped"
            assert len(server.bodies) < 6
            made = opened.ragval.write_questions(per_block=2)
        assert made.complete
        assert len(server.bodies) == 6
    assert len(lines(root / "bank.questions.jsonl")) == 4
