"""Every command and every piece of Python in the README and in examples/*.md runs as written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import played_pages
import pytest
from forked import preload, run_code_forked, run_forked, start_forked, trecexam
from rag_track import answer_as_a_judge, lay_out_two_queries, writes_a_bank
from scripted_server import serving
from support import ROOT, ask
from tiny_models import save_t5

from trecexam import open_track
from trecexam.cli.main import run
from trecexam.graders.prompts import load_prompt

PAGES = [ROOT / "README.md", *sorted((ROOT / "examples").glob("*.md"))]
#: Their commands run in tests/test_reference_pages.py.
PLAYED = [ROOT / name for name in played_pages.PAGES]
#: External, or run by other means: the two scripts are run by CI and test_demo.
NOT_RUN = ("bash ", "pip ", "trec_eval ", "ndeval ", "eval ", "python -m pip ")

#: The time of a model depends on words and items: this many per passage and per query.
WORDS, ITEMS = 15, 5

pytest.importorskip("sentence_transformers", reason="the extra `offline` is not installed")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files named on the pages, made from the demo track."""
    preload("sentence_transformers", "transformers.models.t5.modeling_t5")
    folder = tmp_path_factory.mktemp("desk")
    track = ROOT / "examples" / "track"
    (folder / "runs").mkdir()
    for source, name in (
        ("queries.tsv", "queries.tsv"),
        ("bank.questions.jsonl", "bank.jsonl"),
        ("qrels.txt", "qrels.txt"),
        *((f"runs/{path.name}", f"runs/{path.name}") for path in track.glob("runs/*.*")),
    ):
        # Half of the queries, because a grader is slow.
        lines = (track / source).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if re.search(r"\bq0[1-4]\b", line)))
    rows = [json.loads(line) for line in (track / "passages.jsonl").read_text().splitlines()]
    short = [row | {"text": " ".join(row["text"].split()[:WORDS])} for row in rows]
    (folder / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in short))
    (folder / "passages.jsonl.gz").write_bytes(gzip.compress((folder / "passages.jsonl").read_bytes()))
    judged = (folder / "qrels.txt").read_text().splitlines(keepends=True)
    (folder / "official.qrels").write_text("".join(line for n, line in enumerate(judged) if n % 3))
    lines = [line for path in folder.glob("runs/*.run") for line in path.read_text().splitlines()]
    ranked = {tuple(line.split()[:3:2]) for line in lines}
    (folder / "teams.tsv").write_text("bm25\tlexical\nbm25-rm3\tlexical\n")
    (folder / "users.toml").write_text('ada = "assessor"\neve = "assessor"\n')
    (folder / "umbrela.qrels").write_text("".join(f"{q} 0 {d} {len(d) % 4}\n" for q, d in sorted(ranked)))
    bank = [json.loads(line) for line in (folder / "bank.jsonl").read_text().splitlines()]
    asked = [row | {"questions": row["questions"][:ITEMS]} for row in bank]
    (folder / "bank.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    shutil.copy(folder / "runs" / "dense.run", folder / "my.run")
    shutil.copy(folder / "runs" / "dense.run", folder / "runs" / "my.run")
    save_t5(folder / "flan-t5-large")
    write_nuggets(folder)
    write_exams(folder)
    for name in ("judged.jsonl", "blocks.jsonl"):
        shutil.copy(ROOT / "examples" / "ragval" / name, folder)
    write_erag(folder)
    return folder


def write_erag(folder: Path) -> None:
    """gold.jsonl, outputs.jsonl of every document of bm25.run, and end-to-end.tsv."""
    queries = [line.split("\t") for line in (folder / "queries.tsv").read_text().splitlines()]
    golds = [{"query_id": q, "outputs": [" ".join(text.split()[-3:]), text]} for q, text in queries]
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golds))
    ranked = [line.split() for line in (folder / "runs" / "bm25.run").read_text().splitlines()]
    outputs = [
        {"query_id": q, "doc_id": d, "output": golds[n % len(golds)]["outputs"][0]}
        for n, (q, _, d, *_) in enumerate(ranked)
    ]
    (folder / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outputs))
    (folder / "end-to-end.tsv").write_text(
        "".join(f"bm25\t{q}\t{n % 3}\n" for n, (q, _) in enumerate(queries))
    )


def write_exams(folder: Path) -> None:
    """matrix.tsv, eight examinees' responses to twelve questions, and exam.jsonl."""
    rows = [["examinee", *(f"q{n}" for n in range(12))]]
    rows += [[f"system{k}", *(str(int((n * 5 + k * 7) % 11 < k + 3)) for n in range(12))] for k in range(8)]
    (folder / "matrix.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    exam = {
        "question_id": "e1",
        "question": "Which part of a heat pump takes up heat from the air outside in winter?",
        "choices": ["The evaporator", "The thermostat", "The radiator", "The water tank"],
        "correct": 0,
        "doc_id": "d1",
        "documentation": "In winter the evaporator of a heat pump takes up heat from the air outside.",
    }
    (folder / "exam.jsonl").write_text(json.dumps(exam) + "\n")


