"""The budget of [grader] is one purse: for grades, and for all that its model is asked to write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ragval import questions
from scripted_server import Exchange, Scripted, serving
from support import make_small_track

import trecexam
from trecexam.cli.main import run


def answer(exchange: Exchange) -> None:
    """Of prompts that ask for items two, else a rating."""
    if "rate" in exchange.prompt.lower():
        exchange.say("4")
    else:
        exchange.say(json.dumps({"questions": ["What is the one thing?", "Where is the other one?"]}))


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(answer) as running:
        yield running


def settings(server: Scripted, more: str = "", writes: str = "") -> str:
    return (
        f'[report]\nwrite = false\n[grader]\nname = "openai"\nmodel = "m"\nbase_url = "{server.url}"\n'
        f"concurrency = 1\nlogprobs = false\nmax_new_tokens = 20\n{more}{writes}"
    )


def spent(server: Scripted, err: str) -> int:
    """The tokens that a command says it used."""
    counts = re.search(r"([\d,]+) tokens in, ([\d,]+) out", err)
    return sum(int(count.replace(",", "")) for count in counts.groups()) if counts else 0


def test_what_grading_used_counts_for_all_that_the_model_writes_and_the_other_way_round(
    server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track", config=settings(server), queries=2)
    (root / "bank.blocks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions()))
    with trecexam.open_track(root) as track:
        assert track.update().complete
        used = track.status()
    tokens = used["tokens_in"] + used["tokens_out"]
    commands = (
        ["bank", "generate", str(root), "--again", "--prompt", "nuggets"],
        ["exam", "generate", str(root), "--domain", "things"],
        ["ragval", "answers", str(root)],
    )
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {tokens + 10}\n"))
    asked = len(server.bodies)
    for command in commands:
        capsys.readouterr()
        assert run(command) == 1
        assert f"`budget_tokens` = {tokens + 10:,} in [grader] is reached" in capsys.readouterr().err
    assert len(server.bodies) == asked
    # A model of its own has a purse of its own.
    own = f'[generator]\nname = "openai"\nmodel = "n"\nbase_url = "{server.url}"\nmax_new_tokens = 20\n'
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {tokens + 10}\n", own))
    run(commands[2])
    assert len(server.bodies) > asked

    (root / "trecexam.toml").write_text(settings(server))
    capsys.readouterr()
    run(commands[1])
    written = spent(server, capsys.readouterr().err)
    assert written > 0
    # What is written now leaves nothing for grades.
    (root / "runs" / "new.run").write_text("q1 Q0 d7 1 1 new\n")
    passages = root / "passages.jsonl"
    passages.write_text(passages.read_text() + json.dumps({"docid": "d7", "text": "New."}) + "\n")
    enough = tokens + written + 10
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {enough}\n"))
    with trecexam.open_track(root) as track:
        done = track.update()
    assert (done.graded, done.complete) == (0, False)
    assert f"`budget_tokens` = {enough:,} in [grader] is reached" in done.why
