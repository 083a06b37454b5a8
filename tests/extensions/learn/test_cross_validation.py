"""`cross-validate`: what is hidden, what it is compared with, and what is said of it."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable
from scipy.stats import kendalltau, rankdata
from scipy.stats import t as student
from sklearn.metrics import cohen_kappa_score

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.cross_validation import (
    CrossValidation,
    Estimate,
    Row,
    verdicts,
)
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.extensions.learn.splits import (
    half_of_teams,
    most_retrieved,
    queries_left_out,
    random_share,
    teams_left_out,
)
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> tuple[PooledQueryToLearn, ...]:
    root = make_learnable(tmp_path_factory.mktemp("validation") / "track", queries=6)
    with TrackLoader(TrackFolder.open(root)) as loader:
        return gather_data(loader.load(), encoder=WordEncoder()).queries


def naive_ndcg(ranking: list[float], best: list[float]) -> float:
    dcg = [sum(gain / math.log2(at + 2) for at, gain in enumerate(side[:10])) for side in (ranking, best)]
    return dcg[0] / dcg[1] if dcg[1] else 0.0


def naive_board(
    queries: tuple[PooledQueryToLearn, ...], gains: list[list[float]], left_out: Sequence[int] = ()
) -> np.ndarray:
    board = []
    gains = [of_query for at, of_query in enumerate(gains) if at not in left_out]
    queries = tuple(query for at, query in enumerate(queries) if at not in left_out)
    for of_run in range(len(queries[0].ranks)):
        values = []
        for query, of_query in zip(queries, gains, strict=True):
            ranking = [of_query[at] for at in query.ranks[of_run] if at >= 0 and not math.isnan(of_query[at])]
            best = sorted([g for g in of_query if not math.isnan(g)] + query.elsewhere.tolist(), reverse=True)
            values.append(naive_ndcg(ranking, best))
        board.append(sum(values) / len(values))
    return np.array(board)


def test_figures_of_a_split_are_what_a_naive_computation_gives(
    queries: tuple[PooledQueryToLearn, ...],
) -> None:
    split = most_retrieved([q.judgments for q in queries], [q.ranks for q in queries], 4)
    rows = {row.method: row for row in CrossValidation(queries, 2, resamples=50).rows(split)}
    hidden = split.repeats[0][0].hidden
    seen = [query.hiding(hide) for query, hide in zip(queries, hidden, strict=True)]
    fitted = fit([query.passages for query in seen])
    predictions = [predict(fitted, query.passages) for query in seen]
    official = naive_board(queries, [np.nan_to_num(q.judgments).tolist() for q in queries])
    gains = {
        "learned": [p.gains.tolist() for p in predictions],
        "unjudged = 0": [np.nan_to_num(q.judgments).tolist() for q in seen],
        "unjudged = 2": [np.nan_to_num(q.judgments, nan=2).tolist() for q in seen],
        "condensed": [q.judgments.tolist() for q in seen],
        "unhidden": [np.nan_to_num(q.judgments).tolist() for q in queries],
    }
    ranks = {True: np.argsort(np.argsort(-official))}
    for name in rows.keys() & gains:
        of_queries = gains[name]
        board = naive_board(queries, of_queries)
        assert rows[name].tau.value == pytest.approx(kendalltau(board, official).statistic)
        if len(set(np.round(board, 12))) == len(board):
            shift = np.abs(np.argsort(np.argsort(-board)) - ranks[True]).mean()
            assert rows[name].shift.value == pytest.approx(shift)
        # Four runs have four distinct values at most.
        assert math.isnan(rows[name].tau.low)
    judged = np.concatenate([q.judgments[hide] for q, hide in zip(queries, hidden, strict=True)])
    said = np.concatenate([p.labels[hide] for p, hide in zip(predictions, hidden, strict=True)])
    assert rows["learned"].kappa.value == pytest.approx(cohen_kappa_score(judged >= 2, said >= 2))
    assert rows["unjudged = 2"].kappa.value == 0
    assert math.isnan(rows["condensed"].kappa.value)
    best = max((name for name in rows if name != "learned"), key=lambda name: rows[name].tau.value)
    assert rows["learned"].gain.value == pytest.approx(rows["learned"].tau.value - rows[best].tau.value)
    # Two of the six queries are left out at a time: all 15 subsets, since there are fewer than 50.
    taus: dict[str, list[float]] = {"learned": [], best: []}
    shifts = []
    for left_out in itertools.combinations(range(6), 2):
        truth = naive_board(queries, gains["unhidden"], left_out)
        for name, of_subsets in taus.items():
            board = naive_board(queries, gains[name], left_out)
            of_subsets.append(kendalltau(np.round(board, 12), np.round(truth, 12)).statistic)
        board = naive_board(queries, gains["learned"], left_out)
        shifts.append(np.abs(rankdata(np.round(board, 12)) - rankdata(np.round(truth, 12))).mean())
    t = student.ppf(0.975, 5) * math.sqrt((6 - 2) / 2)
    for figure, of_subsets, lowest in (
        (rows["learned"].gain, np.subtract(taus["learned"], taus[best]), -2),
        (rows["learned"].shift, shifts, 0),
    ):
        half = t * np.std(of_subsets)
        assert half > 0
        assert figure.low == pytest.approx(max(lowest, figure.value - half))
        assert figure.high == pytest.approx(min(3, figure.value + half))


def test_fewer_than_five_queries_have_no_intervals_and_it_is_said(
    queries: tuple[PooledQueryToLearn, ...],
) -> None:
    few = queries[:4]
    split = most_retrieved([q.judgments for q in few], [q.ranks for q in few], 4)
    rows = CrossValidation(few, 2).rows(split)
    assert not math.isnan(rows[0].gain.value)
    assert math.isnan(rows[0].gain.low)
    assert math.isnan(rows[0].shift.low)
    assert "no interval from fewer than 5 queries" in next(verdicts(rows))


def test_a_query_that_is_left_out_is_predicted_without_its_own_judgments(
    queries: tuple[PooledQueryToLearn, ...],
) -> None:
    split = queries_left_out([q.judgments for q in queries], folds=6)
    rows = {row.method: row for row in CrossValidation(queries, 2, resamples=20).rows(split)}
    judged, said = [], []
    for at, query in enumerate(queries):
        others = [other.passages for number, other in enumerate(queries) if number != at]
        known = ~np.isnan(query.judgments)
        blank = query.hiding(known)
        said += (
            predict(fit([*others[:at], blank.passages, *others[at:]]), blank.passages).labels[known].tolist()
        )
        judged += query.judgments[known].tolist()
    naive = cohen_kappa_score(np.array(judged) >= 2, np.array(said) >= 2)
    assert rows["learned"].kappa.value == pytest.approx(naive)
    assert math.isnan(rows["unjudged = 0"].tau.value)


def test_the_most_retrieved_passages_are_those_with_the_greatest_sums(
    queries: tuple[PooledQueryToLearn, ...],
) -> None:
    split = most_retrieved([q.judgments for q in queries], [q.ranks for q in queries], 3)
    for query, hidden in zip(queries, split.repeats[0][0].hidden, strict=True):
        sums = Counter(dict.fromkeys(np.flatnonzero(~np.isnan(query.judgments)).tolist(), 0.0))
        for of_run in query.ranks:
            for rank, at in enumerate(of_run.tolist(), 1):
                if at in sums:
                    sums[at] += 1 / math.log2(rank + 1) if rank <= 10 else 0.1
        best = sorted(sums, key=lambda at: (-round(sums[at], 9), at))[:3]
        assert set(np.flatnonzero(hidden).tolist()) == set(sums) - set(best)


def test_of_a_team_what_it_alone_brought_in_is_hidden(queries: tuple[PooledQueryToLearn, ...]) -> None:
    teams = {"t": [0, 1], "b": [2], "c": [3]}
    split = teams_left_out([q.judgments for q in queries], [q.ranks for q in queries], teams)
    for part in split.repeats[0]:
        own = list(part.runs or ())
        for query, hidden in zip(queries, part.hidden, strict=True):
            others = {
                at for number, row in enumerate(query.ranks.tolist()) if number not in own for at in row
            }
            alone = {at for number in own for at in query.ranks[number].tolist()} - others - {-1}
            assert set(np.flatnonzero(hidden).tolist()) == {
                at for at in alone if not math.isnan(query.judgments[at])
            }


def test_what_half_of_the_teams_did_not_bring_is_hidden_and_the_others_are_looked_at(
    queries: tuple[PooledQueryToLearn, ...],
) -> None:
    teams = {"t": [0, 1], "b": [2], "c": [3]}
    split = half_of_teams([q.judgments for q in queries], [q.ranks for q in queries], teams, 3, seed=2)
    assert len(split.repeats) == 3
    for ((part,),) in zip(split.repeats, strict=True):
        unseen = set(part.runs or ())
        assert unseen in ({0, 1}, {2}, {3})
        for query, hidden in zip(queries, part.hidden, strict=True):
            brought = {at for run in {0, 1, 2, 3} - unseen for at in query.ranks[run].tolist()}
            judged = np.flatnonzero(~np.isnan(query.judgments)).tolist()
            assert set(np.flatnonzero(hidden).tolist()) == set(judged) - brought


def test_a_share_is_known_and_each_repeat_draws_another(queries: tuple[PooledQueryToLearn, ...]) -> None:
    judgments = [q.judgments for q in queries]
    split = random_share(judgments, 0.5, 2, seed=1)
    first, second = (np.concatenate(repeat[0].hidden) for repeat in split.repeats)
    n = sum(int((~np.isnan(of_query)).sum()) for of_query in judgments)
    assert 0.3 * n < first.sum() < 0.7 * n
    assert (first != second).any()
    again = random_share(judgments, 0.5, 2, seed=1)
    assert (np.concatenate(again.repeats[0][0].hidden) == first).all()


def row(method: str, tau: float, gain: Estimate = Estimate()) -> Row:  # noqa: B008
    return Row("split", method, 1, 1, Estimate(), Estimate(tau), Estimate(), gain)


@pytest.mark.parametrize(
    ("tau", "low", "words"),
    [
        (0.9, 0.05, "are better than every other way: tau 0.900 against 0.800 of `condensed`"),
        (0.9, -0.05, "are not shown to be better than the best other way"),
        (0.8, -0.1, "are no better than the best other way"),
    ],
)
def test_where_it_is_no_better_than_another_way_it_is_said(tau: float, low: float, words: str) -> None:
    rows = [
        row("learned", tau, Estimate(tau - 0.8, low, 0.2)),
        row("condensed", 0.8),
        row("unjudged = 0", 0.7),
    ]
    (line,) = verdicts(rows)
    assert words in line


def test_where_all_other_ways_tie_the_runs_it_is_said() -> None:
    (line,) = verdicts([row("learned", 0.9), row("condensed", math.nan), row("unjudged = 0", math.nan)])
    assert line == "split: every other way ties all runs, learned labels do not: tau 0.900"


def test_a_threshold_that_no_judgment_reaches_is_named(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (learnable / "trecexam.toml").read_text()
    (learnable / "trecexam.toml").write_text(config.replace("min_relevant = 2", "min_relevant = 3"))
    assert run(["cross-validate", str(learnable), "--repeats", "1"]) == 0
    assert "no judgment reaches `min_relevant = 3`, so kappa says nothing" in capsys.readouterr().err


def test_judgments_outside_the_pool_of_a_query_that_is_left_out_are_hidden_too(
    queries: tuple[PooledQueryToLearn, ...],
) -> None:
    plain = [replace(query, elsewhere=np.empty(0)) for query in queries]
    learned = []
    for at, query in enumerate(plain):
        blank = query.hiding(~np.isnan(query.judgments))
        passages = [blank.passages if other == at else q.passages for other, q in enumerate(plain)]
        learned.append(predict(fit(passages), blank.passages).gains.tolist())
    board = naive_board(tuple(plain), learned)
    full = [np.nan_to_num(query.judgments).tolist() for query in plain]
    split = queries_left_out([query.judgments for query in plain], folds=6)
    for at in range(6):
        # With these ideals next to nothing but the ranking for this query counts.
        outside = [q if at == n else replace(q, elsewhere=np.full(20, 99.0)) for n, q in enumerate(plain)]
        tau = CrossValidation(outside, 2, resamples=0).rows(split)[0].tau.value
        assert tau == pytest.approx(kendalltau(board, naive_board(tuple(outside), full)).statistic)


def test_the_command_shows_every_way_with_intervals_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learnable = make_learnable(tmp_path / "six", queries=7, runs="abcdef")
    assert run(["cross-validate", str(learnable), "--json", "--known", "0.5", "--top", "3"]) == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    splits = list(dict.fromkeys(row["split"] for row in result["ways"]))
    assert splits[:3] == ["queries left out", "50% known at random", "3 most retrieved known"]
    methods = [row["method"] for row in result["ways"] if row["split"] == splits[1]]
    assert methods == ["learned", "unjudged = 0", "unjudged = 1", "unjudged = 2", "condensed"]
    learned = next(row for row in result["ways"] if row["split"] == splits[1])
    assert learned["tau.low"] <= learned["tau.high"]
    assert "tau has no interval" not in shown.err
    assert learned["kappa.low"] <= learned["kappa"] <= learned["kappa.high"]
    assert all(line in shown.err for line in result["notes"])
    assert sum("learned labels" in line for line in result["notes"]) >= len(splits)
    assert not (learnable / "out").exists()


def test_why_tau_has_no_interval_is_said(learnable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cross-validate", str(learnable), "--json", "--known", "0.5"]) == 0
    shown = capsys.readouterr()
    assert {row["tau.low"] for row in json.loads(shown.out)["ways"]} == {None}
    assert "tau has no interval" in shown.err
    assert "fewer than 5 distinct values on a side" in shown.err


def test_too_few_judgments_to_hide_any_are_named(learnable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in (learnable / "qrels.txt").read_text().splitlines()]
    two = [next(row for row in rows if row[3] == label) for label in "02"]
    (learnable / "qrels.txt").write_text("".join(" ".join(row) + "\n" for row in two))
    assert run(["cross-validate", str(learnable)]) == 2
    assert "too few judgments to validate on" in capsys.readouterr().err


def test_teams_are_left_out_as_the_file_says(learnable: Path, tmp_path: Path) -> None:
    teams = tmp_path / "teams.tsv"
    teams.write_text("nobody\tx\n")
    with (
        trecexam.open_track(learnable) as track,
        pytest.raises(trecexam.TrecexamError, match="none of its runs"),
    ):
        track.learn.cross_validate(teams=teams, resamples=10)


@pytest.mark.parametrize(("option", "value"), [("--repeats", "-1"), ("--known", "nan"), ("--known", "1")])
def test_numbers_that_are_none_are_refused_in_a_line(
    learnable: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    assert run(["cross-validate", str(learnable), option, value]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
