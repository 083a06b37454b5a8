from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from learnable import make_learnable
from support import RECORDED, HashGrader, make_small_track

import trecexam
from trecexam.cli.main import run

pytest.importorskip("httpx2")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture
def unjudged(graded: Path) -> Path:
    (graded / "qrels.txt").unlink()
    return graded


def test_passages_that_change_the_ranking_most_come_first(
    unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge-next", str(unjudged), "--top", "5"]) == 0
    out, err = capsys.readouterr()
    found = rows(out)
    assert list(found[0]) == ["place", "query_id", "doc_id", "label", "expected_change", "runs", "text"]
    assert [row["place"] for row in found] == ["1", "2", "3", "4", "5"]
    changes = [float(row["expected_change"]) for row in found]
    assert changes == sorted(changes, reverse=True)
    assert changes[-1] > 0
    assert found[0]["text"].startswith("passage ")
    assert "unjudged passages could change the ranking by P(rel=4)@8" in err
    where = f"--query {found[0]['query_id']} --doc {found[0]['doc_id']} --rating N"
    assert f"to judge: trecexam serve {unjudged}, or trecexam override {unjudged} {where}" in err
    labels = {
        tuple(line.split()[::2]): line.split()[3]
        for line in (unjudged / "out/rubric.qrels").read_text().splitlines()
    }
    assert all(row["label"] == labels[row["query_id"], row["doc_id"]] for row in found)


@pytest.mark.parametrize("measure", ["nDCG@8", "P(rel=4)@8"])
def test_the_expected_change_equals_that_of_override_on_the_leaderboard(unjudged: Path, measure: str) -> None:
    config = (unjudged / "trecexam.toml").read_text() + '[scores]\naverage = "answered"\n'
    (unjudged / "trecexam.toml").write_text(config)
    lines = (unjudged / "runs/run0.run").read_text().splitlines(keepends=True)
    (unjudged / "runs/run0.run").write_text("".join(line for line in lines if not line.startswith("q1")))
    with trecexam.open_track(unjudged) as track:
        track.update()
        best = next(iter(track.judge_next(measure)))
        query_id, doc_id = best["query_id"], best["doc_id"]
        grades = [
            row["rating"] for row in track.grades() if (row["query_id"], row["doc_id"]) == (query_id, doc_id)
        ]
        before = {row.run: row.scores[0].mean for row in track.leaderboard([measure]).rows}
        change = 0.0
        for rating in grades:
            track.override(query_id, doc_id, rating, who="ann", why="a try")
            after = {row.run: row.scores[0].mean for row in track.leaderboard([measure]).rows}
            moved = [
                abs(after[a] - after[b] - before[a] + before[b]) for a, b in itertools.combinations(before, 2)
            ]
            change += sum(moved) / len(moved) / len(grades)
    assert best["expected_change"] == pytest.approx(change)
    assert change > 0


def test_a_track_whose_measures_use_items_is_ranked_by_labels(unjudged: Path) -> None:
    config = (unjudged / "trecexam.toml").read_text() + '[scores]\nmeasures = ["Cover(rel=4)@8"]\n'
    (unjudged / "trecexam.toml").write_text(config)
    with trecexam.open_track(unjudged) as track:
        assert track.judge_next().facts["measure"] == "nDCG@10"


def test_passages_judged_by_a_person_are_left_out(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels = (graded / "qrels.txt").read_text().splitlines(keepends=True)
    (graded / "qrels.txt").write_text("".join(line for line in qrels if line.startswith(("q1", "q2"))))
    assert run(["judge-next", str(graded), "--top", "100"]) == 0
    found = rows(capsys.readouterr().out)
    assert {row["query_id"] for row in found} == {"q3"}
    doc_id = found[0]["doc_id"]
    with trecexam.open_track(graded) as track:
        track.override("q3", doc_id, 3, who="ann", why="read it")
        again = track.judge_next()
    assert again.facts["candidates"] == len(found) - 1
    assert ("q3", doc_id) not in [(row["query_id"], row["doc_id"]) for row in again]


def test_a_negative_official_label_is_not_a_judgment(graded: Path) -> None:
    lines = (graded / "qrels.txt").read_text().splitlines()
    open_ones = [f"{line.rsplit(' ', 1)[0]} -1\n" for line in lines if line.startswith("q2")]
    judged = [f"{line}\n" for line in lines if not line.startswith("q2")]
    (graded / "qrels.txt").write_text("".join([*judged, *open_ones]))
    with trecexam.open_track(graded) as track:
        assert {*track.judge_next()["query_id"]} == {"q2"}


def test_if_every_passage_is_judged_the_list_is_empty(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge-next", str(graded)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "no passage is left to judge" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "Cover(rel=4)@8"], "does not use labels of passages"),
        (["-m", "ECover(rel=4)@8"], "use P, nDCG or AP"),
        (["-m", "ndcg_cut_10"], "write nDCG@10"),
        (["-m", "nDCG@ten"], "cannot be read"),
        (["--query", "q11"], "no query 'q11'; did you mean 'q1'?"),
        (["--top", "0"], "0 is not in the range"),
    ],
)
def test_invalid_requests_are_a_one_line_error(
    graded: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["judge-next", str(graded), *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert message in err
    assert err.count("\n") == 1


def by_retrieval(root: Path) -> tuple[list[tuple[str, str]], Counter[tuple[str, str]]]:
    """The unjudged passages, queries in turn and the most retrieved first; and their numbers of runs."""
    weights: dict[tuple[str, str], float] = {}
    runs: Counter[tuple[str, str]] = Counter()
    for path in (root / "runs").iterdir():
        for line in path.read_text().splitlines():
            query_id, _, doc_id, rank = line.split()[:4]
            gain = 1 / math.log2(int(rank) + 1) if int(rank) <= 10 else 0.1 if int(rank) <= 20 else 0
            weights[query_id, doc_id] = weights.get((query_id, doc_id), 0.0) + gain
            runs[query_id, doc_id] += 1
    judged = {tuple(line.split()[:3:2]) for line in (root / "qrels.txt").read_text().splitlines()}
    left = sorted({*weights} - judged, key=lambda pair: (pair[0], -round(weights[pair], 9), pair[1]))
    turns = {
        pair: turn
        for _, of_query in itertools.groupby(left, key=lambda pair: pair[0])
        for turn, pair in enumerate(of_query)
    }
    return sorted(left, key=lambda pair: (turns[pair], pair[0])), runs


@pytest.mark.parametrize("with_bank", [True, False])
def test_without_grades_the_most_retrieved_passages_come_first_and_queries_take_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, with_bank: bool
) -> None:
    root = make_learnable(tmp_path / "track", queries=5)
    if not with_bank:
        (root / "bank.questions.jsonl").unlink()
    assert run(["judge-next", str(root), "--top", "200"]) == 0
    out, err = capsys.readouterr()
    found = rows(out)
    expected, runs = by_retrieval(root)
    assert list(found[0]) == ["place", "query_id", "doc_id", "runs", "text"]
    assert [(row["query_id"], row["doc_id"]) for row in found] == expected
    assert all(int(row["runs"]) == runs[row["query_id"], row["doc_id"]] for row in found)
    why = "nothing is graded yet" if with_bank else "the track has no test bank"
    assert f"{len(found)} unjudged passages, in the order of retrieval: {why}" in err


def test_passages_with_the_same_text_are_listed_once(unjudged: Path) -> None:
    texts = [json.loads(line) for line in (unjudged / "passages.jsonl").read_text().splitlines()]
    texts[1]["text"] = texts[0]["text"]
    (unjudged / "passages.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    with trecexam.open_track(unjudged) as track:
        track.update()
        found = {row["doc_id"]: row for row in track.judge_next("nDCG@8")}
    assert "q1-d01" not in found
    alike = {"q1-d00", "q1-d01"}
    lines = [path.read_text().splitlines() for path in (unjudged / "runs").iterdir()]
    assert found["q1-d00"]["runs"] == sum(
        any(int(f[3]) <= 8 and f[2] in alike for f in map(str.split, run_lines)) for run_lines in lines
    )


def test_judge_plan_takes_the_list(unjudged: Path, tmp_path: Path) -> None:
    listed = tmp_path / "list.tsv"
    assert run(["judge-next", str(unjudged), "--top", "4", "-o", str(listed)]) == 0
    assert run(["judge", "plan", str(unjudged), "--assessors", "ada", "--passages", str(listed)]) == 0
    tasks = [tuple(line.split("\t")[1:3]) for line in (unjudged / "judging.tsv").read_text().splitlines()[1:]]
    assert sorted(tasks) == sorted((row["query_id"], row["doc_id"]) for row in rows(listed.read_text()))


@pytest.mark.parametrize(("command", "status"), [("judge-next", 0), ("agreement", 2)])
def test_unreadable_answers_do_not_lead_to_advice_to_grade_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    root = make_small_track(tmp_path / "track")
    grader = HashGrader()
    grader.status = lambda cell: "unparsed"
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in track.grades()))
    (root / "trecexam.toml").write_text(RECORDED)
    (root / "qrels.txt").write_text("q1 0 q1-d00 1\n")
    assert run(["watch", str(root), "--once"]) == 0
    capsys.readouterr()
    assert run([command, str(root)]) == status
    told = capsys.readouterr().err
    assert "the grader gave no rating: of 144 answers 144 are unparsed, 0 refused, 0 errors" in told
    assert f"trecexam verify grading {root}" in told


def test_passages_have_their_text_where_the_grader_goes_by_ids(tmp_path: Path) -> None:
    assert run(["demo", str(tmp_path / "demo"), "--rag"]) == 0
    with trecexam.open_track(tmp_path / "demo") as track:
        (row,) = track["umbrela"].judge_next(top=1)
    assert str(row["text"]).count(" ") > 5
