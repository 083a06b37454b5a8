"""`trecexam bank generate --prompt nuggetizer` with scripted servers: prompts and results."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

pytest.importorskip("httpx2")
pytest.importorskip("json_repair")

from outside import outside
from scripted_server import Exchange, Scripted

import trecexam
from converters.bank import read_bank
from converters.records import Item
from trecexam.cli.main import run
from trecexam.extensions.banks.generation.nuggetizing import system_of
from trecexam.extensions.banks.generation.prompts import prompt_text
from trecexam.graders.replies import WrittenText

Asking = Callable[..., tuple[Scripted, Path]]
Capture = pytest.CaptureFixture[str]
QUERIES = {"q1": "cost of nuclear power", "q2": "how do {query} bees fly"}
#: Passages of each query's runs; d00 is first in all.
N_PASSAGES = 25


@pytest.fixture
def asking(server_track: Asking) -> Asking:
    """Starts a server with a script, and makes a track without a bank; settings go into [generator]."""
    return partial(server_track, QUERIES, [f"Text {n:02}." for n in range(40)], N_PASSAGES)


def is_creation(exchange: Exchange) -> bool:
    return "Updated Nugget List:" in exchange.prompt


def list_in(prompt: str) -> list[str]:
    """The nuggets in a prompt."""
    match = re.search(r"Nugget List: (\[.*\])$", prompt, re.M)
    assert match is not None
    nuggets: list[str] = ast.literal_eval(match[1])
    return nuggets


def passages_in(prompt: str) -> list[str]:
    return re.findall(r"^\[\d+\] Text (\d\d)\.$", prompt, re.M)


def fact(passage: str) -> str:
    return f"fact of text {passage}"


def extending(exchange: Exchange) -> None:
    """Adds a nugget for each passage to the list; every third nugget is vital."""
    nuggets = list_in(exchange.prompt)
    if is_creation(exchange):
        exchange.say(str(nuggets + [fact(passage) for passage in passages_in(exchange.prompt)]))
    else:
        exchange.say(str([importance(nugget) for nugget in nuggets]))


def importance(nugget: str) -> str:
    return "vital" if int(nugget[-2:]) % 3 == 0 else "okay"


def generated(root: Path, *words: str) -> int:
    return run(["bank", "generate", str(root), "--prompt", "nuggetizer", *words])


def bank_of(root: Path) -> dict[str, list[tuple[str, str]]]:
    bank: dict[str, list[tuple[str, str]]] = {}
    for item in items_of(root):
        bank.setdefault(item.query_id, []).append((item.text, item.importance))
    return bank


def items_of(root: Path) -> list[Item]:
    return list(read_bank(root / "bank.nuggets.jsonl"))


def kept_by_nuggetizer(created: Sequence[str]) -> list[tuple[str, str]]:
    """The nuggets that nuggetizer keeps of a list: vital ones first, each in order, at most twenty."""
    labelled = [(nugget, importance(nugget)) for nugget in created]
    return sorted(labelled, key=lambda each: each[1] != "vital")[:20]


@pytest.mark.parametrize("stage", ["creator", "scorer"])
def test_the_prompts_are_the_published_ones(stage: str) -> None:
    lines = outside(f"prompts/nuggetizer/{stage}.yaml").read_text().split("\n")
    system = next(line for line in lines if line.startswith("system_message: "))
    assert json.loads(system.removeprefix("system_message: ")) == system_of(stage)  # type: ignore[arg-type]
    block = lines[lines.index("prefix_user: |-") + 1 :]
    assert "\n".join(line.removeprefix("  ") for line in block) == prompt_text(f"nuggetizer-{stage}")


def test_nuggets_are_made_window_by_window_scored_and_the_first_twenty_kept(
    asking: Asking, capsys: Capture
) -> None:
    server, root = asking(extending, seed=7)
    assert generated(root) == 0
    created = [fact(f"{n:02}") for n in range(N_PASSAGES)]
    assert bank_of(root) == dict.fromkeys(QUERIES, kept_by_nuggetizer(created))
    of_q1 = [body for body in server.bodies if QUERIES["q1"] in body["messages"][-1]["content"]]
    creations = [body for body in of_q1 if "Updated Nugget" in body["messages"][-1]["content"]]
    prompts = [body["messages"][1]["content"] for body in creations]
    assert [passages_in(prompt) for prompt in prompts] == [
        [f"{n:02}" for n in range(start, min(start + 10, 25))] for start in (0, 10, 20)
    ]
    # Each step gets the list so far and numbers its passages from 1.
    assert [list_in(prompt) for prompt in prompts] == [[], created[:10], created[:20]]
    assert "Initial Nugget List Length: 20\n" in prompts[2]
    assert "\n[1] Text 20.\n" in prompts[2]
    assert "at most 30 nuggets" in prompts[0]
    scored = [body for body in of_q1 if body not in creations]
    assert sorted(len(list_in(body["messages"][1]["content"])) for body in scored) == [5, 10, 10]
    for bodies, stage in ((creations, "creator"), (scored, "scorer")):
        assert {body["messages"][0]["content"] for body in bodies} == {system_of(stage)}  # type: ignore[arg-type]
    # Braces in a query are not slots.
    assert any("Search Query: how do {query} bees fly" in prompt for prompt in server.seen)
    row = json.loads((root / "bank.nuggets.jsonl").read_text().splitlines()[0])
    assert row["importance"] == row["origin"]["importance"] == "vital"
    assert (row["origin"]["prompt"], row["origin"]["seed"]) == ("nuggetizer", 7)
    err = capsys.readouterr().err
    assert "left out: 10 more than asked for" in err
    assert "12 requests" in err


def test_relevant_passages_come_first_by_label_then_by_best_rank(asking: Asking) -> None:
    server, root = asking(extending)
    toml = root / "trecexam.toml"
    toml.write_text(toml.read_text() + "[scores]\nmin_relevant = 2\n")
    # b has d09 above d03; d39 is in no run, d38 below the label, d99 without a text.
    (root / "runs" / "b.run").write_text("q1 Q0 d09 1 2 b\nq1 Q0 d04 2 1 b\n")
    labels = {"d03": 2, "d09": 2, "d39": 3, "d38": 1, "d99": 3, "d30": 2}
    (root / "qrels.txt").write_text("".join(f"q1 0 {d} {label}\n" for d, label in labels.items()))
    assert generated(root, "--passages", "12") == 0
    (of_q1,) = (passages_in(prompt) for prompt in server.seen if "nuclear" in prompt and "Updated" in prompt)
    assert of_q1 == ["39", "09", "03", "30"]
    # The other query has no relevant passages: the first twelve by rank are used.
    of_q2 = [passages_in(p) for p in server.seen if "bees" in p and "Updated" in p]
    assert [each for window in of_q2 for each in window] == [f"{n:02}" for n in range(12)]


def test_responses_are_not_a_source_and_a_query_without_passages_is_reported(
    asking: Asking, capsys: Capture
) -> None:
    _, root = asking(extending)
    (root / "runs" / "a.run").write_text("q1 Q0 d05 1 2 a\n")
    row = {"run_id": "gen", "query_id": "q2", "response": "Bees fly by their wings.", "citations": []}
    (root / "runs" / "gen.jsonl").write_text(json.dumps(row) + "\n")
    assert generated(root) == 1
    assert "query q2: has no passage with a text" in capsys.readouterr().err
    assert bank_of(root) == {"q1": [(fact("05"), "okay")]}


def test_a_step_that_stays_unreadable_keeps_the_previous_list_and_is_reported(
    asking: Asking, capsys: Capture
) -> None:
    def script(exchange: Exchange) -> None:
        if "Text 10." in exchange.prompt:
            exchange.say("No. \x1b[31m")
        elif not is_creation(exchange) and fact("20") in exchange.prompt:
            exchange.say('["vital", "okay"]')
        else:
            extending(exchange)

    server, root = asking(script)
    assert generated(root, "--query", "q1") == 1
    err = capsys.readouterr().err
    assert max(server.seen.values()) == 1
    created = [fact(f"{n:02}") for n in (*range(10), *range(20, 25))]
    unlabelled = [(nugget, "") for nugget in created[10:]]
    assert bank_of(root)["q1"] == [*kept_by_nuggetizer(created[:10]), *unlabelled]
    assert "query q1: passages 11 to 20 changed no nugget: its answer begins 'No." in err
    assert "nuggets 11 to 15 got no importance" in err
    assert "\x1b" not in err


def test_when_stopped_after_a_step_finished_queries_are_written(asking: Asking) -> None:
    server, root = asking(extending)
    # q1 ends before q2: it has fewer passages.
    ranks = [f"q1 Q0 d{n:02} {n} {99 - n} a\n" for n in range(10)]
    (root / "runs" / "a.run").write_text("".join(ranks).replace("q1", "q2") + "q2 Q0 d11 20 1 a\n")
    (root / "runs" / "b.run").write_text("".join(ranks))
    with trecexam.open_track(root) as opened:
        made = opened.bank.generate(
            "nuggetizer",
            stop=lambda: (
                (root / ".trecexam" / "generated.jsonl").exists()
                and (root / ".trecexam" / "generated.jsonl").read_bytes().count(b'"answer"') >= 4
            ),
        )
    assert (made.why, made.queries, made.complete) == ("stopped", 1, False)
    assert bank_of(root) == {"q1": kept_by_nuggetizer([fact(f"{n:02}") for n in range(10)])}
    assert generated(root) == 0
    assert set(server.seen.values()) == {1}
    assert set(bank_of(root)) == set(QUERIES)


def test_an_estimate_bounds_the_number_of_prompts_and_sends_none(asking: Asking, capsys: Capture) -> None:
    def prompts() -> int:
        assert generated(root, "--estimate") == 0
        header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
        found = dict(zip(header, row, strict=True))
        assert found["calls_at_most"] == found["calls"] == found["prompts"]
        return int(found["prompts"])

    server, root = asking(extending, price_in=1.0, price_out=1.0)
    # Three windows of passages per query, and three of at most thirty nuggets.
    assert prompts() == 2 * (3 + 3)
    assert server.bodies == []
    assert generated(root, "--query", "q1") == 0
    assert prompts() == 3 + 3
    (root / "bank.nuggets.jsonl").unlink()
    # Cached answers need no prompts.
    assert prompts() == 3 + 3


class OwnWriter:
    """A custom writer, which gets no separate system message."""

    model, seed, meter, environment, new_tokens = "own", None, None, None, 1000

    def __init__(self) -> None:
        self.identity = {"writer": "own"}
        self.prompts: list[str] = []

    def plain(self, text: str) -> str:
        return text

    def fitted(self, render: Callable[[str], str], text: str) -> Any:
        from trecexam.graders.writing.base import Fitted

        return Fitted(render(text[:60]), cut=len(text) > 60)

    def write(self, prompts: Iterator[str]) -> Iterator[list[tuple[str, WrittenText]]]:
        for prompt in prompts:
            self.prompts.append(prompt)
            nuggets = list_in(prompt)
            creation = "Updated" in prompt
            texts = nuggets + [fact(each) for each in passages_in(prompt)]
            yield [(prompt, WrittenText(str(texts if creation else [*map(importance, nuggets)])))]


def test_a_custom_writer_gets_the_system_message_first_and_cuts_are_counted(
    asking: Asking,
) -> None:
    _, root = asking(extending)
    writer: Any = OwnWriter()
    with trecexam.open_track(root) as opened:
        made = opened.bank.generate("nuggetizer", query_ids=["q1"], passages=10, writer=writer)
    assert [prompt.split("\n\n")[0] for prompt in writer.prompts] == [
        system_of("creator"),
        system_of("scorer"),
    ]
    assert (made.complete, made.n_cut, made.asked) == (True, 1, 2)
    assert 0 < len(bank_of(root)["q1"]) < 10


def test_a_prompt_that_a_writer_passes_over_is_not_sent_for_ever(asking: Asking) -> None:
    class Silent(OwnWriter):
        def write(self, prompts: Iterator[str]) -> Iterator[list[tuple[str, WrittenText]]]:
            yield from super().write(prompt for prompt in prompts if "Updated" in prompt)

    _, root = asking(extending)
    with trecexam.open_track(root) as opened:
        made = opened.bank.generate("nuggetizer", query_ids=["q1"], passages=3, writer=Silent())  # type: ignore[arg-type]
    assert "got no importance: the model wrote nothing" in made.failures[0][1]
    assert {importance for _, importance in bank_of(root)["q1"]} == {""}


def test_a_local_model_is_loaded_once_and_told_both_system_messages(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_models import save_llama

    from trecexam.extensions.local_models.writer import LocalWriter

    save_llama(tmp_path / "model")
    _, root = asking(extending)
    (root / "trecexam.toml").write_text(
        f'[generator]\nname = "causal"\nmodel = "{tmp_path / "model"}"\ndevice = "cpu"\nmax_new_tokens = 8\n'
    )
    loaded, told = set(), set()

    def write(self: LocalWriter, prompts: Iterator[str]) -> Iterator[list[tuple[str, WrittenText]]]:
        loaded.add(id(self.backend))
        told.add(self.settings.system)
        yield from OwnWriter().write(prompts)

    monkeypatch.setattr(LocalWriter, "_write", write)
    assert generated(root, "--query", "q1", "--passages", "3") == 0
    assert bank_of(root)["q1"] == kept_by_nuggetizer([fact(f"{n:02}") for n in range(3)])
    assert (len(loaded), told) == (1, {system_of("creator"), system_of("scorer")})


def test_a_generation_killed_between_steps_resumes(asking: Asking) -> None:
    def script(exchange: Exchange) -> None:
        if "Text 20." in exchange.prompt:
            exchange.hang()
        else:
            extending(exchange)

    server, root = asking(script)
    kept = root / ".trecexam" / "generated.jsonl"
    words = [sys.executable, "-m", "trecexam", "bank", "generate", str(root), "--prompt", "nuggetizer"]
    process = subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)})
    until = time.monotonic() + 60
    while not any("Text 20." in prompt for prompt in [*server.seen]) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert kept.read_bytes().count(b'"answer"') == 4
    assert not (root / "bank.nuggets.jsonl").exists()
    server.script = extending
    assert generated(root) == 0
    # Answered prompts are not sent again; pending ones are.
    assert {server.seen[prompt] for prompt in server.seen if "Text 20." not in prompt} == {1}
    assert bank_of(root) == dict.fromkeys(
        QUERIES, kept_by_nuggetizer([fact(f"{n:02}") for n in range(N_PASSAGES)])
    )
