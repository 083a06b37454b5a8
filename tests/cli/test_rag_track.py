"""A RAG track is one folder and three commands: `init --rag`, `watch --once`, `leaderboard`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import signal
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from assigning import label_of as assigned
from cited import label_of as supported
from forked import start_forked
from forked import trecexam as trecexam_command
from rag_track import FILES, answer_as_a_judge, lay_out_two_queries, write_other_responses, writes_a_bank
from scripted_server import Exchange, Scripted, serving
from support import ROOT, err, out

import trecexam
from trecexam.cli.main import run

NAMES = ("nuggets", "support", "umbrela", "rubric")
COLUMNS = (
    "nuggets:all_score@20",
    "nuggets:vital_score@20",
    "support:SupportF1",
    "umbrela:nDCG@10",
    "rubric:Cover(rel=4)@20",
)
Board = Mapping[str, Mapping[str, str]]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of two queries, in which commands run."""
    monkeypatch.chdir(tmp_path)
    lay_out_two_queries(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def judge() -> Iterator[Scripted]:
    with serving(answer_as_a_judge) as server:
        yield server


@pytest.fixture(scope="module")
def finished(judge: Scripted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of two queries and another system's, and their track, which is graded."""
    folder = tmp_path_factory.mktemp("finished")
    lay_out_two_queries(folder)
    write_other_responses(folder)
    with contextlib.chdir(folder):
        made(judge, "--qrels", "qrels.txt")
        assert run(["watch", "mytrack", "--once"]) == 0
    assert len(judge.bodies) == len(judge.seen)
    return folder


@pytest.fixture
def graded(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the graded track, in whose folder commands run."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Path("mytrack")


def made(server: Scripted, *more: str, settings: str = "", name: str = "mytrack") -> Path:
    """A track by `init --rag`, which writes no report.

    Args:
        settings: lines for [grader].
    """
    model = ("--grader", "openai", "--model", "M", "--base-url", server.url)
    assert run(["init", name, "--rag", *FILES, *model, *more]) == 0
    set_up(Path(name), settings)
    return Path(name)


def set_up(root: Path, settings: str = "") -> None:
    config = root / "trecexam.toml"
    text = config.read_text().replace("[grader]\n", f"[grader]\n{settings}\n")
    config.write_text(text.replace("[report]\n", "[report]\nwrite = false\n"))


def board_of(printed: pytest.CaptureFixture[str], *words: str) -> Board:
    printed.readouterr()
    assert run(["leaderboard", *words]) == 0
    rows = csv.DictReader(io.StringIO(printed.readouterr().out), delimiter="\t")
    return {row["run"]: row for row in rows}


def measures_of(board: Board) -> tuple[str, ...]:
    """All columns of the leaderboard, in order."""
    _, *names = next(iter(board.values()))
    return tuple(name for name in names if not name.endswith(".stderr"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def nuggets_of(root: Path) -> dict[str, list[tuple[str, str]]]:
    """query_id -> (text, importance)."""
    nuggets: dict[str, list[tuple[str, str]]] = {}
    for line in (root / "bank.nuggets.jsonl").read_text().splitlines():
        row = json.loads(line)
        nuggets.setdefault(row["query_id"], []).append((row["nugget"], row["importance"]))
    return nuggets


def test_three_commands_give_the_five_columns_of_a_count_by_hand(
    judge: Scripted, graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = board_of(capsys, "mytrack")
    assert measures_of(board)[:5] == COLUMNS
    assert [*board][:2] == sorted(("other", "rag-demo"), key=lambda name: -float(board[name][COLUMNS[0]]))
    for name in ("dense", "random"):
        assert [bool(board[name][column]) for column in COLUMNS] == [False] * 3 + [True] * 2
    check_by_hand(graded, board)

    n_asked = len(judge.bodies)
    # The first update of a copy writes its manifests anew.
    assert run(["watch", "mytrack", "--once"]) == 0
    before = files_of(graded / "out")
    assert run(["watch", "mytrack", "--once"]) == 0
    assert files_of(graded / "out") == before
    assert len(judge.bodies) == n_asked
    statuses = json.loads(out(capsys, "status", "mytrack", "--json"))
    assert [statuses["graders"][name]["missing"] for name in NAMES] == [0] * 4


def check_by_hand(root: Path, board: Board) -> None:
    """A, V and support F1 from the server's answers on each nugget and sentence."""
    texts = {
        row["docid"]: row["text"]
        for row in map(json.loads, (root / "passages.jsonl").read_text().splitlines())
    }
    nuggets = nuggets_of(root)
    credit = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0, "full_support": 1.0}
    for name in ("rag-demo", "other"):
        responses = [*map(json.loads, (root / "runs" / f"{name}.jsonl").read_text().splitlines())]
        all_score, vital_score, f1 = [], [], []
        for response in responses:
            said = " ".join(sentence["text"] for sentence in response["answer"])
            gained = [
                (credit[assigned(text, said)], importance)
                for text, importance in nuggets[response["topic_id"]]
            ]
            all_score.append(sum(each for each, _ in gained) / len(gained))
            vital = [each for each, importance in gained if importance == "vital"]
            vital_score.append(sum(vital) / len(vital))
            weights = [
                credit[supported(each["text"], texts[response["references"][each["citations"][0]]])]
                for each in response["answer"]
            ]
            # Each sentence cites, so that precision, recall and F1 are the same.
            f1.append(sum(weights) / len(weights))
        for column, values in zip(COLUMNS, (all_score, vital_score, f1), strict=False):
            assert float(board[name][column]) == pytest.approx(sum(values) / 2, abs=1e-6), (name, column)


@pytest.mark.parametrize("at", ["Updated Nugget List:", "Nugget List: ["])
def test_a_killed_update_resumes_at_any_stage_and_sends_no_prompt_twice(desk: Path, at: str) -> None:
    def hanging(exchange: Exchange) -> None:
        exchange.hang() if at in exchange.prompt else answer_as_a_judge(exchange)

    with serving(hanging) as server:
        root = made(server, settings="concurrency = 1")
        command = ["watch", "mytrack", "--once"]
        child = start_forked(trecexam_command, command, folder=desk, output=desk / "printed")
        while not any(at in prompt for prompt in [*server.seen]):
            assert child.is_alive(), (desk / "printed").read_text()
            time.sleep(0.01)
        child.kill()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL
        assert not (root / "bank.nuggets.jsonl").exists() or "Updated" not in at
        hung = {prompt for prompt in server.seen if at in prompt}
        server.script = answer_as_a_judge
        assert run(command) == 0
        again = {prompt for prompt, times in server.seen.items() if times > 1}
        assert again == hung
        assert len(hung) == 1
        n_asked = len(server.bodies)
        assert run(command) == 0
        assert len(server.bodies) == n_asked


def test_a_given_bank_is_graded_and_no_bank_is_written(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "examples" / "track" / "bank.nuggets.jsonl", desk / "mine.jsonl")
    given = (desk / "mine.jsonl").read_bytes()
    with serving(answer_as_a_judge) as server:
        root = made(server, "--bank", "mine.jsonl")
        assert run(["watch", "mytrack", "--once"]) == 0
        assert not any(map(writes_a_bank, server.seen))
    assert [path.name for path in root.glob("bank.*")] == ["bank.mine.jsonl"]
    assert (root / "bank.mine.jsonl").read_bytes() == given
    config = tomllib.loads((root / "trecexam.toml").read_text())
    assert config["track"]["bank"] == ["bank.mine.jsonl"]
    assert config["graders"]["rubric"] == {}
    assert board_of(capsys, "mytrack")["rag-demo"][COLUMNS[4]]


def test_a_generated_bank_can_be_edited_by_the_user(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answer_as_a_judge) as server:
        root = made(server)
        said = err(capsys, "watch", "mytrack", "--once", status=0)
        n_nuggets = sum(map(len, nuggets_of(root).values()))
        assert f"nuggets: bank.nuggets.jsonl is written, {n_nuggets} items of 2 queries; edit it" in said
        assert "rubric: bank.questions.jsonl is written, 10 items of 2 queries" in said
        bank, n_asked = root / "bank.nuggets.jsonl", len(server.bodies)
        kept = [line for line in bank.read_text().splitlines(keepends=True) if '"q01"' in line]
        reworded = json.loads(kept[0]) | {"nugget": "A pump carries heat indoors"}
        edited = "".join([json.dumps(reworded) + "\n", *kept[1:]])
        bank.write_text(edited)
        assert run(["watch", "mytrack", "--once"]) == 0
        # The second query has no items left and none are written; only the edited one is graded again.
        assert bank.read_text() == edited
        (asked,) = [body["messages"][-1]["content"] for body in server.bodies[n_asked:]]
        assert "A pump carries heat indoors" in asked
        bank.write_text(edited.replace('"nugget":', '"retired": true, "nugget":'))
        retired = bank.read_text()
        assert run(["watch", "mytrack", "--once"]) == 1
        assert bank.read_text() == retired
        assert len(server.bodies) == n_asked + 1


def test_an_estimate_has_a_row_for_each_bank_and_sends_no_prompt(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer_as_a_judge) as server:
        made(server, settings="price_in = 1.0\nprice_out = 2.0")
        rows = json.loads(out(capsys, "watch", "mytrack", "--estimate", "--json"))
        assert server.bodies == []
        names = [row["grader"] for row in rows]
        assert names == [
            "bank of nuggets",
            "bank of rubric",
            "support",
            "umbrela",
            "sum without grading by nuggets and rubric",
        ]
        by_name = {row["grader"]: row for row in rows}
        assert by_name["bank of rubric"]["cells"] == by_name["bank of rubric"]["calls"] == 2
        for column in ("cells", "tokens_in", "calls", "cost"):
            assert rows[-1][column] == pytest.approx(sum(row[column] for row in rows[:-1]))
        assert rows[-1]["without"] == "nuggets, rubric"
        notes = err(capsys, "watch", "mytrack", "--estimate", status=0).splitlines()
        assert notes[0] == "estimate (nothing is sent, nothing is stored):"
        assert notes[1:3] == [
            f"the sum lacks grading by {name}: known once the bank is written"
            for name in ("nuggets", "rubric")
        ]
        assert run(["watch", "mytrack", "--once"]) == 0
        n_asked = len(server.bodies)
        status = json.loads(out(capsys, "status", "mytrack", "--json"))
        assert status["total"]["requests"] == n_asked
        assert status["written"]["requests"] > 0
        of_graders = [each["cost"] for each in status["graders"].values()]
        assert status["total"]["cost"] == pytest.approx(sum(of_graders) + status["written"]["cost"])
        asked = sum(map(writes_a_bank, server.seen))
        estimated = [by_name[f"bank of {name}"] for name in ("nuggets", "rubric")]
        assert sum(row["calls"] for row in estimated) >= asked
        rows = json.loads(out(capsys, "watch", "mytrack", "--estimate", "--json"))
        assert [(row["grader"], row["cells"]) for row in rows] == [(name, 0) for name in (*NAMES, "sum")]
        assert "without" not in rows[-1]


def test_without_runs_nuggets_are_generated_from_cited_passages(desk: Path) -> None:
    for path in (desk / "runs").glob("*.run"):
        path.unlink()
    with serving(answer_as_a_judge) as server:
        root = made(server)
        assert run(["watch", "mytrack", "--once"]) == 0
        texts = {
            row["docid"]: row["text"]
            for row in map(json.loads, (desk / "passages.jsonl").read_text().splitlines())
        }
        for line in (desk / "runs" / "rag-demo.jsonl").read_text().splitlines():
            row = json.loads(line)
            (prompt,) = [
                each for each in server.seen if "Updated Nugget List:" in each and row["topic"] in each
            ]
            cited = {row["references"][at] for sentence in row["answer"] for at in sentence["citations"]}
            assert {doc_id for doc_id, text in texts.items() if text in prompt} == cited
    assert set(nuggets_of(root)) == {"q01", "q02"}


def test_with_embedding_only_supported_measures_are_scored_and_the_rest_is_reported(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra `offline` is not installed")

    assert run(["init", "mytrack", "--rag", *FILES]) == 0
    lacking = {
        "nuggets": "mytrack: no test bank, and `embedding` cannot write one: put bank.nuggets.jsonl here",
        "umbrela": "mytrack/trecexam.toml: `embedding` cannot grade relevance: name a language model",
        "rubric": "mytrack: no test bank, and `embedding` cannot write one: put bank.questions.jsonl here",
    }
    set_up(Path("mytrack"))
    said = err(capsys, "watch", "mytrack", "--once", status=0)
    assert all(said.count(f"note: {name} cannot go on: {reason}") == 1 for name, reason in lacking.items())
    board = board_of(capsys, "mytrack")
    assert [*board] == ["rag-demo"]
    assert measures_of(board) == ("support:SupportF1", "support:SupportP", "support:SupportR")
    statuses = json.loads(out(capsys, "status", "mytrack", "--json"))["graders"]
    assert [name for name in NAMES if "unable" in statuses[name]] == [*lacking]
    said = err(capsys, "holes", "mytrack")
    assert f"no grader that labels documents can go on; nuggets: {lacking['nuggets']}" in said


def test_existing_relevance_labels_replace_a_model(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answer_as_a_judge) as server:
        lines = [line for path in desk.glob("runs/*.run") for line in path.read_text().splitlines()]
        rows = {tuple(line.split()[:3:2]) for line in lines}
        (desk / "umbrela.qrels").write_text("".join(f"{q} 0 {d} {len(d) % 4}\n" for q, d in sorted(rows)))
        root = made(server, "--recorded", "umbrela.qrels")
        assert run(["watch", "mytrack", "--once", "--grader", "umbrela"]) == 0
        assert not any("##final" in prompt for prompt in server.seen)
    umbrela = tomllib.loads((root / "trecexam.toml").read_text())["graders"]["umbrela"]
    assert umbrela == {"name": "recorded", "recorded": "umbrela.qrels", "pool": "citations"}
    assert float(board_of(capsys, "mytrack")["dense"]["umbrela:nDCG@10"]) > 0


def test_a_larger_bank_does_not_change_means_of_graders_without_a_bank(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {
        "query_id": "q99",
        "query_text": "another one",
        "questions": [{"question_id": "q99/1", "question_text": "Why?"}],
    }
    rows = [
        {"query_id": q, "questions": [{"question_id": f"{q}/1", "question_text": "Why?"}]}
        for q in ("q01", "q02")
    ]
    (desk / "wide.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (*rows, row)))
    words = ("--grader", "embedding", "--recorded", "umbrela.qrels")
    (desk / "umbrela.qrels").write_text("q01 0 hp01 1\n")
    means = []
    for name, bank in (("wide", ("--bank", "wide.jsonl")), ("none", ())):
        assert run(["init", name, "--rag", *FILES, *words, *bank]) == 0
        with trecexam.open_track(name) as track:
            means.append(track["support"].status()["queries"])
    assert means == [2, 2]


@pytest.mark.parametrize("again", [("watch", "--once", "--retry-errors"), ("bank", "generate", "--again")])
def test_bank_answers_that_could_not_be_read_are_asked_for_again_by_what_the_message_names(
    desk: Path, capsys: pytest.CaptureFixture[str], again: tuple[str, ...]
) -> None:
    is_broken = True

    def answer(exchange: Exchange) -> None:
        lists = ("Updated Nugget List:", "concise insightful questions")
        if is_broken and any(mark in exchange.prompt for mark in lists):
            exchange.say("Sorry, not now.")
        else:
            answer_as_a_judge(exchange)

    with serving(answer) as server:
        made(server)
        said = err(capsys, "watch", "mytrack", "--once", status=1)
        generate = "trecexam bank generate mytrack --grader {} --again` asks again"
        assert all(generate.format(name) in said for name in ("nuggets", "rubric"))
        assert "watch mytrack --retry-errors` goes on" in err(capsys, "status", "mytrack", status=0)
        n_asked, is_broken = len(server.bodies), False
        assert run(["watch", "mytrack", "--once"]) == 1
        assert len(server.bodies) == n_asked
        # An estimate forgets nothing, and counts what would be asked again.
        estimate = ("bank", "generate", "mytrack", "--again", "--json")
        assert [json.loads(out(capsys, *estimate))[0]["prompts"] for _ in range(2)] == [2, 2]
        for grader in ("nuggets", "rubric"):
            assert run([*again[:-1], "mytrack", again[-1], "--grader", grader]) == 0
        assert {name.name for name in Path("mytrack").glob("bank.*")} == {
            "bank.nuggets.jsonl",
            "bank.questions.jsonl",
        }
        # What could be read is kept: nothing is asked twice.
        n_asked = sum(writes_a_bank(prompt) for prompt in server.seen.elements())
        assert run(["bank", "generate", "mytrack", "--grader", "rubric", "--again"]) == 0
        assert sum(writes_a_bank(prompt) for prompt in server.seen.elements()) == n_asked
