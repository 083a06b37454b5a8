"""`learned-next`: which passages, why, and where the plan ends."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from learnable import WordEncoder, make_learnable

import trecexam
import trecexam.extensions.learn.learned_pool as learning
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.judging_plan.planning import JudgmentPlan


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> WordEncoder:
    words = WordEncoder()
    monkeypatch.setattr(learning, "TextEncoder", lambda *_: words)
    return words


@pytest.fixture
def learnable(tmp_path: Path, encoder: WordEncoder) -> Path:
    return make_learnable(tmp_path / "learnable")


def plan_of(root: Path, **options: object) -> JudgmentPlan:
    with trecexam.open_track(root) as track:
        return track.learn.next(**options)  # type: ignore[call-overload, no-any-return]


def judged(root: Path) -> set[tuple[str, str]]:
    return {(row[0], row[2]) for row in map(str.split, (root / "qrels.txt").read_text().splitlines())}


def test_the_most_retrieved_unjudged_passages_come_first_and_a_share_is_random(learnable: Path) -> None:
    plan = plan_of(learnable, per_query=3, random_share=0.2)
    assert Counter(row.query_id for row in plan.rows) == {f"q{at}": 3 for at in range(5)}
    assert Counter(row.why for row in plan.rows) == {"most retrieved": 12, "random": 3}
    pairs = {(row.query_id, row.doc_id) for row in plan.rows}
    assert len(pairs) == 15
    assert not pairs & judged(learnable)
    # By hand: what runs have highest and most often, of those without a judgment.
    weights: Counter[tuple[str, str]] = Counter()
    runs: Counter[tuple[str, str]] = Counter()
    for path in (learnable / "runs").iterdir():
        for line in path.read_text().splitlines():
            query_id, _, doc_id, rank = line.split()[:4]
            weights[query_id, doc_id] += 1 / math.log2(int(rank) + 1) if int(rank) <= 10 else 0.1  # type: ignore[assignment]
            runs[query_id, doc_id] += 1
    first = {}
    for row in plan_of(learnable, per_query=1, random_share=0).rows:
        left = {key for key in weights if key[0] == row.query_id} - judged(learnable)
        first[row.query_id] = max(left, key=lambda key: (round(weights[key], 9), key))
        assert weights[row.query_id, row.doc_id] == pytest.approx(weights[first[row.query_id]])
        assert row.runs == runs[row.query_id, row.doc_id]


def test_gains_are_those_of_learn_and_the_same_seed_gives_the_same_plan(learnable: Path) -> None:
    with trecexam.open_track(learnable) as track:
        learned = {row[:2]: row[2:4] for row in track.learn.labels().table.rows}
    plan = plan_of(learnable, random_share=1)
    assert plan.n_learned > 30
    for row in plan.rows:
        assert (row.gain, row.sd) == pytest.approx(learned[row.query_id, row.doc_id])
    assert plan == plan_of(learnable, random_share=1)
    assert plan.rows != plan_of(learnable, random_share=1, seed=1).rows


@pytest.mark.parametrize("qrels", [None, "q0 0 q0-d01 1\n"])
def test_where_nothing_can_be_learned_the_plan_is_by_the_runs_alone_and_says_so(
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
    assert "nothing is learned" in err
    # Nothing is encoded for nothing.
    assert bool(encoder.encoded) == bool(qrels)
    # No posterior says when to stop.
    assert len(plan_of(learnable, budget=7, stop_below=0.9).rows) == 7


def test_a_budget_is_used_up_unless_the_leaderboard_is_expected_to_stay_as_it_is(learnable: Path) -> None:
    whole = plan_of(learnable, budget=12, stop_below=0)
    assert len(whole.rows) == 12
    assert "the budget of 12 judgments is used up" in whole.stopped
    assert len(whole.changes) == 3
    assert all(0 <= change <= 2 for change in whole.changes)
    # A round is a passage of each query, and the last is as long as the budget lets it be.
    assert [row.query_id for row in whole.rows] == [f"q{at}" for at in (0, 1, 2, 3, 4) * 2] + ["q0", "q1"]
    stop_below = whole.changes[0] + 1e-9
    stopped = plan_of(learnable, budget=12, stop_below=stop_below)
    assert stopped.rows == ()
    assert "stopped after 0 of 12" in stopped.stopped
    assert stopped.changes == whole.changes[:1]
    # Fewer judgments are the beginning of more.
    assert whole.rows[:7] == plan_of(learnable, budget=7, stop_below=0).rows
    every = plan_of(learnable, budget=10_000, stop_below=0)
    assert len(every.rows) == every.candidates
    assert every.stopped == "no other passage is left to judge"


def test_what_people_rated_as_a_whole_is_judged_and_learned_from(learnable: Path) -> None:
    before = plan_of(learnable)
    rated = before.rows[0]
    with trecexam.open_track(learnable) as track:
        track.override(rated.query_id, rated.doc_id, 5, who="Ann", why="because")
    after = plan_of(learnable)
    assert after.n_learned == before.n_learned + 1
    assert (rated.query_id, rated.doc_id) not in {(row.query_id, row.doc_id) for row in after.rows}
    assert any("1 unjudged passage that people rated as a whole" in note for note in after.notes)
    # The command that writes labels keeps to the official ones.
    with trecexam.open_track(learnable) as track:
        assert track.learn.labels().identity["judgments"]["count"] == before.n_learned


def test_people_alone_are_learned_from_on_their_own_scale(learnable: Path) -> None:
    (learnable / "qrels.txt").unlink()
    with trecexam.open_track(learnable) as track:
        for doc_id, rating in (("q1-d00", 5), ("q1-d03", 1)):
            track.override("q1", doc_id, rating, who="Ann", why="because")
    plan = plan_of(learnable, per_query=1)
    assert plan.n_learned == 2
    assert all(row.gain is not None and 1 <= row.gain <= 5 for row in plan.rows)


def test_the_command_says_as_json_why_it_stopped(learnable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_of(learnable, budget=8, stop_below=0).facts["planned"] == 8
    assert run(["learned-next", str(learnable), "--budget", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    assert value["planned"] == len(value["judgments"]) == 1
    assert value["stopped"]
    assert value["stopped"] in err
    assert {row["why"] for row in value["judgments"]} <= {"most retrieved", "random"}
    assert value["judgments"][0]["text"].split()


def test_with_a_budget_passages_of_each_query_are_the_most(learnable: Path) -> None:
    plan = plan_of(learnable, per_query=1, budget=1000, stop_below=0)
    assert [row.query_id for row in plan.rows] == [
        row.query_id for row in plan_of(learnable, per_query=1).rows
    ]
    assert plan.stopped.startswith("1 passage of each query")
    assert len(plan_of(learnable, per_query=3, budget=2, stop_below=0).rows) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"per_query": 0},
        {"random_share": 1.5},
        {"seed": -1},
        {"query_ids": ["q9"]},
    ],
)
def test_what_makes_no_plan_is_an_error_of_one_line(learnable: Path, options: dict[str, object]) -> None:
    with pytest.raises(TrecexamError) as error:
        plan_of(learnable, **options)
    assert "\n" not in str(error.value)
