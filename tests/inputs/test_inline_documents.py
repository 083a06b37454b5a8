"""Texts of cited passages that are contained in the responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from headings import score_columns
from outside import outside
from support import tsv_rows

from trecexam.cli.main import run


def report(name: str, sentence: str, **documents: str) -> dict[str, Any]:
    return {
        "metadata": {"team_id": "t", "run_id": name, "topic_id": "q1"},
        "responses": [{"text": sentence, "citations": list(documents)}],
        "documents": {doc_id: {"id": doc_id, "text": text} for doc_id, text in documents.items()},
    }


def make_track(folder: Path, *reports: dict[str, Any], passages: dict[str, str] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "runs").mkdir()
    for row in reports:
        (folder / "runs" / f"{row['metadata']['run_id']}.jsonl").write_text(json.dumps(row) + "\n")
    (folder / "topics.jsonl").write_text(json.dumps({"request_id": "q1", "title": "leaves"}) + "\n")
    given = ["--queries", str(folder / "topics.jsonl"), "--runs", str(folder / "runs")]
    if passages:
        rows = (json.dumps({"docid": doc_id, "text": text}) + "\n" for doc_id, text in passages.items())
        (folder / "passages.jsonl").write_text("".join(rows))
        given += ["--passages", str(folder / "passages.jsonl")]
    assert run(["init", str(folder / "track"), "--rag", *given]) == 0
    return folder / "track"


def scores(track: Path) -> dict[str, float]:
    rows = tsv_rows(track / "out" / "leaderboard.tsv")
    return {row["run"]: float(row[score_columns(row)[0]]) for row in rows}


RED = "Leaves turn red in autumn because of sugars trapped in them."
BEES = "Bees make honey out of nectar that they gather from flowers."


def test_cited_passages_are_graded_on_the_text_in_the_response(tmp_path: Path) -> None:
    track = make_track(tmp_path, report("good", RED, d1=RED), report("poor", RED, d2=BEES))
    run(["watch", str(track), "--once"])
    found = scores(track)
    assert found["good"] > found["poor"]


def test_the_passage_of_the_track_takes_precedence_and_the_other_text_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    track = make_track(tmp_path, report("a", RED, d1=BEES), passages={"d1": RED})
    run(["watch", str(track), "--once"])
    said = capsys.readouterr().err
    assert "1 document came with responses in another text than the track's own passages have: 'd1'" in said
    assert scores(track) == {"a": 1.0}


@pytest.mark.parametrize("first", [RED, BEES])
def test_of_two_texts_the_last_counts_and_a_note_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    last = BEES if first == RED else RED
    track = make_track(tmp_path, report("a", RED, d1=first), report("b", RED, d1=last))
    run(["watch", str(track), "--once"])
    said = capsys.readouterr().err
    assert "runs/b.jsonl: 1 document of its responses had another text" in said
    assert "'d1'; the last text counts" in said
    assert set(scores(track).values()) == {1.0 if last == RED else 0.0}


def test_the_autojudge_data_set_scores_the_same_with_documents_given_separately(tmp_path: Path) -> None:
    data = outside("autojudge/kiddie")
    track = tmp_path / "track"
    topics = data / "topics" / "kiddie-topics.jsonl"
    run(["init", str(track), "--rag", "--queries", str(topics), "--runs", str(data / "runs")])
    run(["watch", str(track), "--once"])
    found = scores(track)
    assert len(found) == 4
    assert all(0.32 <= value <= 0.41 for value in found.values())


def test_documents_in_responses_become_passages_when_converted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(report("a", RED, d1=BEES)) + "\n")
    target = tmp_path / "passages.jsonl"
    assert run(["convert", str(path), str(target), "--to", "passages", "--pool", "citations"]) == 0
    assert json.loads(target.read_text()) == {"docid": "d1", "text": BEES}
