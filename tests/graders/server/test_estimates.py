"""The number of calls that `--estimate` shows equals the number that a server gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from assigning import nuggets_in
from scripted_server import Exchange, Scripted, serving
from support import write_run
from text_files import put_rows

from trecexam.cli.main import run
from trecexam.graders.prompts import published

Script = Callable[[Exchange], None]
OWN = {
    "own.toml": 'template = "Rate from 0 to 5: {question} {passage}"\n',
    "own-list.toml": 'group = 3\nparser = "assignment"\n'
    'template = "{passage}\\nNugget List: {nuggets}\\n{num_nuggets} labels:"\n',
}
QUERIES = ("q1", "q2")
BY_KIND = {kind: [name for name, each in published().items() if each.asks == kind] for kind in (
    "question", "nugget", "query")}  # fmt: skip
LISTS = {name for name, prompt in published().items() if prompt.group > 1} | {"own-list.toml"}


def supported(exchange: Exchange) -> None:
    """All nuggets of a list are supported."""
    exchange.say(str(["support"] * len(nuggets_in(exchange.prompt))))


def estimated(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*(words or ("watch", str(root))), "--estimate", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    found: dict[str, Any] = row
    return found


def calls_made(root: Path, server: Scripted, *words: str) -> int:
    server.bodies.clear()
    assert run([*(words or ("watch", str(root), "--once"))]) in {0, 1}
    return len(server.bodies)


def track(root: Path, url: str, **settings: Any) -> Path:
    """Two queries with five passages each; 13 nuggets, and three questions of which one has no answer key."""
    root.mkdir()
    (root / "queries.tsv").write_text("".join(f"{q}\tquery {q}\n" for q in QUERIES))
    texts = {f"{q}-d{n}": f"Passage {n} about {q}." for q in QUERIES for n in range(5)}
    put_rows(root / "passages.jsonl", *({"docid": d, "text": text} for d, text in texts.items()))
    questions: list[Any] = [
        {"query_id": q, "questions": [
            {"question_id": f"{q}/{n}", "question_text": f"What of {q} is {n}?",
             **({"gold_answers": [str(n)]} if n else {})}
            for n in range(3)]}
        for q in QUERIES
    ]  # fmt: skip
    nuggets: list[Any] = [
        {"query_id": q, "nuggets": [
            {"nugget_id": f"{q}/n{n}", "nugget_text": f"Nugget {n} of {q}."} for n in range(13)]}
        for q in QUERIES
    ]  # fmt: skip
    put_rows(root / "bank.questions.jsonl", *questions)
    put_rows(root / "bank.nuggets.jsonl", *nuggets)
    write_run(root / "runs" / "one.run", {q: [f"{q}-d{n}" for n in range(4)] for q in QUERIES})
    words = {"name": "openai", "model": "tiny", "base_url": url, "max_new_tokens": 50, **settings}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    for name, content in OWN.items():
        (root / name).write_text(content)
    (root / "trecexam.toml").write_text(f"[report]\nwrite = false\n[grader]\n{lines}")
    return root


#: These have one call per cell, as UMBRELA has.
ALIKE = {"Sun", "Sun_few", "HELM", "FagB", "FagB_few", "Thomas"}


@pytest.mark.parametrize(
    "prompt",
    sorted({*BY_KIND["question"], *BY_KIND["nugget"], *BY_KIND["query"], *OWN} - ALIKE),
)
def test_the_estimate_counts_every_call_of_a_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prompt: str
) -> None:
    with serving(supported if prompt in LISTS else Exchange.say) as server:
        root = track(tmp_path / "track", server.url, prompt=prompt)
        found = estimated(root, capsys)
        assert not server.bodies
        assert calls_made(root, server) == found["calls"] <= found["calls_at_most"]
        assert found["calls_at_most"] == found["calls"] or prompt in LISTS
        assert estimated(root, capsys)["cells"] == 0


def test_unreadable_lists_take_at_most_the_estimated_number_of_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readable: list[str] = []

    def script(exchange: Exchange) -> None:
        # All but one: where none can be read, the grader is not asked on.
        readable.append(exchange.prompt)
        if exchange.prompt == readable[0]:
            supported(exchange)
        else:
            exchange.say("It depends.")

    with serving(script) as server:
        root = track(tmp_path / "track", server.url, prompt="NuggetAssign")
        found = estimated(root, capsys)
        # The nuggets of that one are not requested one by one.
        calls = calls_made(root, server)
        assert calls == found["calls_at_most"] - len(nuggets_in(readable[0])) > found["calls"]
