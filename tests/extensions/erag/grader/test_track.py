"""The `erag` grader on a track: watched, by command, interrupted; and the number of model calls."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

pytest.importorskip("httpx2")

from erag_track import QUERIES, SAYS, answer, erag_track, gold_file, outputs_file
from scripted_server import Exchange, Scripted, serving
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.daemon import Daemon
from trecexam.errors import GraderError

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(answer) as made:
        yield made


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def setting(root: Path, old: str, new: str) -> None:
    path = root / "trecexam.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_watched_track_gets_the_usual_outputs_and_its_grades_are_evaluated(
    tmp_path: Path, server: Scripted
) -> None:
    root = erag_track(tmp_path / "track", server.url, metric="em")
    assert run(["watch", str(root), "--once"]) == 0
    assert (root / "out" / "rubric.qrels").read_text().splitlines() == [
        "q1 0 d1 5", "q1 0 d2 0", "q2 0 d3 5", "q2 0 d4 0", "q2 0 d6 0", "q3 0 d5 0",
    ]  # fmt: skip
    assert (root / "out" / "leaderboard.tsv").exists()
    assert run(["erag", str(root), "-o", str(tmp_path / "stored")]) == 0
    assert set(files(tmp_path / "stored")) == {"labels.tsv", "labels.qrels", "scores.tsv"}
    # The same as with the server's outputs given on the command line.
    words = ["erag", str(root), "--metric", "em", "--outputs", str(outputs_file(tmp_path / "o.jsonl"))]
    assert run([*words, "-o", str(tmp_path / "got")]) == 0
    assert files(tmp_path / "got") == files(tmp_path / "stored")


def test_the_model_sees_query_and_document_but_no_gold_output(tmp_path: Path, server: Scripted) -> None:
    root = erag_track(tmp_path / "track", server.url)
    assert run(["watch", str(root), "--once"]) == 0
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    assert len(prompts) == len(set(prompts)) == 6
    assert sum(QUERIES["q2"] in prompt for prompt in prompts) == 3
    assert not any("x y z" in prompt for prompt in prompts)


LEAVES_A_TRACE = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


def test_a_daemon_does_not_load_code_added_to_the_track_later(tmp_path: Path, server: Scripted) -> None:
    root = erag_track(tmp_path / "track", server.url, metric="em")
    lines: list[str] = []

    def meanwhile(why: str) -> None:
        if "mine.py" in why:
            daemon.stop()
        elif not (root / "mine.py").exists():
            (root / "mine.py").write_text(LEAVES_A_TRACE)
            setting(root, '"em"', '"mine:metric"')
            daemon.look()

    daemon = Daemon(root, poll=True, settle=0, log=lines.append, look_ended=meanwhile)
    daemon.run()
    assert any("--trust-code" in line for line in lines)
    assert not (root / "ran").exists()


def test_another_metric_or_corrected_gold_outputs_run_no_model(
    tmp_path: Path, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = erag_track(tmp_path / "track", server.url, metric="em")
    assert run(["watch", str(root), "--once"]) == 0
    asked = len(server.bodies)
    setting(root, '"em"', '"f1"')
    assert run(["watch", str(root), "--once"]) == 0
    assert "q3 0 d5 4" in (root / "out" / "rubric.qrels").read_text()
    put_rows(
        root / "bank.gold.jsonl",
        {"query_id": "q1", "outputs": ["London", "?"]},
        {"query_id": "q2", "outputs": ["x"]},
        {"query_id": "q3", "outputs": ["x y z"]},
    )
    assert run(["watch", str(root), "--once"]) == 0
    assert "q1 0 d2 5" in (root / "out" / "rubric.qrels").read_text()
    (root / "mine.py").write_text("def metric(output, gold):\n    return 0.5\n")
    setting(root, '"f1"', '"mine:metric"')
    assert run(["watch", str(root), "--once", "--trust-code"]) == 0
    assert "q1 0 d2 3" in (root / "out" / "rubric.qrels").read_text()
    (root / "mine.py").write_text("def metric(output, gold):\n    return 0.1 if output else 1 / 0\n")
    monkeypatch.setenv("TRECEXAM_TRUST_CODE", "1")
    assert run(["watch", str(root), "--once"]) == 0
    assert "q1 0 d2 1" in (root / "out" / "rubric.qrels").read_text()
    with trecexam.open_track(root) as opened:
        assert "ZeroDivisionError" in opened.erag.score().labelled.unlabelled[0].reason
        found = opened.erag.score(metric=lambda output, gold: output == "London")
    assert [d for labels in found.labelled.labels.values() for d in labels if labels[d]] == ["d2"]
    assert len(server.bodies) == asked


def test_the_command_uses_the_language_model_of_the_settings_and_stores_its_outputs(
    tmp_path: Path, server: Scripted, capsys: Capture
) -> None:
    root = erag_track(tmp_path / "track", server.url, name="openai")
    words = ["erag", str(root), "--gold", str(root / "gold.jsonl"), "-o", str(tmp_path / "got")]
    assert run([*words, "--estimate"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[0] == "6"
    assert not server.bodies
    assert run([*words, "--metric", "em"]) == 0
    assert len(server.bodies) == 6
    assert run([*words, "--metric", "rouge-l"]) == 0
    assert len(server.bodies) == 6
    assert not (root / "out").exists()


def test_refusals_errors_and_missing_texts_are_reported_and_count_as_0(
    tmp_path: Path, capsys: Capture
) -> None:
    def script(asked: Exchange) -> None:
        if "London" in asked.prompt:
            asked.say("no", finish="content_filter")
        elif "the bard" in asked.prompt:
            asked.fail(400, "too long")
        else:
            answer(asked)

    with serving(script) as server:
        root = erag_track(tmp_path / "track", server.url, metric="em")
        put_rows(
            root / "passages.jsonl",
            *({"docid": d, "text": f"It says: {s}"} for d, s in SAYS.items() if d != "d5"),
        )
        assert run(["erag", str(root), "-o", str(tmp_path / "got"), "-m", "Success@5"]) == 1
    rows = [line.split("\t") for line in (tmp_path / "got" / "unlabelled.tsv").read_text().splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        ["q1", "d2", "refused"], ["q2", "d4", "error"], ["q3", "d5", "missing"],
    ]  # fmt: skip
    assert rows[2][3] == "the document has no text"
    assert "3 documents without a label" in capsys.readouterr().err


def test_a_server_that_fails_early_keeps_its_answers_and_resumes_later(
    tmp_path: Path, capsys: Capture
) -> None:
    down = [True]

    def script(asked: Exchange) -> None:
        if down[0] and "paris" not in asked.prompt and not asked.is_probe:
            asked.fail(500)
        else:
            answer(asked)

    with serving(script) as server:
        root = erag_track(tmp_path / "track", server.url, retries=0)
        assert run(["erag", str(root), "-o", str(tmp_path / "got"), "-m", "Success@5"]) == 1
        err = capsys.readouterr().err
        assert "ended early" in err
        assert "5: the model did not answer yet" in err
        assert (tmp_path / "got" / "unlabelled.tsv").read_text().count("\tunanswered\t") == 5
        down[0] = False
        before = len(server.bodies)
        assert run(["erag", str(root), "-o", str(tmp_path / "got"), "-m", "Success@5"]) == 0
        assert len(server.bodies) - before == 5
    assert not (tmp_path / "got" / "unlabelled.tsv").exists()


def test_long_documents_are_cut_at_the_end_and_reported_with_a_count(
    tmp_path: Path, server: Scripted, capsys: Capture
) -> None:
    root = erag_track(tmp_path / "track", server.url, max_characters=60)
    texts = {
        d: f"It says: {said}" + (" and more" * 40 if d in ("d1", "d4") else "") for d, said in SAYS.items()
    }
    put_rows(root / "passages.jsonl", *({"docid": d, "text": text} for d, text in texts.items()))
    assert run(["watch", str(root), "--once"]) == 0
    assert "2 texts cut at the end to fit the model" in capsys.readouterr().err
    assert max(len(body["messages"][0]["content"]) for body in server.bodies) < 60 + 200
    _own(root)
    setting(root, 'name = "erag"', 'name = "erag"\nprompt = "own.toml"')
    with trecexam.open_track(root) as track:
        notes = track.erag.score().notes
    assert "2 documents cut at the end to fit the model" in " ".join(notes)


def _own(folder: Path) -> Path:
    path = folder / "own.toml"
    path.write_text('template = "Document: {document}\\n{query}?"\n')
    return path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('template = "{query}"', "no place for the document: write {document} into it"),
        ('template = "{document}"', "no place for the query"),
        ('template = "{query} {passage} {document}"', "unknown slot 'passage'; a prompt has query, document"),
        ('answers = 3\ntemplate = "{query} {document}"', "`answers`"),
    ],
)
def test_an_invalid_prompt_is_reported_before_any_request(
    tmp_path: Path, server: Scripted, capsys: Capture, text: str, reason: str
) -> None:
    root = erag_track(tmp_path / "track", server.url, prompt="own.toml")
    (root / "own.toml").write_text(text)
    assert run(["watch", str(root), "--once"]) == 2
    assert reason in capsys.readouterr().err
    assert not server.bodies


def test_init_makes_a_working_track(tmp_path: Path, server: Scripted, capsys: Capture) -> None:
    made = erag_track(tmp_path / "made", server.url)
    gold_file(tmp_path / "gold.jsonl")
    root = tmp_path / "track"
    words = [
        "init",
        str(root),
        "--queries",
        str(made / "queries.tsv"),
        "--bank",
        str(tmp_path / "gold.jsonl"),
    ]
    words += ["--passages", str(made / "passages.jsonl")]
    words += ["--runs", str(made / "runs"), "--grader", "erag"]
    assert run([*words, "--metric", "f1", "--model", "tiny", "--base-url", server.url]) == 0
    assert (root / "bank.gold.jsonl").exists()
    assert run(["watch", str(root), "--once"]) == 0


def test_without_a_model_the_error_says_what_to_do(tmp_path: Path) -> None:
    root = erag_track(tmp_path / "track")
    with trecexam.open_track(root) as track:
        with pytest.raises(GraderError, match="no language model to write with: set `name`"):
            track.erag.score(root / "gold.jsonl")
        (root / "trecexam.toml").write_text('[grader]\nname = "erag"\n')
    with (
        trecexam.open_track(root) as track,
        pytest.raises(GraderError, match="`erag` needs a language model"),
    ):
        track.erag.score(root / "gold.jsonl")


def test_a_stopped_run_writes_nothing(tmp_path: Path, server: Scripted) -> None:
    root = erag_track(tmp_path / "track", server.url)
    with trecexam.open_track(root) as opened:
        found = opened.erag.score(output=tmp_path / "got", stop=lambda: True)
        assert not found.complete
        assert not (tmp_path / "got").exists()
        assert opened.erag.score(output=tmp_path / "got").complete
    assert (tmp_path / "got" / "labels.tsv").exists()


def test_after_a_kill_received_answers_are_not_requested_again(tmp_path: Path) -> None:
    def slowly(asked: Exchange) -> None:
        if sum(not is_probe(body) for body in asked.server.bodies) > 2:
            time.sleep(0.4)
        answer(asked)

    def is_probe(body: dict[str, Any]) -> bool:
        return "Document:" not in body["messages"][0]["content"]

    with serving(slowly) as server:
        root = erag_track(tmp_path / "track", server.url, concurrency=1)
        words = [sys.executable, "-m", "trecexam", "erag", str(root), "-o", str(tmp_path / "got")]
        child = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        store = root / ".trecexam" / "grades.sqlite"
        end = time.monotonic() + 60
        while _stored(store) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert 2 <= _stored(store) < 6
        assert not (tmp_path / "got").exists()
        server.script = answer
        assert run(words[3:]) == 0
        # Only pending prompts may be sent once more.
        assert sum(count - 1 for prompt, count in server.seen.items() if "Document:" in prompt) <= 1
    words = ["erag", str(root), "--outputs", str(outputs_file(tmp_path / "o.jsonl"))]
    assert run([*words, "-o", str(tmp_path / "whole")]) == 0
    assert files(tmp_path / "got") == files(tmp_path / "whole")


def _stored(path: Path) -> int:
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return int(db.execute("SELECT count(*) FROM grade").fetchone()[0])
        finally:
            db.close()
    except sqlite3.Error:
        return 0
