"""Items of the kind `gold` in other features: checks, diffs, pages, exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("httpx2")

from erag_track import answer, erag_track, gold_file, jsonl
from scripted_server import serving

import trecexam
from trecexam.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track that has been watched once; its server is gone."""
    with serving(answer) as server:
        root = erag_track(tmp_path_factory.mktemp("erag") / "track", server.url, metric="f1")
        (root / "trecexam.toml").write_text((root / "trecexam.toml").read_text().replace("write = false", ""))
        assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["leaderboard"],
        ["holes"],
        ["export", "qrels"],
        ["export", "pool"],
        ["export", "grades"],
        ["export", "subtopics"],
        ["verify", "grading"],
        ["verify", "grid"],
        ["judge-next"],
        ["bank", "check"],
    ],
    ids=" ".join,
)
def test_commands_accept_gold_outputs_as_items(graded: Path, capsys: Capture, words: list[str]) -> None:
    status = run([*words, str(graded)])
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    assert "Traceback" not in err
    assert "are the most a gold should have" not in out


def test_checks_allow_gold_outputs_to_be_long_and_to_copy_the_query(tmp_path: Path, capsys: Capture) -> None:
    long = " ".join(["word"] * 60)
    lines = [{"query_id": "q1", "query_text": "x y", "outputs": [long]}]
    lines.append({"query_id": "q2", "query_text": "the query", "outputs": ["the query", "1. x"]})
    assert run(["bank", "check", str(jsonl(tmp_path / "g.jsonl", *lines))]) == 0
    assert (
        run(["bank", "check", str(jsonl(tmp_path / "g.jsonl", *lines, {"query_id": "q1", "outputs": []}))])
        == 1
    )
    assert "query 'q1' has no gold outputs" in capsys.readouterr().out


def test_another_bank_of_gold_outputs_is_compared_without_a_model(graded: Path, tmp_path: Path) -> None:
    old, new = gold_file(tmp_path / "old.jsonl"), tmp_path / "new.jsonl"
    new.write_text(old.read_text().replace("Paris", "London"))
    with trecexam.open_track(graded) as track:
        found = track.bank.diff(old, new, ["nDCG@5"])
    assert [(item.item_id, item.change) for item in found.items] == [("q1/gold", "edited")]
    assert found.new.ungraded == {}


def test_grades_and_labels_come_from_the_same_outputs(graded: Path) -> None:
    with trecexam.open_track(graded) as track:
        rows = {(row["query_id"], row["doc_id"]): row for row in track.grades()}
        labels = track.erag.score(metric="em").labelled.labels
    assert rows["q1", "d1"]["rating"] == 5
    assert rows["q1", "d1"]["answer"] == "paris."
    assert rows["q1", "d1"]["prompt"] == "trecexam-erag"
    assert labels["q1"] == {"d1": 1.0, "d2": 0.0}


def test_the_live_page_shows_gold_outputs_without_edit_forms(graded: Path) -> None:
    pytest.importorskip("starlette")
    from served import client_of, csrf_of

    from trecexam.extensions.page import urls

    with client_of(graded) as client:
        pages = [urls.board(), urls.queries(), urls.query("q1"), urls.item("q1", "q1/gold"), urls.bank("q1")]
        for path in (*pages, urls.passage("q1", "d1"), urls.passage("q1", "d1", "q1/gold"), urls.judge()):
            found = client.get(path)
            assert found.status_code in (200, 303), path
            assert "Traceback" not in found.text
        assert "Paris" in client.get(urls.bank("q1")).text
        form = {"csrf": csrf_of(client), "item": "q1/gold", "text": "Rome", "who": "Ann"}
        done = client.post(
            urls.bank_change("q1", "edit"), data=form, headers={"sec-fetch-site": "same-origin"}
        )
        assert done.status_code == 422
        assert "edit the file by hand" in done.text
    assert json.loads((graded / "bank.gold.jsonl").read_text().splitlines()[0])["outputs"] == ["Paris"]
