"""A track with research rubrics as its bank, where some items have negative weights."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
from support import HashGrader, make_small_track

import converters
import trecexam
from trecexam.cli.main import run
from trecexam.scores import Cover
from trecexam.scores.measures import measure

COMPLIANCE = "compliance_score@8"
WEIGHTS = (5, -4.5, 2, 1)


@pytest.fixture
def rubrics(tmp_path: Path) -> Path:
    """A small track with rubrics instead of questions."""
    root = make_small_track(tmp_path / "track", config="[track]\ndepth = 8\n")
    (root / "bank.questions.jsonl").unlink()
    write(root, WEIGHTS)
    return root


def write(root: Path, weights: tuple[float, ...]) -> None:
    rows = [
        {
            "qid": query_id,
            "rubrics": [
                {"criterion": f"It says {n} of {query_id}.", "weight": weight}
                for n, weight in enumerate(weights)
            ],
        }
        for query_id in ("q1", "q2", "q3")
    ]
    (root / "bank.nuggets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_leaderboard_uses_weighted_coverage_and_a_changed_weight_runs_no_grader(rubrics: Path) -> None:
    with trecexam.open_track(rubrics, grader=HashGrader()) as track:
        assert track.update().graded > 0
        board = track.leaderboard()
        assert board.measures[0] == COMPLIANCE
        rated = {(row["query_id"], row["doc_id"], row["item_id"]): row["rating"] for row in track.grades()}
        items = {item.item_id: item for item in converters.read(rubrics / "bank.nuggets.jsonl")}
        runs = track.export.runs()
        frame = track.export.qrels_frame(library="pandas")
        assert set(frame["weight"]) == set(map(float, WEIGHTS))
        # Exports that carry the weights give the same scores.
        for qrels in (frame, list(track.qrels())):
            run = {
                query_id: {entry.doc_id: entry.score for entry in runs["run1"] if entry.query_id == query_id}
                for query_id in ("q1", "q2", "q3")
            }
            value = ir_measures.calc_aggregate([measure(COMPLIANCE)], qrels, run)[measure(COMPLIANCE)]
            assert value == next(row.scores[0].mean for row in board.rows if row.run == "run1")

        def expected(run_name: str) -> float:
            values = []
            for query_id in ("q1", "q2", "q3"):
                ranked = sorted(
                    (entry for entry in runs[run_name] if entry.query_id == query_id), key=lambda e: e.rank
                )[:8]
                reached = 0.0
                for item in items.values():
                    if item.query_id == query_id:
                        best = max(rated[query_id, entry.doc_id, item.item_id] for entry in ranked)
                        reached += (item.weight or 0) * (1 if best >= 5 else 0.5 if best >= 3 else 0)
                values.append(reached / sum(w for w in weights if w > 0))
            return sum(values) / 3

        weights: tuple[float, ...] = WEIGHTS
        assert {row.run: row.scores[0].mean for row in board.rows} == {
            name: pytest.approx(expected(name), abs=1e-12) for name in runs
        }
        weights = (-5, 4.5, 2, 1)
        write(rubrics, weights)
        again = track.update()
        assert (again.changed, again.graded) == (True, 0)
        items = {item.item_id: item for item in converters.read(rubrics / "bank.nuggets.jsonl")}
        for row in track.leaderboard([Cover(rel=5, partial=3, weights="item") @ 8]).rows:
            assert row.scores[0].mean == pytest.approx(expected(row.run), abs=1e-12)


def test_a_note_lists_the_measures_that_ignore_negative_weights(
    rubrics: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trecexam.open_track(rubrics, grader=HashGrader()) as track:
        track.update()
    assert run(["leaderboard", str(rubrics)]) == 0
    err = capsys.readouterr().err
    assert (
        "3 of 12 items have a negative weight, and count against in measures with weights='item' alone" in err
    )
