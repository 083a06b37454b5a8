"""`Track.add_run`: writes a run from Python to the runs folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashGrader

import converters
import trecexam
from trecexam import TrecexamError
from trecexam.cli.main import run

FRAME = pandas.DataFrame({"qid": ["q1", "q1"], "docno": ["q1-d01", "q1-d02"], "score": [1, 2]})


def test_an_added_run_is_on_the_leaderboard_under_its_name(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        path = track.add_run("mine.v2", FRAME)
        assert path == small_track / "runs" / "mine.v2.run"
        assert path.read_text() == "q1 Q0 q1-d02 1 2.0 mine.v2\nq1 Q0 q1-d01 2 1.0 mine.v2\n"
        assert track.files.runs()["mine.v2"] == path
        assert {row.run for row in track.leaderboard().rows} == {"mine.v2", "run0", "run1", "run2"}
        track.add_run("mine.v2", FRAME)
        with pytest.raises(TrecexamError, match="another run is there already; replace=True replaces it"):
            track.add_run("mine.v2", FRAME.head(1))
        assert len(path.read_text().splitlines()) == 2
        track.add_run("mine.v2", FRAME.head(1), replace=True)
        assert len(path.read_text().splitlines()) == 1
        assert [file.name for file in path.parent.glob(".*")] == []


def test_a_run_of_the_same_name_with_another_extension_is_not_duplicated(small_track: Path) -> None:
    (small_track / "runs" / "bm25.txt.gz").write_bytes(
        gzip.compress((small_track / "runs" / "run1.run").read_bytes())
    )
    with trecexam.open_track(small_track) as track:
        for replace in (False, True):
            with pytest.raises(TrecexamError, match=r"bm25\.txt\.gz: move it away, or use another"):
                track.add_run("bm25", FRAME, replace=replace)
    assert not (small_track / "runs" / "bm25.run").exists()


def test_responses_are_added_under_the_name_of_their_system(small_track: Path, tmp_path: Path) -> None:
    row = {
        "metadata": {"run_id": "rag", "narrative_id": "q1", "narrative": "query number q1"},
        "references": [],
        "answer": [{"text": "An answer.", "citations": []}],
    }
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        with pytest.raises(TrecexamError, match=r"responses of rag: add them by that name"):
            track.add_run("mine", tmp_path / "x.jsonl")
        empty = {**row, "metadata": {"run_id": "rag", "narrative_id": "q2"}, "answer": []}
        (tmp_path / "x.jsonl").write_text(json.dumps(empty) + "\n")
        with pytest.raises(TrecexamError, match=r"x.jsonl:1: the response to query 'q2' has no text"):
            track.add_run("rag", tmp_path / "x.jsonl")
        (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(empty) + "\n")
        track.add_run("rag", tmp_path / "x.jsonl")
        assert "rag" in track.files.runs()
        assert "runs/rag.jsonl:2: the response to query 'q2' has no text (lost: response)" in map(
            str, track.files.rejected()
        )


@pytest.mark.parametrize(
    "name", ["", ".hidden", "a/.b", "../a", "/a", "a//b", "a b", "a\tb", "ä" * 130, "a\u202eb"]
)
def test_an_invalid_run_name_is_rejected(name: str, small_track: Path) -> None:
    with trecexam.open_track(small_track) as track, pytest.raises(TrecexamError):
        track.add_run(name, FRAME)
    assert len(list((small_track / "runs").iterdir())) == 3


@pytest.mark.parametrize("name", ["team/mine", "x.gz", "x.part", "x.run"])
def test_a_run_has_its_name_whatever_its_ending(name: str, small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        assert track.add_run(name, FRAME) == small_track / "runs" / f"{name}.run"
        assert name in track.files.runs()


IDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=5)
#: A line that begins with `#` is a comment.
QUERY_IDS = IDS.filter(lambda text: not text.startswith("#"))
SCORES = st.dictionaries(
    QUERY_IDS,
    st.dictionaries(IDS, st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    min_size=1,
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("empty")
    (root / "trecexam.toml").write_text("# nothing\n")
    return root


@given(scores=SCORES)
def test_a_written_run_is_read_back_bit_for_bit(empty: Path, scores: dict[str, dict[str, float]]) -> None:
    with trecexam.open_track(empty) as track:
        again: Any = converters.read(track.add_run("mine", scores, replace=True), "run")
    rows = ((query_id, doc_id, value) for query_id, docs in scores.items() for doc_id, value in docs.items())
    assert list(again) == list(converters.Run.from_entries("mine", rows))
    assert set(again.query_ids) == set(scores)


# Notes of `trecexam.evaluate`.


@pytest.mark.parametrize(("doc_id", "expected"), [("other-1", True), ("q1-d01", False)])
def test_judgments_of_which_none_is_in_a_run_are_named(doc_id: str, expected: bool, graded: Path) -> None:
    with trecexam.evaluate(
        {"run0": graded / "runs" / "run0.run"},
        bank=graded / "bank.questions.jsonl",
        passages=graded / "passages.jsonl",
        recorded=graded / "grades.jsonl",
        official={"q1": {doc_id: 1}},
    ) as done:
        note = "no passage that it judges ('other-1') is in the pool"
        assert any(note in each for each in done.leaderboard.notes) == expected


def test_runs_that_32_bits_order_otherwise_are_named_where_people_look(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = graded / "runs" / "run0.run"
    rows = [line.split() for line in path.read_text().splitlines()]
    # Highest docno last, a billion to the first.
    by_query: dict[str, list[str]] = {}
    for query_id, _, doc_id, *_ in rows:
        by_query.setdefault(query_id, []).append(doc_id)
    path.write_text(
        "".join(
            f"{q} Q0 {d} 1 {999_999_999 - rank} run0\n"
            for q, docs in by_query.items()
            for rank, d in enumerate(sorted(docs))
        )
    )
    note = f"run0: scores that are equal in 32 bits, so trec_eval 9 orders {len(by_query)} rankings otherwise"
    for command in (
        ["watch", str(graded), "--once"],
        ["leaderboard", str(graded)],
        ["leaderboard", str(graded), "--official"],
        ["correlate", str(graded)],
        ["export", "runs", str(graded), "-o", str(tmp_path / "runs")],
    ):
        capsys.readouterr()
        assert run(command) == 0
        assert note in capsys.readouterr().err, command
    with trecexam.open_track(graded) as track:
        for query_id, docs in by_query.items():
            assert track.export.runs()["run0"].ranking(query_id) == sorted(docs)
    assert run(["check", str(path), "--trec-eval", "9"]) == 0
    assert "beyond float precision" in capsys.readouterr().out
