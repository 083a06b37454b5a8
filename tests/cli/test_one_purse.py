"""The budget of [grader] covers grading and all text that its model generates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ragval import questions
from scripted_server import Exchange, Scripted, serving
from support import make_small_track
from text_files import put_rows

import trecexam
from trecexam.cli.main import run


def answer(exchange: Exchange) -> None:
    """Two items for prompts that ask for items, else a rating."""
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
    """The tokens that a command reports."""
    counts = re.search(r"([\d,]+) tokens in, ([\d,]+) out", err)
    return sum(int(count.replace(",", "")) for count in counts.groups()) if counts else 0


def counted(server: Scripted) -> int:
    """The tokens of all answers of the server."""
    return sum(len(body["messages"][-1]["content"].split()) + 3 for body in server.bodies)


def add_passage(root: Path) -> None:
    """Adds a cell that is not graded yet."""
    (root / "runs" / "new.run").write_text("q1 Q0 d7 1 1 new\n")
    passages = root / "passages.jsonl"
    passages.write_text(passages.read_text() + json.dumps({"docid": "d7", "text": "New."}) + "\n")


def test_grading_and_text_generation_share_one_budget(
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
    # A separate model has a separate budget.
    own = f'[generator]\nname = "openai"\nmodel = "n"\nbase_url = "{server.url}"\nmax_new_tokens = 20\n'
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {tokens + 10}\n", own))
    run(commands[2])
    assert len(server.bodies) > asked

    (root / "trecexam.toml").write_text(settings(server))
    capsys.readouterr()
    run(commands[1])
    written = spent(server, capsys.readouterr().err)
    assert written > 0
    # Generated text leaves no budget for grades.
    add_passage(root)
    enough = tokens + written + 10
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {enough}\n"))
    with trecexam.open_track(root) as track:
        done = track.update()
    assert (done.graded, done.complete) == (0, False)
    assert f"`budget_tokens` = {enough:,} in [grader] is reached" in done.why


GOLD = [{"query_id": query, "outputs": ["4"]} for query in ("q1", "q2")]


def set_budget(root: Path, server: Scripted, tokens: int) -> None:
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {tokens}\n"))


def test_erag_shares_the_budget_of_the_grader_whose_model_it_uses(
    server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track", config=settings(server), queries=2)
    put_rows(root / "gold.jsonl", *GOLD)
    command = ["erag", str(root), "--gold", str(root / "gold.jsonl")]
    with trecexam.open_track(root) as track:
        assert track.update().complete
        used = track.status()
    tokens, asked = used["tokens_in"] + used["tokens_out"], len(server.bodies)
    set_budget(root, server, tokens + 10)
    assert run(command) == 1
    assert f"`budget_tokens` = {tokens + 10:,} in [grader] is reached" in capsys.readouterr().err
    assert len(server.bodies) == asked

    # eRAG leaves no budget for grades or for other text of the model.
    (root / "trecexam.toml").write_text(settings(server))
    with trecexam.open_track(root) as track:
        track.erag.score(root / "gold.jsonl")
    assert len(server.bodies) > asked
    enough = counted(server) + 10
    set_budget(root, server, enough)
    add_passage(root)
    asked = len(server.bodies)
    with trecexam.open_track(root) as track:
        update = track.update()
    assert (update.graded, update.complete) == (0, False)
    assert f"`budget_tokens` = {enough:,} in [grader] is reached" in update.why
    assert run(["exam", "generate", str(root), "--domain", "things"]) == 1
    assert len(server.bodies) == asked


def test_erag_shares_the_budget_of_the_generator_whose_model_it_uses(
    server: Scripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = f'[generator]\nname = "openai"\nmodel = "n"\nbase_url = "{server.url}"\nmax_new_tokens = 20\n'
    root = make_small_track(tmp_path / "track", config=settings(server, "", model), queries=2)
    put_rows(root / "gold.jsonl", *GOLD)
    with trecexam.open_track(root) as track:
        track.erag.score(root / "gold.jsonl")
    spent_by_erag = counted(server)
    asked = len(server.bodies)
    limit = f"budget_tokens = {spent_by_erag + 10}\n"
    (root / "trecexam.toml").write_text(settings(server, "", model + limit))
    assert run(["exam", "generate", str(root), "--domain", "things"]) == 1
    assert f"`budget_tokens` = {spent_by_erag + 10:,} in [generator] is reached" in capsys.readouterr().err
    assert len(server.bodies) == asked
    # It is not that of the grader.
    (root / "trecexam.toml").write_text(settings(server, f"budget_tokens = {spent_by_erag}\n", model))
    with trecexam.open_track(root) as track:
        assert track.update().graded > 0
