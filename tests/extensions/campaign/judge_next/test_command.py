from __future__ import annotations

import csv
import io
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from column_cases import evaluated
from learnable import make_learnable
from numpy.typing import NDArray

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.campaign.judge_next import expected_change as tried
from trecexam.scores.columns import Judged
from trecexam.scores.labels import labels
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings

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


# Expected changes equal full evaluations, one for each possible rating.


Rankings = Sequence[dict[str, list[str]]]


def means_of(
    queries: list[QueryRatings], runs: Rankings, name: str, rule: str = "max", min_answers: int = 1
) -> list[float]:
    judged = Judged.from_ratings(queries, rule, 3, min_answers)  # type: ignore[arg-type]
    values = [evaluated([name], judged, run) for run in runs]
    return [
        math.fsum(value for of_query in each.values() for value in of_query.values()) / len(queries)
        for each in values
    ]


def expected(
    q: QueryRatings,
    runs: Rankings,
    name: str,
    *,
    alike: Sequence[int] = range(7),
    wanted: Sequence[bool] = (True,) * 7,
    weight: float = 1.0,
    rule: str = "max",
    min_answers: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return tried.expected_change(
        q, np.array(alike), np.array(wanted), [run.get(q.query_id, []) for run in runs],
        np.full(len(runs), weight), measure(name),
        partial(labels, rule=rule, min_rating=3, min_answers=min_answers),  # type: ignore[arg-type]
    )  # fmt: skip


def naive(before: list[float], after: list[float]) -> float:
    """The mean change of differences between two leaderboards."""
    pairs = list(itertools.combinations(range(len(before)), 2))
    return sum(abs((after[a] - after[b]) - (before[a] - before[b])) for a, b in pairs) / len(pairs)


def example(seed: int) -> tuple[list[QueryRatings], list[dict[str, list[str]]]]:
    """Three queries of seven passages, one of them without ratings, and five runs, two of them alike."""
    rng = np.random.default_rng(seed)
    doc_ids = tuple(f"d{doc:02}" for doc in range(7))
    queries = []
    for number in range(1, 4):
        ratings = rng.choice([-1, 0, 0, 1, 2, 3, 4, 5], size=(7, 3)).astype(np.int8)
        ratings[6] = -1
        queries.append(QueryRatings(f"q{number}", doc_ids, 3, ratings))
    known = [*doc_ids, "x1", "x2"]
    runs = [{q.query_id: rng.permutation(known)[:6].tolist() for q in queries} for _ in range(4)]
    del runs[1]["q2"]
    runs.append(dict(runs[0]))
    return queries, runs


@pytest.mark.parametrize(("rule", "min_answers"), [("max", 1), ("max", 2), ("count", 1), ("count", 2)])
@pytest.mark.parametrize("name", ["P@3", "nDCG@4", "AP", "P(judged_only=True)@2"])
def test_the_change_by_judging_a_passage_equals_full_evaluations(
    name: str, rule: str, min_answers: int
) -> None:
    queries, runs = example(3)
    queries[1] = replace(queries[1], human={"d03": 5})
    before = means_of(queries, runs, name, rule, min_answers)
    place, q = 1, queries[1]
    labelled, found = expected(
        q, runs, name, wanted=[doc % 3 != 2 for doc in range(7)], weight=1 / 3, rule=rule,
        min_answers=min_answers,
    )  # fmt: skip
    now = labels(q, rule, 3, min_answers)  # type: ignore[arg-type]
    for doc, doc_id in enumerate(q.doc_ids):
        assert labelled[doc] == now.get(doc_id, -1)
        change = 0.0
        ratings = [rating for rating in q.ratings[doc].tolist() if rating >= 0]
        for rating in ratings:
            judged = replace(q, human={**q.human, doc_id: rating})
            after = means_of([*queries[:place], judged, *queries[place + 1 :]], runs, name, rule, min_answers)
            change += naive(before, after) / len(ratings)
        assert found[doc] == pytest.approx(0 if doc % 3 == 2 else change)
    assert found.any()


def test_a_judgment_counts_for_every_passage_with_the_same_text() -> None:
    (q, *_), runs = example(7)
    q = replace(q, ratings=q.ratings.copy())
    q.ratings[2] = q.ratings[5] = [1, 4, 1]
    _, found = expected(q, runs, "nDCG@4", alike=[0, 1, 2, 3, 4, 2, 6])
    judged = replace(q, human={"d02": 1, "d05": 1})
    change = naive(means_of([q], runs, "nDCG@4"), means_of([judged], runs, "nDCG@4"))
    assert change > 0
    assert found[2] == pytest.approx(2 / 3 * change)


def test_working_in_small_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    (q, *_), runs = example(11)
    _, whole = expected(q, runs, "nDCG@4")
    monkeypatch.setattr(tried, "_ROWS", 1)
    assert expected(q, runs, "nDCG@4")[1] == pytest.approx(whole, abs=1e-12)


def test_a_query_excluded_from_the_mean_of_a_run_does_not_change_it() -> None:
    (q, *_), runs = example(3)
    assert expected(q, runs, "P(rel=4)@3")[1].any()
    assert not expected(q, runs, "P(rel=4)@3", weight=0.0)[1].any()
