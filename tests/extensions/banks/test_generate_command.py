"""`trecexam bank generate` as a user runs it, with working and failing servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from support import ROOT

pytest.importorskip("httpx2")
pytest.importorskip("json_repair")

from forked import start_forked
from forked import trecexam as trecexam_command
from scripted_server import KEY, Exchange, Scripted

import trecexam
from converters.bank import read_bank
from trecexam.cli.main import run
from trecexam.errors import LockedError
from trecexam.graders.server import exchange

Asking = Callable[..., tuple[Scripted, Path]]
Capture = pytest.CaptureFixture[str]
QUERIES = {"q1": "cost of nuclear power", "q2": "who was Ada Lovelace", "q3": "how do bees fly"}


@pytest.fixture
def asking(server_track: Asking) -> Asking:
    """Starts a server with a script, and makes a track without a bank; settings go into [generator]."""
    return partial(server_track, QUERIES, [f"Passage {n}." for n in range(4)], 4, key_env="TEST_KEY")


def query_of(exchange: Exchange) -> str:
    return next((key for key, text in QUERIES.items() if f"'{text}'" in exchange.prompt), "")


def questions(query_id: str, number: int = 10) -> list[str]:
    return [
        f"What of {query_id} is {word}?"
        for word in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"][:number]
    ]


def answer_with_questions(exchange: Exchange) -> None:
    """Ten questions, as JSON."""
    exchange.say(json.dumps({"questions": questions(query_of(exchange))}))


def bank_of(root: Path, kind: str = "question") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in read_bank(root / f"bank.{kind}s.jsonl"):
        found.setdefault(item.query_id, []).append(item.text)
    return found


def test_every_query_gets_the_generated_questions(asking: Asking, capsys: Capture) -> None:
    server, root = asking(answer_with_questions, seed=7, price_in=1.0, price_out=10.0)
    assert run(["bank", "generate", str(root)]) == 0
    assert bank_of(root) == {key: questions(key) for key in QUERIES}
    path = root / "bank.questions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 30
    assert rows[0]["query_text"] == QUERIES["q1"]
    origin = rows[0]["origin"]
    assert origin.pop("time").endswith("Z")
    assert origin == {"prompt": "questions", "model": "tiny", "seed": 7, "text": questions("q1")[0]}
    err = capsys.readouterr().err
    assert "3 requests" in err
    assert f"30 items of 3 queries: {path}" in err
    assert all(body["seed"] == 7 and body["max_tokens"] == 2048 for body in server.bodies)
    assert not any("logprobs" in body or "response_format" in body for body in server.bodies)


def test_a_bank_can_be_written_in_v3_form(asking: Asking, tmp_path: Path) -> None:
    _, root = asking(answer_with_questions)
    assert run(["bank", "generate", str(root), "--v3", str(tmp_path / "v3.jsonl")]) == 0
    rows = {row["query_id"]: row for row in map(json.loads, (tmp_path / "v3.jsonl").read_text().splitlines())}
    assert [list(row["nugget_bank"]) for row in rows.values()] == [questions(key) for key in rows]
    assert {key: row["title_query"] for key, row in rows.items()} == QUERIES
    (creator,) = rows["q1"]["nugget_bank"][questions("q1")[0]]["creator"]
    assert (creator["is_human"], creator["llm_model"]) == (False, "tiny")
    again = [item._replace(details="") for item in read_bank(tmp_path / "v3.jsonl")]
    assert again == list(read_bank(root / "bank.questions.jsonl"))


def test_a_second_run_sends_no_prompt_and_changes_no_byte(asking: Asking) -> None:
    server, root = asking(answer_with_questions)
    run(["bank", "generate", str(root)])
    before = (root / "bank.questions.jsonl").read_bytes()
    assert run(["bank", "generate", str(root)]) == 0
    # Answers are reused even if the bank is lost.
    (root / "bank.questions.jsonl").unlink()
    assert run(["bank", "generate", str(root)]) == 0
    assert len(server.bodies) == 3
    assert (root / "bank.questions.jsonl").read_bytes() == before


def test_items_edited_retired_or_added_by_a_person_are_never_overwritten(asking: Asking) -> None:
    server, root = asking(answer_with_questions)
    run(["bank", "generate", str(root), "--query", "q1"])
    path = root / "bank.questions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    edited = json.dumps({**json.loads(lines[0]), "question": "My own words?"}).encode() + b"\n"
    retired = json.dumps({**json.loads(lines[1]), "retired": True}).encode() + b"\r\n"
    vital = json.dumps({**json.loads(lines[3]), "importance": "vital"}).encode() + b"\n"
    noted = json.dumps({**json.loads(lines[4]), "note": "ask Ada"}).encode() + b"\n"
    by_hand = b'{"question": "By hand?",   "query_id": "q1"}\n'
    path.write_bytes(b"".join([edited, retired, lines[2], vital, noted, *lines[5:], by_hand]))
    before = path.read_bytes()
    assert run(["bank", "generate", str(root)]) == 0
    assert path.read_bytes().startswith(before)
    server.script = lambda exchange: exchange.say(json.dumps([*questions(query_of(exchange))[:3], "New?"]))
    (root / "trecexam.toml").write_text((root / "trecexam.toml").read_text() + "seed = 8\n")
    assert run(["bank", "generate", str(root), "--again", "--query", "q1"]) == 0
    content = path.read_bytes()
    for line in (edited, retired, vital, noted, by_hand):
        assert content.count(line) == 1
    # Two of the four generated items are now a person's.
    _, second, third, fourth, fifth, *_ = questions("q1")
    assert bank_of(root)["q1"] == ["My own words?", second, fourth, fifth, "By hand?", third, "New?"]
    assert bank_of(root)["q2"] == questions("q2")


def test_missing_items_are_generated_into_a_separate_file_too(asking: Asking) -> None:
    server, root = asking(answer_with_questions)
    (root / "bank.mine.jsonl").write_text('{"query_id": "q2", "question": "By hand?"}\n')
    assert run(["bank", "generate", str(root), "-o", str(root / "bank.more.jsonl")]) == 0
    assert len(server.bodies) == 2
    assert {item.query_id for item in read_bank(root / "bank.more.jsonl")} == {"q1", "q3"}


def test_each_subtopic_gets_its_own_prompt(asking: Asking, capsys: Capture) -> None:
    def script(exchange: Exchange) -> None:
        subtopic = exchange.prompt.split("specific focus on the subtopic '")[1].split("'")[0]
        exchange.say(json.dumps({"questions": [f"How about {subtopic}?"]}))

    server, root = asking(script)
    assert run(["bank", "generate", str(root), "--prompt", "subtopics"]) == 2
    assert "subtopics.tsv" in capsys.readouterr().err
    (root / "subtopics.tsv").write_text("q1\tf1\tsafety\nq1\tf2\twaste\nq3\twings\n")
    assert run(["bank", "generate", str(root), "--prompt", "subtopics"]) == 0
    assert run(["bank", "generate", str(root), "--prompt", "subtopics"]) == 0
    assert len(server.bodies) == 3
    items = list(read_bank(root / "bank.questions.jsonl"))
    assert [(item.query_id, item.facet_id, item.text) for item in items] == [
        ("q1", "f1", "How about safety?"),
        ("q1", "f2", "How about waste?"),
        ("q3", "wings", "How about wings?"),
    ]


def test_an_answer_without_items_does_not_stop_the_others(asking: Asking, capsys: Capture) -> None:
    def script(exchange: Exchange) -> None:
        if query_of(exchange) == "q1":
            exchange.say("I would rather not, \x1b[31mreally.")
        elif query_of(exchange) == "q2":
            odd = [QUERIES["q2"].title() + "?", *questions("q2", 10), "what  of q2 is a", "?!", " ", "More?"]
            exchange.say(json.dumps({"questions": odd}))
        else:
            exchange.say('{"questions": ["Whole?", "And cu', finish="length")

    server, root = asking(script)
    assert run(["bank", "generate", str(root)]) == 1
    err = capsys.readouterr().err
    assert run(["bank", "generate", str(root)]) == 1
    assert len(server.bodies) == 3
    assert bank_of(root) == {"q2": questions("q2", 10), "q3": ["Whole?"]}
    assert "query q1: no items in an answer that begins 'I would rather not," in err
    assert "\x1b" not in err
    assert "query q3: its answer ends early, after 1 items: raise `max_new_tokens`" in err
    assert "left out: 1 copies of the query, 1 duplicates, 2 empty, 1 more than asked for" in err


@pytest.mark.parametrize(
    "bad", [lambda each: each.fail(500), Exchange.hang, lambda each: each.fail(401, f"no such key: {KEY}")]
)
def test_a_failing_server_is_a_one_line_error_and_its_answers_are_kept(
    asking: Asking, bad: Callable[[Exchange], None], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(exchange, "PATIENCE", 0.3)

    def script(each: Exchange) -> None:
        answer_with_questions(each) if query_of(each) == "q1" else bad(each)

    server, root = asking(script, timeout=0.3, retries=1, concurrency=1)
    assert run(["bank", "generate", str(root)]) in (1, 2)
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert KEY not in err
    assert server.url in err
    server.script = answer_with_questions
    assert run(["bank", "generate", str(root)]) == 0
    # Each prompt is sent once.
    assert [prompt for prompt in server.seen if "nuclear" in prompt and server.seen[prompt] != 1] == []
    assert bank_of(root) == {key: questions(key) for key in QUERIES}


def test_a_budget_stops_generation_and_a_later_run_resumes(asking: Asking, capsys: Capture) -> None:
    server, root = asking(answer_with_questions, budget_tokens=2350, concurrency=1)
    assert run(["bank", "generate", str(root)]) == 1
    assert "ended early: `budget_tokens` = 2,350 in [generator] is reached" in capsys.readouterr().err
    some = len(bank_of(root))
    assert 0 < some < 3
    # The earlier usage counts when it is started again.
    assert run(["bank", "generate", str(root)]) == 1
    assert len(server.bodies) == some
    toml = root / "trecexam.toml"
    toml.write_text(toml.read_text().replace("2350", "1000000"))
    assert run(["bank", "generate", str(root)]) == 0
    assert len(server.bodies) == 3
    assert set(bank_of(root)) == set(QUERIES)


def test_an_estimate_sends_no_prompt(asking: Asking, capsys: Capture) -> None:
    server, root = asking(answer_with_questions, price_in=1.0, price_out=1.0)
    assert run(["bank", "generate", str(root), "--estimate"]) == 0
    assert server.bodies == []
    header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    found = dict(zip(header, row, strict=True))
    assert (found["prompts"], found["tokens_out_at_most"]) == ("3", "6144")
    assert float(found["cost"]) > 0


def test_a_file_edited_during_generation_is_left_unchanged(asking: Asking, capsys: Capture) -> None:
    def script(exchange: Exchange) -> None:
        (root / "bank.questions.jsonl").write_text('{"query_id": "q1", "question": "By hand?"}\n')
        answer_with_questions(exchange)

    server, root = asking(script, concurrency=1)
    assert run(["bank", "generate", str(root)]) == 2
    assert "was edited while the model was asked" in capsys.readouterr().err
    assert bank_of(root) == {"q1": ["By hand?"]}
    assert run(["bank", "generate", str(root)]) == 0
    assert len(server.bodies) == 3
    assert bank_of(root) == {"q1": ["By hand?"], "q2": questions("q2"), "q3": questions("q3")}


def test_a_bank_that_is_a_symlink_stays_a_symlink(asking: Asking, tmp_path: Path) -> None:
    _, root = asking(answer_with_questions)
    kept = tmp_path / "kept.jsonl"
    kept.touch()
    (root / "bank.questions.jsonl").symlink_to(kept)
    assert run(["bank", "generate", str(root)]) == 0
    assert (root / "bank.questions.jsonl").is_symlink()
    assert bank_of(root) == {key: questions(key) for key in QUERIES}


def test_a_prompt_is_sent_only_after_earlier_answers_are_on_disk(
    asking: Asking,
) -> None:
    """After a kill at any moment, at most `concurrency` prompts are sent again."""
    concurrency, n_queries = 4, 60
    #: It is killed after this many prompts: soon after the first answer, and later.
    moments = [4, 5, 22, 41]
    prompts: set[str] = set()
    unsaved: list[int] = []
    processes: list[BaseProcess] = []
    lock = threading.Lock()

    def script(exchange: Exchange) -> None:
        with lock:
            prompts.add(exchange.prompt)
            unsaved.append(len(prompts) - n_answers(kept))
            while moments and len(prompts) > moments[0]:
                del moments[0]
                processes[-1].kill()
        time.sleep((0.0, 0.02, 0.005, 0.05)[exchange.number % 4])
        answer_with_questions(exchange)

    server, root = asking(script, concurrency=concurrency)
    (root / "queries.tsv").write_text("".join(f"n{n}\tword{n} of words\n" for n in range(n_queries)))
    (root / "runs" / "a.run").write_text("".join(f"n{n} Q0 d0 1 1.0 a\n" for n in range(n_queries)))
    kept = root / ".trecexam" / "generated.jsonl"
    printed = root / "printed"
    command = ["bank", "generate", str(root)]
    while not processes or processes[-1].exitcode == -signal.SIGKILL:
        with lock:
            processes.append(start_forked(trecexam_command, command, folder=root, output=printed))
        processes[-1].join()
    assert processes[-1].exitcode == 0, printed.read_text()
    assert len(prompts) == n_queries
    n_kills = len(processes) - 1
    assert n_kills >= 3
    assert max(unsaved) <= concurrency
    assert server.most <= concurrency
    assert len(server.bodies) - n_queries <= n_kills * concurrency
    assert set(bank_of(root)) == {f"n{n}" for n in range(n_queries)}


def n_answers(kept: Path) -> int:
    """The number of prompts with an answer in the file; a partial line does not count."""
    if not kept.exists():
        return 0
    rows = [json.loads(line) for line in kept.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    return len({row["prompt_sha256"] for row in rows if "answer" in row})


def test_two_generations_at_once_are_rejected_but_a_daemon_may_run(asking: Asking) -> None:
    from trecexam.files.track_lock import track_lock

    _, root = asking(answer_with_questions)
    with (
        track_lock(root / ".trecexam" / "generate.lock"),
        trecexam.open_track(root) as opened,
        pytest.raises(LockedError, match="calling this track's model"),
    ):
        opened.bank.generate()
    with track_lock(root / ".trecexam" / "lock"), trecexam.open_track(root) as opened:
        assert opened.bank.generate().items == 30


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--query", "q9"], "the track has no query 'q9'"),
        (["--prompt", "question"], "did you mean 'questions'?"),
        (["--prompt", "nuggets", "--passages", "3"], "prompt nuggets does not read passages"),
        (["--prompt", "mine.toml"], "no such prompt file"),
        (["-o", "elsewhere/items.jsonl"], "would not be a file of this track's bank"),
    ],
)
def test_invalid_requests_are_a_one_line_error(
    asking: Asking, capsys: Capture, arguments: list[str], reason: str
) -> None:
    _, root = asking(answer_with_questions)
    assert run(["bank", "generate", str(root), *arguments]) == 2
    err = capsys.readouterr().err.strip()
    assert reason in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["bank.questions.jsonl", "bank.mine.jsonl"])
def test_an_unreadable_bank_is_a_one_line_error_and_no_prompt_is_sent(
    asking: Asking, name: str, capsys: Capture
) -> None:
    server, root = asking(answer_with_questions)
    (root / name).mkdir()
    assert run(["bank", "generate", str(root)]) == 2
    assert not server.bodies
    assert capsys.readouterr().err.startswith(f"trecexam: {root / name}: is a folder")


def test_the_model_of_the_grader_is_the_default_generator(asking: Asking) -> None:
    server, root = asking(answer_with_questions)
    toml = root / "trecexam.toml"
    toml.write_text(toml.read_text().replace("[generator]", "[grader]") + "[generator]\nseed = 3\n")
    assert run(["bank", "generate", str(root)]) == 0
    assert {body["seed"] for body in server.bodies} == {3}


def test_the_key_is_in_no_file_even_if_the_model_repeats_it(asking: Asking, capsys: Capture) -> None:
    server, root = asking(
        lambda exchange: exchange.say(json.dumps({"questions": [f"Is {KEY} yours?", "Why?"]}))
    )
    assert run(["bank", "generate", str(root)]) == 0
    assert server.keys == [f"Bearer {KEY}"] * 3
    assert KEY not in capsys.readouterr().err
    for path in root.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


def test_a_kill_loses_no_answer(asking: Asking) -> None:
    def script(exchange: Exchange) -> None:
        if query_of(exchange) == "q3":
            exchange.hang()
        else:
            answer_with_questions(exchange)

    server, root = asking(script, concurrency=1)
    kept = root / ".trecexam" / "generated.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "trecexam", "bank", "generate", str(root)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    until = time.monotonic() + 60
    while not (kept.exists() and kept.read_bytes().count(b"nuclear")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with kept.open("ab") as file:
        file.write(b'{"writer": "half a li')
    server.script = answer_with_questions
    assert run(["bank", "generate", str(root)]) == 0
    assert [each for prompt, each in server.seen.items() if "nuclear" in prompt] == [1]
    assert run(["bank", "generate", str(root), "--query", "q1", "--again"]) == 0
    # Answers after a partial line are read as well.
    asked_for = len(server.bodies)
    (root / "bank.questions.jsonl").unlink()
    assert run(["bank", "generate", str(root)]) == 0
    assert len(server.bodies) == asked_for
    assert bank_of(root) == {key: questions(key) for key in QUERIES}