def write_nuggets(folder: Path) -> None:
    """nuggets.jsonl, and what nuggetizer says of two systems: a file each, and both together."""
    nuggets = [
        {"text": f"fact {n}", "importance": importance} for n, importance in enumerate(("vital", "okay"))
    ]
    bank = [
        {"qid": query_id, "query": f"what about {query_id}", "nuggets": nuggets} for query_id in ("1", "2")
    ]
    (folder / "nuggets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bank))
    (folder / "assignments").mkdir()
    together = ""
    for name, said in (
        ("good", ("support", "partial_support")),
        ("fair", ("partial_support", "not_support")),
    ):
        assigned = [each | {"assignment": word} for each, word in zip(nuggets, said, strict=True)]
        rows = [
            {**row, "run_id": name, "answer_text": f"An answer by {name}.", "nuggets": assigned}
            for row in bank
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "assignments" / f"{name}.jsonl").write_text(text)
        together += text
    (folder / "assignments.jsonl").write_text(together)


def command(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    if words[0] == "trecexam":
        return [sys.executable, "-m", "trecexam", *words[1:]]
    if words[0] == "python":
        return [sys.executable, *words[1:]]
    if words[0] == "ir_measures":
        return [sys.executable, "-m", "ir_measures", *words[1:]]
    raise AssertionError(f"a command that this test does not know: {line}")


def watch_until_written(arguments: list[str], desk: Path) -> None:
    manifest, log = desk / "mytrack" / "out" / "manifest.json", desk / ".printed"
    manifest.unlink(missing_ok=True)  # a page may have run `watch --once` before
    child = start_forked(trecexam, arguments, folder=desk, output=log)
    end = time.monotonic() + 120
    while not manifest.exists() and child.is_alive() and time.monotonic() < end:
        time.sleep(0.1)
    child.terminate()
    child.join(60)
    assert child.exitcode == 0, log.read_text()
    assert manifest.exists(), log.read_text()


def serve_until_asked(arguments: list[str], desk: Path) -> None:
    log = desk / ".printed"
    log.write_text("")
    child = start_forked(trecexam, [*arguments, "--port", "0"], folder=desk, output=log)
    end = time.monotonic() + 60
    while " is at http://" not in log.read_text() and child.is_alive() and time.monotonic() < end:
        time.sleep(0.05)
    assert child.pid is not None
    # On a busy machine the first one may come before the server listens to signals.
    for _ in range(6):
        if child.is_alive():
            os.kill(child.pid, signal.SIGINT)
        child.join(10)
    assert " is at http://" in log.read_text()
    assert child.exitcode == 130, log.read_text()


def run_command(line: str, desk: Path) -> None:
    status = run_forked(command(line)[3:], desk, desk / ".printed")
    assert status == 0, f"{line}\n{(desk / '.printed').read_text()}"


def copy_grades(source: Path, target: Path) -> None:
    """Copies a store of grades, if there is one: cells graded for an earlier page are not graded again."""
    if source.exists():
        target.parent.mkdir(exist_ok=True)
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in PLAYED], ids=lambda page: page.name)
def test_every_command_on_the_page_runs(page: Path, desk: Path) -> None:
    shutil.rmtree(desk / "mytrack", ignore_errors=True)
    ran = 0
    if page.name in {"trec-eval.md", "formats.md"}:
        prepare(desk)
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            if not line.strip() or line.startswith("#") or line.startswith(NOT_RUN):
                continue
            words = command(line)
            if "graded.jsonl.gz" in words:
                prepare(desk)
                record(desk, judged="--pool-judged" in words)
                shutil.rmtree(desk / "mytrack")
            if words[3:5] == ["watch", "mytrack"] and not {"--once", "--estimate"} & {*words}:
                watch_until_written(words[3:], desk)
            elif words[3:4] == ["serve"]:
                serve_until_asked(words[3:], desk)
            elif words[1:3] == ["-m", "trecexam"]:
                run_command(line, desk)
            else:
                done = subprocess.run(
                    words, cwd=desk, capture_output=True, text=True, env=environment(), check=False
                )
                assert done.returncode == 0, f"{line}\n{done.stderr}"
            if words[3:5] == ["init", "mytrack"]:
                copy_grades(desk / "grades.sqlite", desk / "mytrack" / ".trecexam" / "grades.sqlite")
            ran += 1
    for code in blocks(page, "python"):
        status = run_code_forked(code, desk, desk / ".printed")
        assert status == 0, f"{code}\n{(desk / '.printed').read_text()}"
        ran += 1
    assert ran
    copy_grades(desk / "mytrack" / ".trecexam" / "grades.sqlite", desk / "grades.sqlite")


