"""`trecexam ragval answers`: the closed-book baseline and the oracle, as runs of the track."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")

from ragval import BLOCKS, make_track
from scripted_server import Exchange, serving
from text_files import put_rows

import trecexam
from trecexam.cli.main import run


def script(exchange: Exchange) -> None:
    """Answers well if there is a block; judges such answers well."""
    if "Chatbot generated answer" in exchange.prompt:
        good = "It is in the block." in exchange.prompt
        exchange.say(f'{{"relevance": {5 if good else 1}, "truthfulness": {5 if good else 2}}}')
    elif "Knowledge block: " in exchange.prompt:
        exchange.say("<think>Let me see.</think>It is in the block.")
    else:
        exchange.say("I do not know.")


def make(root: Path, url: str) -> Path:
    server = {"name": "openai", "model": "writer", "base_url": url, "key_env": "TEST_KEY"}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.items())
    return make_track(root, url, more=f"[generator]\n{text}price_in = 1.0\nprice_out = 1.0\n")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_both_baselines_are_answered_once_and_used_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(script) as server:
        root = make(tmp_path / "track", server.url)
        assert run(["ragval", "answers", str(root), "--estimate"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith("6\t")
        assert run(["ragval", "answers", str(root)]) == 0
        prompts = sorted(body["messages"][-1]["content"] for body in server.bodies)
        assert run(["ragval", "answers", str(root)]) == 0
        assert len(server.bodies) == 6
        assert "3 answers: " in capsys.readouterr().err
        put_rows(root / "runs" / "mine.jsonl", {"question_id": "k1/1", "answer": "Perhaps."})
        assert run(["watch", str(root), "--once"]) == 0
    assert prompts == sorted(
        [*(f"What of {key}?" for key in BLOCKS)]
        + [
            "Answer the question with the knowledge block.\n\n"
            f"Question: What of {key}?\n\nKnowledge block: {text}"
            for key, text in BLOCKS.items()
        ]
    )
    (row, *_) = lines(root / "runs" / "oracle.jsonl")
    assert row["origin"].pop("time").endswith("Z")
    assert row == {
        "question_id": "k1/1",
        "run_id": "oracle",
        "question": "What of k1?",
        "answer": "It is in the block.",
        "n_input_tokens": 17,
        "n_output_tokens": 3,
        "origin": {"prompt": "ragval-oracle", "model": "writer", "seed": None, "cut": False},
    }
    report = (root / "out" / "ragval" / "report.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in report] == ["run_id", "oracle", "closed-book", "mine"]
    assert report[1].endswith("\t50\t9")


def test_an_edited_file_is_left_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(script) as server:
        root = make(tmp_path / "track", server.url)
        path = put_rows(root / "runs" / "oracle.jsonl", {"question_id": "k1/1", "answer": "Mine."})
        before = path.read_bytes()
        assert run(["ragval", "answers", str(root)]) == 2
        assert "was edited, or not written by `ragval answers`" in capsys.readouterr().err
        assert path.read_bytes() == before
        assert not server.bodies
    assert [path.name for path in (root / "runs").iterdir()] == ["oracle.jsonl"]


def test_a_question_without_an_answer_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refusing(exchange: Exchange) -> None:
        if "k2" in exchange.prompt:
            exchange.fail(400, "not this one")
        else:
            script(exchange)

    with serving(refusing) as server:
        root = make(tmp_path / "track", server.url)
        assert run(["ragval", "answers", str(root)]) == 1
    assert "question k2/1: the model" in capsys.readouterr().err
    assert [row["question_id"] for row in lines(root / "runs" / "closed-book.jsonl")] == ["k1/1", "k3/1"]


def test_the_oracle_shows_a_server_as_much_of_a_block_as_the_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(script) as server:
        root = make_track(tmp_path / "track", server.url, max_characters=18)
        assert run(["ragval", "answers", str(root)]) == 0
        prompts = [body["messages"][-1]["content"] for body in server.bodies]
        shown = sorted(prompt.partition("block: ")[2] for prompt in prompts if "block: " in prompt)
    assert shown == ["Fans move air.", "Frost settles on", "Heat pumps move"]
    assert "2 blocks cut at the end" in capsys.readouterr().err


def test_a_stopped_run_resumes(tmp_path: Path) -> None:
    with serving(script) as server:
        root = make(tmp_path / "track", server.url)
        with trecexam.open_track(root) as track:
            made = track.ragval.answer(stop=lambda: len(server.bodies) >= 1)
            assert made.why == "stopped"
            made = track.ragval.answer()
        assert made.complete
        assert len(server.bodies) == 6
    assert len(lines(root / "runs" / "oracle.jsonl")) == 3
