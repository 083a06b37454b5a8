"""A track with files of other tools: runs that bring their passages, ids in another Unicode normal form."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from support import HashGrader

import trecexam
from trecexam.cli.main import run

BANK = {"query_id": "q1", "questions": [{"question_text": "What do cats eat?"}]}


def make_track(tmp_path: Path, queries: Path, *more: str) -> Path:
    (tmp_path / "bank.jsonl").write_text(json.dumps(BANK) + "\n")
    given = ["--queries", str(queries), "--bank", str(tmp_path / "bank.jsonl"), *more]
    assert run(["init", str(tmp_path / "track"), *given]) == 0
    return tmp_path / "track"


def test_a_castorini_file_is_queries_run_and_passages_of_a_track_without_others(tmp_path: Path) -> None:
    candidates = [
        {"docid": "d1", "score": 9, "doc": {"segment": "Cats eat fish and mice."}},
        {"docid": "d2", "score": 8, "doc": {"segment": "A car drives on a road."}},
    ]
    path = tmp_path / "reranked.jsonl"
    path.write_text(json.dumps({"query": {"qid": "q1", "text": "cats"}, "candidates": candidates}) + "\n")
    track = make_track(tmp_path, path, "--runs", str(path))
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        opened.update()
        assert {row["doc_id"]: row["status"] for row in opened.grades()} == {"d1": "ok", "d2": "ok"}
    assert (track / "out" / "leaderboard.tsv").read_text().splitlines()[1].startswith("reranked\t")


def test_ids_in_another_normal_form_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.tsv").write_text("q1\twhat do cats eat\n")
    (tmp_path / "passages.jsonl").write_text('{"docid": "Zürich", "text": "Cats eat fish in this town."}\n')
    track = make_track(tmp_path, tmp_path / "queries.tsv", "--passages", str(tmp_path / "passages.jsonl"))
    doc_id = unicodedata.normalize("NFD", "Zürich")
    (track / "runs" / "nfd.run").write_text(f"q1 Q0 {doc_id} 1 9 nfd\nq1 Q0 Köln 2 8 nfd\n")
    assert run(["watch", str(track), "--once"]) == 1
    reason = (
        f"1 id differs from other files' in Unicode normal form alone, '{doc_id}' here; write all in one: "
        "uconv -x any-nfc FILE"
    )
    assert reason in capsys.readouterr().err
    (track / "runs" / "nfd.run").write_text("q1 Q0 Zürich 1 9 nfc\n")
    (track / "qrels.txt").write_text(f"q1 0 {doc_id} 1\n")
    assert run(["watch", str(track), "--once"]) == 0
    assert run(["leaderboard", str(track), "--official"]) == 0
    assert f"in Unicode normal form alone, '{doc_id}' here" in capsys.readouterr().err
