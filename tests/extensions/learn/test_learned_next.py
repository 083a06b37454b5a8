"""`learned-next`: the suggested passages, their order and reasons."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.settling import standing
from trecexam.extensions.learn.judging_order import JudgmentPlan
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.line.loader import opened


def plan_of(root: Path, **options: object) -> JudgmentPlan:
    with trecexam.open_track(root) as track:
        return track.learn.next(**options)  # type: ignore[call-overload, no-any-return]


def judged(root: Path) -> set[tuple[str, str]]:
    return {(row[0], row[2]) for row in map(str.split, (root / "qrels.txt").read_text().splitlines())}


def pairs(plan: JudgmentPlan) -> list[tuple[str, str]]:
    return [(row.query_id, row.doc_id) for row in plan.rows]


def test_the_most_retrieved_unjudged_passages_come_first_and_a_tenth_is_random(tmp_path: Path) -> None:
    root = make_learnable(tmp_path / "track", queries=10, docs=20)
    plan = plan_of(root, per_query=4)
    assert Counter(row.query_id for row in plan.rows) == {f"q{at}": 4 for at in range(10)}
    assert Counter(row.why for row in plan.rows) == {"most retrieved": 36, "random": 4}
    assert len(set(pairs(plan))) == 40
    assert not set(pairs(plan)) & judged(root)
    # By hand: unjudged passages that runs rank highest and most often.
    weights: Counter[tuple[str, str]] = Counter()
    runs: Counter[tuple[str, str]] = Counter()
    for path in (root / "runs").iterdir():
        for line in path.read_text().splitlines():
            query_id, _, doc_id, rank = line.split()[:4]
            weights[query_id, doc_id] += 1 / math.log2(int(rank) + 1) if int(rank) <= 10 else 0.1  # type: ignore[assignment]
            runs[query_id, doc_id] += 1
    left = set(weights) - judged(root)
    for row in plan.rows:
        key = row.query_id, row.doc_id
        if row.why == "most retrieved":
            of_query = [weights[other] for other in left if other[0] == row.query_id]
            assert weights[key] == pytest.approx(max(of_query))
        assert row.runs == runs[key]
        left.remove(key)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["retrieved", "mtc"])
def test_a_plan_of_fewer_rounds_is_a_prefix_of_a_longer_plan(learnable: Path, by: str) -> None:
    whole = plan_of(learnable, per_query=100, by=by)
    assert len(whole.rows) == whole.candidates
    assert [row.query_id for row in whole.rows[:5]] == ["q0", "q1", "q2", "q3", "q4"]
    for n in (1, 2, 4):
        assert plan_of(learnable, per_query=n, by=by).rows == whole.rows[: 5 * n]
    for budget in (1, 7, 13):
        assert plan_of(learnable, budget=budget, by=by).rows == whole.rows[:budget]
    assert len(plan_of(learnable, by=by).rows) == min(25, whole.candidates)
    assert len(plan_of(learnable, per_query=1, budget=1000, by=by).rows) == 5
    assert len(plan_of(learnable, per_query=3, budget=2, by=by).rows) == 2


def test_gains_equal_those_of_learn_and_the_seed_determines_the_plan(learnable: Path) -> None:
    with trecexam.open_track(learnable) as track:
        learned = {row[:2]: row[2:4] for row in track.learn.labels().table.rows}
    plan = plan_of(learnable)
    assert plan.n_learned > 30
    for row in plan.rows:
        assert (row.gain, row.sd) == pytest.approx(learned[row.query_id, row.doc_id], abs=0.01)
    planned = [(row.query_id, row.doc_id) for row in plan.rows]
    assert planned == [(row.query_id, row.doc_id) for row in plan_of(learnable).rows]
    assert planned != [(row.query_id, row.doc_id) for row in plan_of(learnable, seed=1).rows]


def test_minimal_test_collections_choose_what_tells_most_about_all_pairs(learnable: Path) -> None:
    with opened(learnable) as loader:
        queries = gather_data(loader.load(), encoder=WordEncoder()).queries
    known = standing(fit(queries), queries, 10)
    gains = known.gains(list(itertools.combinations(range(4), 2)))
    plan = plan_of(learnable, per_query=3, by="mtc")
    assert {row.why for row in plan.rows} == {"tells most"}
    for at, query in enumerate(queries):
        best = sorted(np.flatnonzero(~query.judged), key=lambda row, at=at: -gains[at][row])[:3]
        planned = [row.doc_id for row in plan.rows if row.query_id == query.query_id]
        assert planned == [query.doc_ids[row] for row in best]


@pytest.mark.parametrize(
    ("qrels", "why"),
    [
        (None, "nothing is judged yet"),
        ("q0 0 q0-d01 1\n", "the only judgment is 1"),
        ("q0 0 q0-d01 1\nq0 0 q0-d02 0\n", "the track has 2 for 5 queries"),
    ],
)
def test_minimal_test_collections_need_a_judgment_of_each_query_on_average(
    learnable: Path, capsys: pytest.CaptureFixture[str], qrels: str | None, why: str
) -> None:
    (learnable / "qrels.txt").unlink()
    if qrels:
        (learnable / "qrels.txt").write_text(qrels)
    assert run(["learned-next", str(learnable), "--by", "mtc"]) == 2
    error = capsys.readouterr().err
    assert "'mtc'" in error
    assert why in error
    assert run(["learned-next", str(learnable)]) == 0


def test_minimal_test_collections_separate_runs(learnable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "bcd":
        (learnable / "runs" / f"{name}.run").unlink()
    assert run(["learned-next", str(learnable), "--by", "mtc"]) == 2
    assert "the track needs two runs or more" in capsys.readouterr().err


@pytest.mark.parametrize("qrels", [None, "q0 0 q0-d01 1\n"])
def test_if_nothing_can_be_learned_the_plan_uses_only_the_runs_with_a_note(
    learnable: Path, encoder: WordEncoder, capsys: pytest.CaptureFixture[str], qrels: str | None
) -> None:
    (learnable / "qrels.txt").unlink()
    if qrels:
        (learnable / "qrels.txt").write_text(qrels)
    assert run(["learned-next", str(learnable), "--per-query", "2"]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
    assert len(rows) == 10
    assert {(row["gain"], row["sd"]) for row in rows} == {("", "")}
    assert ("nothing to learn: the only judgment is 1" if qrels else "nothing is judged yet") in err
    assert "gains are learned" not in err
    # Nothing is encoded without need.
    assert bool(encoder.encoded) == bool(qrels)


def test_passages_rated_as_a_whole_count_as_judged_and_are_learned_from(learnable: Path) -> None:
    before = plan_of(learnable)
    rated = before.rows[0]
    with trecexam.open_track(learnable) as track:
        track.override(rated.query_id, rated.doc_id, 1, who="Ann", why="because")
    after = plan_of(learnable)
    assert after.n_learned == before.n_learned + 1
    assert (rated.query_id, rated.doc_id) not in pairs(after)
    assert any("1 unjudged passage that people rated as a whole" in note for note in after.notes)
    with trecexam.open_track(learnable) as track:
        labels = track.learn.labels()
    assert labels.identity["judgments"]["count"] == before.n_learned + 1
    assert {row[4:] for row in labels.rows if row[:2] == (rated.query_id, rated.doc_id)} == {(1, "yes")}
    assert any("1 passage judged by people of this track (Ann 1)" in note for note in labels.notes)
    official = (learnable / "qrels.txt").read_bytes()
    assert labels.qrels.startswith(official + f"{rated.query_id} 0 {rated.doc_id} 1\n".encode())


def test_ratings_by_people_alone_are_learned_from_on_their_own_scale(learnable: Path) -> None:
    (learnable / "qrels.txt").unlink()
    with trecexam.open_track(learnable) as track:
        for doc_id, rating in (("q1-d00", 5), ("q1-d03", 1)):
            track.override("q1", doc_id, rating, who="Ann", why="because")
    plan = plan_of(learnable, per_query=1)
    assert plan.n_learned == 2
    assert all(row.gain is not None and 0 <= row.gain <= 5 for row in plan.rows)


def test_the_json_output_has_the_size_of_the_plan(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learned-next", str(learnable), "--budget", "3", "--json"]) == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    assert value["planned"] == len(value["judgments"]) == len(value["texts"]) == 3
    assert value["candidates"] + value["judged"] == 70
    assert f"of 70 pooled passages {value['judged']} are judged; gains are learned from" in err
    assert "3 passages to judge" in err
    assert {row["why"] for row in value["judgments"]} <= {"most retrieved", "random"}
    assert value["judgments"][0]["text"].split()


def test_if_all_is_judged_the_plan_is_empty(learnable: Path) -> None:
    plan = plan_of(learnable, per_query=100)
    with (learnable / "qrels.txt").open("a") as qrels:
        qrels.writelines(f"{query} 0 {doc} 1\n" for query, doc in pairs(plan))
    for by in ("retrieved", "mtc"):
        after = plan_of(learnable, by=by)
        assert after.rows == ()
        assert "no passage is left to judge" in after.notes


def test_only_the_requested_queries_are_planned(learnable: Path) -> None:
    plan = plan_of(learnable, query_ids=["q3", "q1"], per_query=2)
    assert [row.query_id for row in plan.rows] == ["q1", "q3", "q1", "q3"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"per_query": 0}, "per_query = 0: at least 1"),
        ({"budget": 0}, "budget = 0: at least 1"),
        ({"seed": -1}, "seed = -1: at least 0"),
        ({"query_ids": ["q9"]}, "no query 'q9'"),
        ({"by": "cosine"}, "by = 'cosine': retrieved or mtc"),
    ],
)
def test_an_invalid_plan_request_is_a_one_line_error(
    learnable: Path, options: dict[str, object], why: str
) -> None:
    with pytest.raises(TrecexamError) as error:
        plan_of(learnable, **options)
    assert why in str(error.value)
    assert "\n" not in str(error.value)
