"""Questions about runs and official judgments, on a track without bank, passages and grades."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, P, nDCG
from support import printed, tsv_table, write_run

import trecexam
from trecexam.cli.main import run

DEPTH = 8


@pytest.fixture
def with_bank(graded: Path) -> Path:
    """A graded track with holes, a label -1, and a run that skips queries and has unknown passages."""
    lines = (graded / "qrels.txt").read_text().splitlines()
    kept = [line for number, line in enumerate(lines) if number % 3]
    kept[0] = kept[0][:-1] + "-1"
    (graded / "qrels.txt").write_text("".join(f"{line}\n" for line in kept))
    write_run(graded / "runs" / "skips.run", {"q2": ["q2-d00", "new", "q2-d01"]})
    return graded


@pytest.fixture
def root(with_bank: Path, tmp_path: Path) -> Path:
    """The same track as an organizer has it: topics, judgments and runs alone."""
    root = tmp_path / "organizer"
    given = ["--queries", with_bank / "queries.tsv", "--qrels", with_bank / "qrels.txt"]
    assert run(["init", *map(str, (root, *given, "--runs", with_bank / "runs"))]) == 0
    config = root / "trecexam.toml"
    config.write_text(config.read_text().replace("[track]", f"[track]\ndepth = {DEPTH}", 1))
    return root


def rankings(root: Path) -> dict[str, dict[str, list[str]]]:
    """run -> query_id -> doc_ids, in the order of the scores, which is that of the lines."""
    ranked: dict[str, dict[str, list[str]]] = {}
    for path in (root / "runs").iterdir():
        for line in path.read_text().splitlines():
            query_id, _, doc_id, *_ = line.split()
            ranked.setdefault(path.stem, {}).setdefault(query_id, []).append(doc_id)
    return ranked


def labels(root: Path) -> dict[tuple[str, str], int]:
    """(query_id, doc_id) -> label, without those of -1."""
    lines = (line.split() for line in (root / "qrels.txt").read_text().splitlines())
    return {(query_id, doc_id): int(label) for query_id, _, doc_id, label in lines if label != "-1"}


def test_a_bank_changes_no_hole_and_no_official_value(
    with_bank: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ["leaderboard", "--official", "-m", "nDCG@10", "-m", "AP", "-m", "P@5"],
        ["compare", "--official", "-m", "nDCG@10"],
    ):
        command, *options = words
        expected = printed(capsys, command, with_bank, *options)[0]
        assert printed(capsys, command, root, *options)[0] == expected
    assert printed(capsys, "export", "official", root) == printed(capsys, "export", "official", with_bank)
    kept = ("run", "query_id", "unjudged", f"Judged@{DEPTH}")
    of_tracks = [
        [[row[name] for name in kept] for row in tsv_table(printed(capsys, "holes", track)[0])]
        for track in (with_bank, root)
    ]
    assert of_tracks[0] == of_tracks[1]


def test_official_means_are_those_of_ir_measures(root: Path) -> None:
    qrels = [ir_measures.Qrel(*key, label) for key, label in labels(root).items()]
    measures = [nDCG @ 10, AP, P @ 5]
    with trecexam.open_track(root) as track:
        board = track.leaderboard(measures, official=True)
        assert track.compare(measures, official=True).notes
    assert {row.run for row in board.rows} == rankings(root).keys()
    for row in board.rows:
        ranked = [
            ir_measures.ScoredDoc(query_id, doc_id, -float(rank))
            for query_id, doc_ids in rankings(root)[row.run].items()
            for rank, doc_id in enumerate(doc_ids)
        ]
        by_query = {
            (value.measure, value.query_id): value.value
            for value in ir_measures.iter_calc(measures, qrels, ranked)
        }
        for metric, score in zip(measures, row.scores, strict=True):
            values = [by_query.get((metric, query_id), 0.0) for query_id in ("q1", "q2", "q3")]
            assert score.mean == pytest.approx(sum(values) / 3)


def test_fill_adds_the_judgments_of_people_and_leaves_other_holes(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = tmp_path / "merged.qrels"
    assert "no test bank: put bank" in printed(capsys, "fill", root, "-o", merged, status=2)[1]
    table = tmp_path / "judged.tsv"
    table.write_text(
        "query_id\tdoc_id\tassessor\trating\nq2\tnew\tada\t2\nq2\tnew\tbob\t2\nq1\tq1-d03\tada\t0\n"
    )
    assert ("q1", "q1-d03") not in labels(root)
    printed(capsys, "judge", "import", root, table)
    assert json.loads(printed(capsys, "judge", "agreement", root, "--json")[0])["agreement"][0]["cells"] == 1
    printed(capsys, "judge", "export", root, "-o", tmp_path / "judged")
    by_people = "q1 0 q1-d03 0\nq2 0 new 2\n"
    assert (tmp_path / "judged" / "qrels.txt").read_text() == by_people
    said = printed(capsys, "fill", root, "-o", merged, status=1)[1]
    assert merged.read_text() == (root / "qrels.txt").read_text() + by_people
    assert "2 judgments by people of this track, and 0 new lines" in said
    n_holes = sum(int(row["holes"]) for row in tsv_table(printed(capsys, "fill", root, "--dry-run")[0]))
    assert f"not filled: {n_holes} holes that no grader rated" in said