@pytest.mark.slow
def test_a_rag_track_is_scored_by_a_model_and_only_new_cells_are_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lay_out_two_queries(tmp_path)
    made, people = blocks(ROOT / "examples" / "rag-track.md", "shell")
    init, estimate, watch, leaderboard = made.splitlines()
    with serving(answer_as_a_judge) as server:

        def ask_all(block: str) -> int:
            before = len(server.bodies)
            for line in block.splitlines():
                assert run(shlex.split(line.replace("http://localhost:8000/v1", server.url))[1:]) == 0, line
            return len(server.bodies) - before

        assert ask_all(init) == 0
        assert ask_all(estimate) == 0
        asked_at_first = ask_all(watch)
        assert asked_at_first == len(server.seen)
        assert ask_all(watch) == 0
        capsys.readouterr()
        assert ask_all(leaderboard) == 0
        board = capsys.readouterr()
        rows = {row["run"]: row for row in csv.DictReader(io.StringIO(board.out), delimiter="\t")}
        scores = {name: value for name, value in rows["rag-demo"].items() if not name.endswith(".stderr")}
        assert list(scores)[:6] == [
            "run",
            "nuggets:all_score@20",
            "nuggets:vital_score@20",
            "support:SupportF1",
            "umbrela:nDCG@10",
            "rubric:Cover(rel=4)@20",
        ]
        assert all(0 < float(value) < 1 for value in list(scores.values())[1:6])
        table = (tmp_path / "mytrack" / "out" / "support" / "support.tsv").read_text().splitlines()
        cited = dict(zip(table[0].split("\t"), table[1].split("\t"), strict=True))
        with open_track(tmp_path / "mytrack") as track:
            sentence = f"{cited['run']}:{cited['sentence']}"
            track["support"].override(cited["query_id"], cited["doc_id"], 1, item=sentence, who="a", why="b")
        assert ask_all(people) == 0
        one = (tmp_path / "runs" / "rag-demo.jsonl").read_text().splitlines()[0]
        late = one.replace('"rag-demo"', '"late"').replace(
            "Only in rare deep cold", "Only where frost is deep"
        )
        assert "frost" in late
        (tmp_path / "mytrack" / "runs" / "late.jsonl").write_text(late + "\n")
        # A new response: its nuggets, its one new sentence, its passages; its citations have labels.
        again = ask_all(watch)
        assert 0 < again < asked_at_first / 4
        assert sum("Statement: " in body["messages"][-1]["content"] for body in server.bodies[-again:]) == 1
        assert not any("##final" in body["messages"][-1]["content"] for body in server.bodies[-again:])
        assert not any(writes_a_bank(body["messages"][-1]["content"]) for body in server.bodies[-again:])


def test_the_prompt_files_on_the_page_are_valid(tmp_path: Path) -> None:
    text, listing = blocks(ROOT / "examples" / "prompts.md", "toml")
    (tmp_path / "mine.toml").write_text(text)
    prompt = load_prompt(tmp_path / "mine.toml")
    assert (prompt.asks, prompt.max_rating, prompt.needs_query_text) == ("nugget", 2, True)
    item = ask("p", "it is so", kind="nugget").item
    assert "state this fact: it is so?" in prompt.text("q", item, "p")
    (tmp_path / "assign.toml").write_text(listing)
    prompt = load_prompt(tmp_path / "assign.toml")
    assert (prompt.group, prompt.max_rating, prompt.needs_query_text) == (10, 5, True)
    assert "state these facts: ['it is so', 'it is so']?" in prompt.list_text("q", [item, item], "p")


def prepare(desk: Path) -> None:
    """The track that pages about its outputs assume."""
    for line in (
        "trecexam init mytrack --passages passages.jsonl --bank bank.jsonl --qrels qrels.txt --runs runs/",
        "trecexam watch mytrack --once",
    ):
        run_command(line, desk)
        if " init " in line:
            copy_grades(desk / "grades.sqlite", desk / "mytrack" / ".trecexam" / "grades.sqlite")


def record(desk: Path, *, judged: bool) -> None:
    """graded.jsonl.gz, made from the grades of the track so far, and judged passages."""
    config = desk / "mytrack" / "trecexam.toml"
    lines = ["trecexam export grades mytrack -o grades.jsonl"]
    if judged:
        config.write_text(config.read_text().replace("# pool_judged = false", "pool_judged = true"))
        lines.insert(0, "trecexam watch mytrack --once")
    for line in lines:
        run_command(line, desk)
    (desk / "graded.jsonl.gz").write_bytes(gzip.compress((desk / "grades.jsonl").read_bytes()))


def test_links_between_pages_work() -> None:
    notes = (ROOT / "examples" / "design").glob("*.md")
    reference = (ROOT / "examples" / "reference").glob("*.md")
    for page in [*PAGES, *notes, *reference, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
