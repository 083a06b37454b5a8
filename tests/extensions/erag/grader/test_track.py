"""The `erag` grader on a track: watched, by command, interrupted; and the number of model calls."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support import ROOT, contents, switch_report_on, tsv_rows, until

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
    # The model sees query and document, but no gold output.
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    assert len(prompts) == len(set(prompts)) == 6
    assert sum(QUERIES["q2"] in prompt for prompt in prompts) == 3
    assert not any("x y z" in prompt for prompt in prompts)
    assert run(["erag", str(root), "-o", str(tmp_path / "stored")]) == 0
    assert set(contents(tmp_path / "stored")) == {"labels.tsv", "labels.qrels", "scores.tsv"}
    # The same as with the server's outputs given on the command line.
    words = ["erag", str(root), "--metric", "em", "--outputs", str(outputs_file(tmp_path / "o.jsonl"))]
    assert run([*words, "-o", str(tmp_path / "got")]) == 0
    assert contents(tmp_path / "got") == contents(tmp_path / "stored")


def test_a_daemon_does_not_load_code_added_to_the_track_later(tmp_path: Path, server: Scripted) -> None:
    root = erag_track(tmp_path / "track", server.url, metric="em")
    lines: list[str] = []

    def meanwhile(why: str) -> None:
        if "mine.py" in why:
            daemon.stop()
        elif not (root / "mine.py").exists():
            (root / "mine.py").write_text("open(__file__ + '.ran', 'w')\n")
            setting(root, '"em"', '"mine:metric"')
            daemon.look()

    daemon = Daemon(root, poll=True, settle=0, log=lines.append, look_ended=meanwhile)
    daemon.run()
    assert any("--trust-code" in line for line in lines)
    assert not (root / "mine.py.ran").exists()


def test_another_metric_or_corrected_gold_outputs_run_no_model(
    tmp_path: Path, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = erag_track(tmp_path / "track", server.url, metric="em")
    monkeypatch.setenv("TRECEXAM_TRUST_CODE", "1")

    def watched() -> str:
        assert run(["watch", str(root), "--once"]) == 0
        return (root / "out" / "rubric.qrels").read_text()

    watched()
    n_requests = len(server.bodies)
    setting(root, '"em"', '"f1"')
    assert "q3 0 d5 4" in watched()
    golds = {"q1": ["London", "?"], "q2": ["x"], "q3": ["x y z"]}
    put_rows(root / "bank.gold.jsonl", *({"query_id": q, "outputs": golds[q]} for q in golds))
    assert "q1 0 d2 5" in watched()
    setting(root, '"f1"', '"mine:metric"')
    (root / "mine.py").write_text("def metric(output, gold):\n    return 0.5\n")
    assert "q1 0 d2 3" in watched()
    (root / "mine.py").write_text("def metric(output, gold):\n    return 0.1 if output else 1 / 0\n")
    assert "q1 0 d2 1" in watched()
    with trecexam.open_track(root) as opened:
        assert "ZeroDivisionError" in opened.erag.score().unlabelled["q2", "d6"].reason
        found = opened.erag.score(metric=lambda output, gold: output == "London")
    assert [doc_id for (_, doc_id), label in found.labels.items() if label] == ["d2"]
    assert len(server.bodies) == n_requests


def test_the_command_uses_the_language_model_of_the_settings_and_stores_its_outputs(
    tmp_path: Path, server: Scripted, capsys: Capture
) -> None:
    root, got = erag_track(tmp_path / "track", server.url, name="openai"), tmp_path / "got"
    words = ["erag", str(root), "--gold", str(root / "gold.jsonl"), "-o", str(got)]
    assert run([*words, "--estimate"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[0] == "6"
    assert not server.bodies
    with trecexam.open_track(root) as opened:
        stopped = opened.erag.score(root / "gold.jsonl", output=got, stop=lambda: True)
    assert any("stopped before writing any files" in note for note in stopped.notes)
    assert not got.exists()
    for metric in ("em", "rouge-l"):
        assert run([*words, "--metric", metric]) == 0
        assert len(server.bodies) == 6
    assert (got / "labels.tsv").exists()
    assert not (root / "out").exists()


def test_refusals_errors_and_missing_texts_are_reported_and_count_as_0(
    tmp_path: Path, capsys: Capture
) -> None:
    def script(exchange: Exchange) -> None:
        if "London" in exchange.prompt:
            exchange.say("no", finish="content_filter")
        elif "the bard" in exchange.prompt:
            exchange.fail(400, "too long")
        else:
            answer(exchange)

    with serving(script) as server:
        root = erag_track(tmp_path / "track", server.url, metric="em")
        texts = ({"docid": d, "text": f"It says: {said}"} for d, said in SAYS.items() if d != "d5")
        put_rows(root / "passages.jsonl", *texts)
        assert run(["erag", str(root), "-o", str(tmp_path / "got"), "-m", "Success@5"]) == 1
    rows = {row["doc_id"]: row for row in tsv_rows(tmp_path / "got" / "unlabelled.tsv")}
    assert [(d, rows[d]["status"]) for d in rows] == [("d2", "refused"), ("d4", "error"), ("d5", "missing")]
    assert rows["d5"]["reason"] == "the document has no text"
    assert "3 documents without a label" in capsys.readouterr().err


def test_a_server_that_fails_early_keeps_its_answers_and_resumes_later(
    tmp_path: Path, capsys: Capture
) -> None:
    def script(exchange: Exchange) -> None:
        if "paris" not in exchange.prompt and not exchange.is_probe:
            exchange.fail(500)
        else:
            answer(exchange)

    with serving(script) as server:
        root = erag_track(tmp_path / "track", server.url, retries=0)
        words = ["erag", str(root), "-o", str(tmp_path / "got"), "-m", "Success@5"]
        assert run(words) == 1
        err = capsys.readouterr().err
        assert "ended early" in err
        assert "5: the model did not answer yet" in err
        assert (tmp_path / "got" / "unlabelled.tsv").read_text().count("\tunanswered\t") == 5
        server.script = answer
        before = len(server.bodies)
        assert run(words) == 0
        assert len(server.bodies) - before == 5
    assert not (tmp_path / "got" / "unlabelled.tsv").exists()


def test_long_documents_are_cut_at_the_end_and_reported_with_a_count(
    tmp_path: Path, server: Scripted
) -> None:
    root = erag_track(tmp_path / "track", server.url, max_characters=60)
    texts = {d: SAYS[d] + " and more" * 40 * (d in ("d1", "d4")) for d in SAYS}
    put_rows(root / "passages.jsonl", *({"docid": d, "text": f"It says: {texts[d]}"} for d in texts))
    with trecexam.open_track(root) as track:
        assert "2 documents cut at the end to fit the model" in " ".join(track.erag.score().notes)
    assert max(len(body["messages"][0]["content"]) for body in server.bodies) < 60 + 200


def test_an_invalid_prompt_is_reported_before_any_request(
    tmp_path: Path, server: Scripted, capsys: Capture
) -> None:
    root = erag_track(tmp_path / "track", server.url, prompt="own.toml")
    (root / "own.toml").write_text('template = "{query}"')
    assert run(["watch", str(root), "--once"]) == 2
    assert "no place for the document: write {document} into it" in capsys.readouterr().err
    assert not server.bodies


def test_init_makes_a_working_track(tmp_path: Path, server: Scripted) -> None:
    made, root = erag_track(tmp_path / "made", server.url), tmp_path / "track"
    options = {"grader": "erag", "metric": "f1", "model": "tiny", "base-url": server.url}
    options["bank"] = str(gold_file(tmp_path / "gold.jsonl"))
    options |= {key: str(next(made.glob(f"{key}*"))) for key in ("queries", "passages", "runs")}
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    assert run(["init", str(root), *words]) == 0
    assert (root / "bank.gold.jsonl").exists()
    assert run(["watch", str(root), "--once"]) == 0


def test_without_a_model_the_error_says_what_to_do(tmp_path: Path) -> None:
    root = erag_track(tmp_path / "track")
    why = {
        "": "no language model to write with: set `name`",
        'name = "erag"': "`erag` needs a language model",
    }
    for setting, reason in why.items():
        (root / "trecexam.toml").write_text(f"[grader]\n{setting}\n")
        with trecexam.open_track(root) as track, pytest.raises(GraderError, match=reason):
            track.erag.score(root / "gold.jsonl")


def test_after_a_kill_received_answers_are_not_requested_again(tmp_path: Path) -> None:
    def slowly(exchange: Exchange) -> None:
        if sum("Document:" in body["messages"][0]["content"] for body in exchange.server.bodies) > 2:
            time.sleep(0.4)
        answer(exchange)

    with serving(slowly) as server:
        root = erag_track(tmp_path / "track", server.url, concurrency=1)
        words = [sys.executable, "-m", "trecexam", "erag", str(root), "-o", str(tmp_path / "got")]
        child = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        store = root / ".trecexam" / "grades.sqlite"
        until(lambda: _stored(store) >= 2)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert _stored(store) < 6
        assert not (tmp_path / "got").exists()
        server.script = answer
        assert run(words[3:]) == 0
        # Only pending prompts may be sent once more.
        assert sum(count - 1 for prompt, count in server.seen.items() if "Document:" in prompt) <= 1
    words = ["erag", str(root), "--outputs", str(outputs_file(tmp_path / "o.jsonl"))]
    assert run([*words, "-o", str(tmp_path / "whole")]) == 0
    assert contents(tmp_path / "got") == contents(tmp_path / "whole")


def _stored(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM grade").fetchone()[0])
    except sqlite3.Error:
        return 0


# Items of the kind `gold` in other features.


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track that has been watched once; its server is gone."""
    with serving(answer) as server:
        root = erag_track(tmp_path_factory.mktemp("erag") / "track", server.url, metric="f1")
        switch_report_on(root)
        assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.mark.parametrize(
    "words",
    [
        *("status", "leaderboard", "holes", "judge-next", "bank check", "verify grading", "verify grid"),
        *("export qrels", "export pool", "export grades", "export subtopics"),
    ],
)
def test_commands_accept_gold_outputs_as_items(graded: Path, capsys: Capture, words: str) -> None:
    status = run([*words.split(), str(graded)])
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    assert "Traceback" not in err
    assert "are the most a gold should have" not in out


def test_the_live_page_shows_gold_outputs_without_edit_forms(graded: Path) -> None:
    pytest.importorskip("starlette")
    from served import client_of, csrf_of

    from trecexam.extensions.page.urls import Urls

    urls = Urls()
    with client_of(graded) as client:
        pages = [urls.board(), urls.result("queries"), urls.query("q1"), urls.passage("q1", "d1")]
        for path in (*pages, urls.passage("q1", "d1", item="q1/gold"), urls.bank("q1")):
            found = client.get(path)
            assert found.status_code in (200, 303), path
            assert "Traceback" not in found.text
        assert "Paris" in found.text
        form = {"csrf": csrf_of(client), "item": "q1/gold", "text": "Rome", "who": "Ann"}
        done = client.post(urls.edit_item("q1"), data=form, headers={"sec-fetch-site": "same-origin"})
        assert done.status_code == 422
        assert "edit the file by hand" in done.text
    assert json.loads((graded / "bank.gold.jsonl").read_text().splitlines()[0])["outputs"] == ["Paris"]
