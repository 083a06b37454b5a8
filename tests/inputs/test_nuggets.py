"""Scores of nuggetizer from its assignments: bank, recording and answers in a track."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from headings import score_columns
from support import HashGrader, printed, tsv_rows, write_jsonl

import trecexam
from trecexam.cli.main import run

IMPORTANCE = {
    "q1": ["vital", "vital", "okay"],
    "q2": ["okay", "vital"],
    "q3": ["okay", "okay", "okay", "okay"],
}
S, P, N, F = "support", "partial_support", "not_support", "failed"
#: run -> query -> assignments. `quiet` gave no answer to q2, which nuggetizer judges all the same; `short`
#: has no line for it, as when nuggetizer's model failed.
ASSIGNED = {
    "good": {"q1": [S, S, P], "q2": [P, S], "q3": [S, N, P, F]},
    "fair one": {"q1": [P, F, S], "q2": [N, P], "q3": [N, N, P, N]},
    "quiet": {"q1": [S, N, N], "q2": [N, N], "q3": [P, P, S, S]},
    "short": {"q1": [S, P, N], "q3": [N, S, N, P]},
}
NAMES = {
    "strict_vital": "Cover(rel=5,weights='vital')@20",
    "strict_all": "Cover(rel=5)@20",
    "vital": "Cover(rel=5,partial=3,weights='vital')@20",
    "all": "Cover(rel=5,partial=3)@20",
}
MEASURES = f"[scores]\nmeasures = {json.dumps(list(NAMES.values()))}\n"


def nuggets(query_id: str, assigned: list[str] | None = None) -> list[dict[str, str]]:
    rows = [
        {"text": f"fact {n} of {query_id}", "importance": importance}
        for n, importance in enumerate(IMPORTANCE[query_id])
    ]
    return rows if assigned is None else [r | {"assignment": a} for r, a in zip(rows, assigned, strict=True)]


def answers(name: str) -> list[dict[str, Any]]:
    """A run's file of assignments; long answers, which are not truncated."""
    return [
        {
            "query": f"what about {query_id}",
            "qid": query_id,
            "answer_text": ""
            if (name, query_id) == ("quiet", "q2")
            else f"{name} on {query_id}. " + "Word. " * 500,
            "response_length": 500,
            "run_id": name,
            "nuggets": nuggets(query_id, assigned),
        }
        for query_id, assigned in ASSIGNED[name].items()
    ]


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A track as in the documentation."""
    bank = write_jsonl(
        tmp_path / "nuggets.jsonl",
        [{"query": f"what about {q}", "qid": q, "nuggets": nuggets(q)} for q in IMPORTANCE],
    )
    for name in ASSIGNED:
        write_jsonl(tmp_path / "assignments" / f"{name}.jsonl", answers(name))
    every = write_jsonl(tmp_path / "assignments.jsonl", [row for name in ASSIGNED for row in answers(name)])
    root = tmp_path / "track"
    words = ["init", root, "--bank", bank, "--recorded", every, "--runs", tmp_path / "assignments"]
    assert run([str(word) for word in words]) == 0
    (root / "trecexam.toml").write_text(
        '[track]\nbank = ["bank.nuggets.jsonl"]\n'
        f'[grader]\nname = "recorded"\nrecorded = "assignments.jsonl"\n{MEASURES}'
    )
    return root


def published(rows: list[dict[str, str]]) -> dict[str, float]:
    """nuggetizer's four scores of one answer, by its published formulas."""
    vital = [row for row in rows if row["importance"] == "vital"]

    def share(of: list[dict[str, str]], half: float) -> float:
        full, part = (sum(row["assignment"] == said for row in of) for said in (S, P))
        return (full + half * part) / len(of) if of else 0.0

    return {
        "strict_vital": share(vital, 0),
        "strict_all": share(rows, 0),
        "vital": share(vital, 0.5),
        "all": share(rows, 0.5),
    }


def means(root: Path) -> dict[str, dict[str, float]]:
    with trecexam.open_track(root) as track:
        board = track.leaderboard(list(NAMES.values()))
    return {
        row.run: {key: score.mean for key, score in zip(NAMES, row.scores, strict=True)} for row in board.rows
    }


