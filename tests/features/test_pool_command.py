"""`trecexam export pool`: the input of the Rubric workbench."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import RECORDED, HashGrader, make_small_track, printed

import trecexam
from trecexam.cli.main import run


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz"])
def test_an_exported_pool_can_be_read_by_the_recorded_grader(graded: Path, tmp_path: Path, name: str) -> None:
    again = tmp_path / "again"
    shutil.copytree(graded, again, ignore=shutil.ignore_patterns("out", ".trecexam", "passages.jsonl"))
    assert run(["export", "pool", str(graded), "-o", str(again / name)]) == 0
    (again / "trecexam.toml").write_text(RECORDED.replace("grades.jsonl", name))
    assert run(["watch", str(again), "--once"]) == 0
    for output in ("rubric.qrels", "rubric.subtopics.qrels", "leaderboard.tsv", "per_query.tsv"):
        assert (again / "out" / output).read_bytes() == (graded / "out" / output).read_bytes()


def test_an_exported_pool_has_the_runs_judgments_and_texts_of_the_track(
    graded: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["export", "pool", str(graded)]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [query_id for query_id, _ in rows] == ["q1", "q2", "q3"]
    qrels = {
        tuple(line.split()[::2]): int(line.split()[3])
        for line in (graded / "qrels.txt").read_text().splitlines()
    }
    runs = {
        (fields[5], fields[0], fields[2]): (int(fields[3]), float(fields[4]))
        for path in (graded / "runs").iterdir()
        for fields in map(str.split, path.read_text().splitlines())
    }
    ranked = 0
    for query_id, passages in rows:
        for passage in passages:
            doc_id, data = passage["paragraph_id"], passage["paragraph_data"]
            assert passage["text"] == f"passage {int(doc_id[-2:])} about {query_id}"
            label = qrels[query_id, doc_id]
            assert data["judgments"] == [
                {"paragraphId": doc_id, "query": query_id, "relevance": label, "titleQuery": query_id}
            ]
            for place in data["rankings"]:
                assert runs[place["method"], query_id, doc_id] == (place["rank"], place["score"])
                ranked += 1
            (grading,) = passage["exam_grades"]
            ratings = {row["question_id"]: row["self_rating"] for row in grading["self_ratings"]}
            assert grading["correctAnswered"] == [item for item, rating in ratings.items() if rating > 0]
            assert len(ratings) == len(grading["answers"]) == 4
            assert grading["relevance_label"] == max(ratings.values())
    assert ranked == len([1 for _, q, d in runs if any(d == p["paragraph_id"] for _, ps in rows for p in ps)])


def test_an_exported_pool_distinguishes_unparsed_answers_and_errors(tmp_path: Path) -> None:
    grader = HashGrader()
    grader.status = lambda cell: {"q1/0": "unparsed", "q1/1": "error"}.get(cell.item.item_id, "ok")
    root = make_small_track(tmp_path / "track", queries=1)
    (root / "passages.jsonl").write_text('{"docid": "q1-d00", "text": "the only one"}\n')
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        passages = {passage.doc_id: passage for passage in track.export.pool()}
    (grading,) = passages["q1-d00"].gradings
    assert [item for item, _ in grading.answers] == ["q1/0", "q1/2", "q1/3"]
    assert [rating.item_id for rating in grading.self_ratings] == ["q1/2", "q1/3"]
    assert list(grading.errors) == ["q1/1"]
    assert grading.llm == "hash"
    assert "q1/0" in grading.wrong
    assert (passages["q1-d01"].text, passages["q1-d01"].gradings) == ("", ())


@pytest.mark.parametrize("what", ["pool", "qrels", "subtopics", "grades", "official"])
def test_an_export_into_the_runs_folder_is_rejected(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    another = make_small_track(tmp_path / "another")
    output = another / "runs" / "deep" / "x"
    output.parent.mkdir()
    assert "is in the drop folder" in printed(capsys, "export", what, graded, "-o", output, status=2).err
    assert not output.exists()
    assert run(["export", what, str(graded), "-o", str(another / "x")]) == 0
