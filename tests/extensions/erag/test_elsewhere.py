"""Items of the kind `gold` in other features: checks, diffs, pages, exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("httpx2")

from erag_track import answer, erag_track
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
