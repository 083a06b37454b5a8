"""`exclude_query_document`: a query's own document, as in ArguAna, is in no run and in no pool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashGrader, make_small_track, update

import trecexam
from converters.run import Run

ENTRY = st.tuples(st.sampled_from("abc"), st.sampled_from("abcde"), st.integers(0, 3))


@given(st.lists(ENTRY, max_size=15, unique_by=lambda row: row[:2]))
def test_all_entries_but_the_queries_own_documents_stay_in_order(rows: list[tuple[str, str, int]]) -> None:
    whole = Run.from_entries("r", [(q, d, float(score)) for q, d, score in rows])
    expected = Run.from_entries("r", [(q, d, float(score)) for q, d, score in rows if q != d])
    found = whole.without_query_documents()
    assert list(found) == [entry for q in whole.query_ids for entry in expected if entry.query_id == q]
    assert set(found.query_ids) == set(expected.query_ids)
    assert all(q not in found.ranking(q) for q in found.query_ids)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A track whose queries q1 to q3 are passages, too; each run has them at rank 1."""
    root = make_small_track(tmp_path / "track")
    with (root / "passages.jsonl").open("a") as passages:
        passages.writelines(json.dumps({"docid": f"q{n}", "text": f"query {n}"}) + "\n" for n in (1, 2, 3))
    with (root / "qrels.txt").open("a") as qrels:
        qrels.write("q1 0 q1 1\n")
    for path in (root / "runs").iterdir():
        lines = [f"q{n} Q0 q{n} 0 1e9 {path.stem}\n" for n in (1, 2, 3)]
        path.write_text("".join(lines) + path.read_text())
    return root


@pytest.mark.parametrize("pool_judged", ["true", "false"])
def test_with_the_setting_a_track_is_as_if_no_run_had_the_queries(root: Path, pool_judged: str) -> None:
    settings = f"[track]\ndepth = 5\npool_judged = {pool_judged}\n"
    measures = ["nDCG@5", "P@1", "RR", "NumRet"]
    (root / "trecexam.toml").write_text(settings)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        first = track.export.runs()["run0"].ranking("q1", 1)
        assert first == ["q1"]
        track.leaderboard(measures)
        (root / "trecexam.toml").write_text(f"{settings}exclude_query_document = true\n")
    grader = HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        found = [track.leaderboard(measures).rows, track.leaderboard(measures, official=True).rows]
        assert not {row.doc_id for row in track.qrels()} & {"q1", "q2", "q3"}
        assert not {cell.doc_id for cell in grader.asked} & {"q1", "q2", "q3"}
    for path in (root / "runs").iterdir():
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "1e9" not in line))
    text = (root / "qrels.txt").read_text()
    if pool_judged == "true":
        (root / "qrels.txt").write_text(text.replace("q1 0 q1 1\n", ""))
    (root / "trecexam.toml").write_text(settings)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        expected = track.leaderboard(measures)
        assert [row.scores for row in found[0]] == [row.scores for row in expected.rows]
        (root / "qrels.txt").write_text(text)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        official = track.leaderboard(measures, official=True)
        assert [row.scores for row in found[1]] == [row.scores for row in official.rows]


def test_a_run_of_nothing_else_is_rejected_with_the_reason(root: Path) -> None:
    (root / "runs" / "own.run").write_text("q1 Q0 q1 1 1 own\n")
    (root / "trecexam.toml").write_text("[track]\nexclude_query_document = true\n")
    update(root)
    assert "only the queries' own documents" in (root / "out" / "rejected.tsv").read_text()