def test_scores_from_nuggetizer_assignments_equal_those_of_nuggetizer(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", str(judged), "--once"]) == 0
    expected = {
        name: {query_id: published(nuggets(query_id, of)) for query_id, of in by_query.items()}
        for name, by_query in ASSIGNED.items()
    }
    key_of = {name: key for key, name in NAMES.items()}
    values = tsv_rows(judged / "out" / "per_query.tsv")
    assert len(values) == len(ASSIGNED) * len(IMPORTANCE) * len(NAMES)
    for row in values:
        said = expected[row["run"].replace("%20", " ")].get(row["query_id"], dict.fromkeys(NAMES, 0.0))
        assert float(row["value"]) == pytest.approx(said[key_of[row["measure"]]], abs=1e-6)
    header = (judged / "out" / "leaderboard.tsv").read_text().split("\n")[0].split("\t")
    assert score_columns(header) == [part for name in NAMES.values() for part in (name, f"{name}.stderr")]
    # Over all queries of the bank; nuggetizer's mean is over the lines of its file.
    for name, by_query in expected.items():
        ours = means(judged)[name.replace(" ", "%20")]
        for key in NAMES:
            total = math.fsum(scores[key] for scores in by_query.values())
            assert ours[key] == pytest.approx(total / len(IMPORTANCE))
    config = judged / "trecexam.toml"
    config.write_text(config.read_text() + 'average = "answered"\n')
    for name in ("good", "fair one", "short"):
        ours = means(judged)[name.replace(" ", "%20")]
        for key in NAMES:
            total = math.fsum(scores[key] for scores in expected[name].values())
            assert ours[key] == pytest.approx(total / len(expected[name]))
    # If nuggetizer has a line for an invalid answer, "all" is what it averages over.
    assert means(judged)["quiet"]["all"] > sum(s["all"] for s in expected["quiet"].values()) / 3


def without_importance(root: Path) -> None:
    bank = root / "bank.nuggets.jsonl"
    rows = [json.loads(line) for line in bank.read_text().splitlines()]
    write_jsonl(bank, [row | {"nuggets": [{"text": n["text"]} for n in row["nuggets"]]} for row in rows])


def test_without_vital_nuggets_v_scores_are_0_with_a_note(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As nuggetizer does: a share of no nuggets is 0."""
    without_importance(judged)
    vital = [NAMES["strict_vital"], NAMES["vital"]]
    line = f"no item of the bank is vital, so all runs have 0 in {', '.join(vital)}"
    assert line in printed(capsys, "watch", judged, "--once").err
    board = tsv_rows(judged / "out" / "leaderboard.tsv")
    assert len(board) == len(ASSIGNED)
    assert {float(row[name]) for row in board for name in vital} == {0.0}
    # The other measures are unchanged.
    for name, by_query in ASSIGNED.items():
        total = math.fsum(published(nuggets(q, of))["all"] for q, of in by_query.items())
        assert means(judged)[name.replace(" ", "%20")]["all"] == pytest.approx(total / len(IMPORTANCE))


def test_weighting_a_bank_without_importance_is_a_one_line_error(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without_importance(judged)
    assert run(["watch", str(judged), "--once"]) == 0
    weighted = "Cover(rel=5,weights=importance)@20"
    (line,) = printed(capsys, "leaderboard", judged, "-m", weighted, status=2).err.splitlines()
    assert line.startswith(f"trecexam: {judged / 'bank.nuggets.jsonl'}: ")
    assert "needs items with an importance, and the grader asks about none" in line


def test_two_nuggets_with_the_same_text_are_graded_once_and_counted_twice(
    tmp_path: Path, hash_grader: HashGrader
) -> None:
    """Published scores count both, in Cover, its weighted forms, labels and exports."""
    listed = [*nuggets("q1"), {"text": "fact 0 of q1", "importance": "okay"}]
    root = tmp_path / "track"
    write_jsonl(root / "bank.jsonl", [{"query": "what", "qid": "q1", "nuggets": listed}])
    write_jsonl(root / "runs" / "good.jsonl", [answers("good")[0] | {"nuggets": nuggets("q1", [S, S, P])}])
    (root / "trecexam.toml").write_text(MEASURES)
    with trecexam.open_track(root, grader=hash_grader) as track:
        assert track.update().graded == len(hash_grader.asked) == 3
        (row,) = track.leaderboard(list(NAMES.values())).rows
        (qrel,) = track.qrels()
        grades, subtopics = list(track.grades()), list(track.export.subtopics(min_rating=1))
    ratings = qrel.ratings
    assert ratings[3] == ratings[0]
    said = {5: S, 4: P, 3: P}
    scores = published([n | {"assignment": said.get(r, N)} for n, r in zip(listed, ratings, strict=True)])
    assert {k: s.mean for k, s in zip(NAMES, row.scores, strict=True)} == pytest.approx(scores)
    assert len({grade["item_id"] for grade in grades}) == 4
    assert [grade["rating"] for grade in grades] == list(ratings)
    assert [int(each.iteration) for each in subtopics if each.relevance] == [
        place for place, rating in enumerate(ratings, 1) if rating >= 1
    ]
