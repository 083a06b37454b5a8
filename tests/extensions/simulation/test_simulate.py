"""`trecexam simulate`, and its arithmetic against hand and naive computations."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learnable import WordEncoder, make_learnable
from scipy import stats
from support import all_notes, labels_of, make_small_track, printed, tsv_table, write_run

import converters
import trecexam
import trecexam.extensions.learn.learned_pool as learning
from trecexam.extensions.simulation.arithmetic.simulation import Simulation
from trecexam.extensions.simulation.arithmetic.tables import (
    STEPS,
    draw_removed,
    left_out_tables,
    removal_table,
    unique_passages,
)
from trecexam.features.fill.records import Labels
from trecexam.results.table import Table, Value
from trecexam.scores.measures import measure

Capture = pytest.CaptureFixture[str]
Place = tuple[str, str]
Rankings = Mapping[str, Mapping[str, Sequence[str]]]
#: What is left out -> the options.
OPTIONS = {"runs": (), "removal": ("--judgments", "--repeats", "2")}
BOTH = pytest.mark.parametrize("kind", list(OPTIONS))


def simulated(capsys: Capture, kind: str, *arguments: str | Path) -> tuple[list[dict[str, str]], str]:
    """The rows and all notes."""
    rows = tsv_table(printed(capsys, "simulate", *OPTIONS[kind], *arguments).out)
    return rows, all_notes(capsys, "simulate", *OPTIONS[kind], *arguments)


def with_runs(graded: Path, **rankings: dict[str, list[str]]) -> Path:
    """The track with only these runs."""
    for path in (graded / "runs").iterdir():
        path.unlink()
    for name, ranking in rankings.items():
        write_run(graded / "runs" / f"{name}.run", ranking)
    return graded


@pytest.fixture
def disjoint_runs(graded: Path) -> Path:
    """Runs with passages of their own; all pooled ones have grades, as in the old pool."""
    return with_runs(
        graded,
        a={"q1": ["q1-d00", "q1-d01", "q1-d02"], "q2": ["q2-d01", "q2-d03"]},
        b={"q1": ["q1-d00", "q1-d03"], "q3": ["q3-d05", "q3-d06"]},
        c={"q1": ["q1-d04"], "q2": ["q2-d01", "q2-d02", "q2-d05"], "q3": ["q3-d05", "q3-d01"]},
    )


def test_leave_one_out_has_one_row_per_measure_and_run(disjoint_runs: Path, capsys: Capture) -> None:
    rows, said = simulated(
        capsys, "runs", disjoint_runs, "--official-measure", "nDCG@10", "--official-measure", "P@2"
    )
    assert list(rows[0]) == [
        *("official_measure", "run", "left_out", "unique", "relevant", "filled"),
        *("rank.full", "rank.holes", "rank.fill", "mean.full", "mean.holes", "mean.fill"),
        *("tau.holes", "tau.fill", "map", "unfitted"),
    ]
    assert [row["official_measure"] for row in rows] == ["nDCG@10"] * 3 + ["P@2"] * 3
    assert {row["run"]: row["unique"] for row in rows} == {"a": "3", "b": "2", "c": "4"}
    assert all(row["unique"] == row["filled"] for row in rows)
    board = tsv_table(printed(capsys, "leaderboard", disjoint_runs, "--official", "-m", "nDCG@10").out)
    full = [(row["rank.full"], row["run"], row["mean.full"]) for row in rows[:3]]
    assert full == [(str(rank), row["run"], row["nDCG@10"]) for rank, row in enumerate(board, 1)]
    assert "3 of 3 runs have judged passages that no other has in its first 8 ranks" in said
    assert (
        "nDCG@10: a run whose own judgments are missing moves by 1.00 ranks on average, 2 at most (a); "
        "filled, by 1.33 ranks on average, 2 at most (a)\n"
    ) in said
    assert (
        "labels are mapped: fitted in each step on the judgments that remain; on all of them: fitted" in said
    )


def test_removal_has_one_row_per_measure_and_share(disjoint_runs: Path, capsys: Capture) -> None:
    rows, _ = simulated(capsys, "removal", disjoint_runs, "--repeats", "3")
    assert [row["removed"] for row in rows] == [str(share) for share in range(10, 100, 10)] * 3
    assert list(rows[0])[:8] == [
        *("official_measure", "removed", "n_removed", "filled"),
        *("tau.holes", "tau.holes.low", "tau.holes.high", "tau_ap.holes"),
    ]
    for row in rows:
        assert row["n_removed"] == str(round(36 * int(row["removed"]) / 100))
        for how in ("holes", "fill"):
            if row[f"tau.{how}"]:
                low, tau, high = (float(row[f"tau.{how}{end}"]) for end in (".low", "", ".high"))
                assert low <= tau <= high
    with trecexam.open_track(disjoint_runs) as track:
        drawn = [list(track.simulate(judgments=True, repeats=3, seed=seed).table) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_team_is_left_out_as_a_whole(disjoint_runs: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "teams.tsv").write_text("a\tT\n\nc\tT\nnot-here\tU\n")
    rows, said = simulated(
        capsys, "runs", disjoint_runs, "--teams", tmp_path / "teams.tsv", "--official-measure", "P@2"
    )
    assert {row["run"]: row["left_out"] for row in rows} == {"a": "T", "b": "b", "c": "T"}
    # q2-d01 is only in a and c.
    assert {row["run"]: row["unique"] for row in rows} == {"a": "8", "b": "2", "c": "8"}
    assert "1 of 3 runs have no team in" in said
    assert "2 of 2 teams have judged passages" in said


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("a T\n", "teams.tsv:1: not `run<TAB>team`"),
        ("a\tT\na\tU\n", "teams.tsv:2: run 'a' is of team 'T' already"),
        ("\n", "teams.tsv: no teams in it"),
        ("z\tT\n", "teams.tsv: none of its 1 run ('z', ...) is on the leaderboard"),
        (None, "teams.tsv: no such file"),
        ("--official-measure nDGC@10", "did you mean nDCG"),
        ("--official-measure alpha_nDCG@10", "alpha_nDCG@10 needs subtopics"),
        ("--official-measure Cover@10", "needs ratings of a test bank's items"),
        ("--by people", "--by people is unknown: give learned, condensed, label or label:N"),
    ],
)
def test_invalid_input_is_a_one_line_error(
    disjoint_runs: Path, tmp_path: Path, capsys: Capture, given: str | None, why: str
) -> None:
    options: list[str | Path] = ["--teams", tmp_path / "teams.tsv"]
    if given is not None and given.startswith("--"):
        options = [*given.split()]
    elif given is not None:
        (tmp_path / "teams.tsv").write_text(given)
    out, err = printed(capsys, "simulate", disjoint_runs, *options, status=2)
    assert (out, err.count("\n")) == ("", 1)
    assert why in err


@BOTH
def test_no_runs_one_run_or_tied_runs_have_no_tau(graded: Path, capsys: Capture, kind: str) -> None:
    rows, said = simulated(capsys, kind, with_runs(graded))
    assert f"no runs yet: drop some into {graded / 'runs'}" in said
    assert (kind == "runs") == (rows == [])
    for names in ("a", "ab"):
        runs = {name: {"q1": ["q1-d00", "q1-d01"]} for name in names}
        rows, said = simulated(capsys, kind, with_runs(graded, **runs))
        assert ("no tau: it needs two runs or more" in said) == (names == "a")
        assert {row["tau.holes"] for row in rows} == {row["tau.fill"] for row in rows} == {""}


@BOTH
def test_if_no_judged_passage_has_a_grade_all_stay_holes(tmp_path: Path, capsys: Capture, kind: str) -> None:
    root = make_small_track(tmp_path / "track", queries=1)
    rows, said = simulated(capsys, kind, root)
    assert "no passage has both an automatic and an official label" in said
    assert "0 of 12 judged passages have an automatic label" in said
    assert "steps no rule could be fitted on the remaining judgments" in said
    assert {float(row["filled"]) for row in rows} == {0.0}
    assert all(row["tau.holes"] == row["tau.fill"] for row in rows)


@BOTH
def test_judgments_of_other_queries_count_with_a_note(
    disjoint_runs: Path, capsys: Capture, kind: str
) -> None:
    with (disjoint_runs / "qrels.txt").open("a") as file:
        file.write("q8 0 d 1\nq9 0 d 0\n")
    _, said = simulated(capsys, kind, disjoint_runs)
    assert "2 of 5 judged queries are not among the grader's queries: they count in all means" in said
    (disjoint_runs / "qrels.txt").write_text("q8 0 d 1\nq9 0 d 0\n")
    _, said = simulated(capsys, kind, disjoint_runs)
    assert "are query ids written in another form?" in said


@BOTH
def test_simulating_writes_nothing(disjoint_runs: Path, capsys: Capture, kind: str) -> None:
    def state() -> dict[Path, bytes]:
        files = (path for path in disjoint_runs.rglob("*") if path.is_file() and ".sqlite" not in path.name)
        return {path: path.read_bytes() for path in files}

    before = state()
    simulated(capsys, kind, disjoint_runs)
    assert state() == before


# Other ways to treat dropped judgments: labels learned anew, a constant label, condensed lists.


@pytest.fixture(scope="module")
def learnable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_learnable(tmp_path_factory.mktemp("simulate") / "track", queries=4, docs=20)


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "track_encoder", lambda track: WordEncoder())


def tables(capsys: Capture, *arguments: str | Path) -> dict[str, Any]:
    out = printed(capsys, "simulate", *arguments, "--official-measure", "nDCG@10", "--json").out
    return {name: rows for name, rows in json.loads(out).items() if name in ("runs", "shifts", "removal")}


def test_passages_found_by_only_one_run_are_predicted_from_the_rest(
    learnable: Path, tmp_path: Path, capsys: Capture
) -> None:
    official = labels_of(learnable / "qrels.txt")
    queries = {q for q, _ in official}
    ranked: dict[str, dict[str, list[str]]] = {name: {} for name in "abcd"}
    for name, of_run in ranked.items():
        for row in converters.read(learnable / "runs" / f"{name}.run", "run"):
            of_run.setdefault(row.query_id, []).append(row.doc_id)
    full = naive_means(official, "nDCG@10", queries, ranked)
    ways = ("learned", "label", "condensed")
    options = [word for way in ways for word in ("--by", way)]
    rows = {row["run"]: row for row in tables(capsys, learnable, *options)["runs"]}
    for index, name in enumerate("ab"):
        others = {(q, d) for other in ranked if other != name for q, ds in ranked[other].items() for d in ds}
        dropped = {(q, d) for q, ds in ranked[name].items() for d in ds} & official.keys() - others
        assert dropped
        remain = {place: label for place, label in official.items() if place not in dropped}
        copy = Path(shutil.copytree(learnable, tmp_path / name))
        (copy / "qrels.txt").write_text("".join(f"{q} 0 {d} {label}\n" for (q, d), label in remain.items()))
        with trecexam.open_track(copy) as track:
            learned = {(row[0], row[1]): row[4] for row in track.learn.labels().table.rows}
        condensed = {
            run: {q: [d for d in docs if (q, d) not in dropped] for q, docs in by_query.items()}
            for run, by_query in ranked.items()
        }
        boards = {
            "learned": naive_means(
                remain | {place: learned[place] for place in dropped}, "nDCG@10", queries, ranked
            ),
            "label:1": naive_means(remain | dict.fromkeys(dropped, 1), "nDCG@10", queries, ranked),
            "label:2": naive_means(remain | dict.fromkeys(dropped, 2), "nDCG@10", queries, ranked),
            "condensed": naive_means(remain, "nDCG@10", queries, condensed),
        }
        for way, means in boards.items():
            assert rows[name][f"mean.{way}"] == pytest.approx(means[index], abs=1e-6)
            assert rows[name][f"rank.{way}"] == 1 + (means > means[index] + 1e-9).sum()
            tau = stats.kendalltau(full, means).statistic
            assert rows[name][f"tau.{way}"] == pytest.approx(tau, abs=1e-6)


def test_without_other_methods_the_tables_are_unchanged(learnable: Path, capsys: Capture) -> None:
    for options in ((), ("--judgments", "--repeats", "2")):
        more = tables(capsys, learnable, *options, "--by", "label:1")
        for name, rows in tables(capsys, learnable, *options).items():
            same = [row for row in more[name] if row.get("judgments") != "label:1"]
            assert [{column: row[column] for column in rows[0]} for row in same] == rows


def test_steps_with_too_few_judgments_to_learn_from_are_counted(
    learnable: Path, tmp_path: Path, capsys: Capture
) -> None:
    copy = Path(shutil.copytree(learnable, tmp_path / "few"))
    (copy / "qrels.txt").write_text("q0 0 q0-d01 0\nq0 0 q0-d02 2\n")
    err = printed(capsys, "simulate", "--judgments", copy, "--repeats", "1", "--by", "learned").err
    assert "steps too few judgments remained to learn from; `learned` leaves holes there" in err


# The arithmetic.


#: a is good, b is less good, c found a relevant passage that no other run has, in each query.
RANKINGS = {
    "a": {"q1": ["r1", "r2"], "q2": ["r1", "n1"]},
    "b": {"q1": ["r1", "n1"], "q2": ["n1", "n2"]},
    "c": {"q1": ["r3", "n1"], "q2": ["r2", "n1"]},
}
OFFICIAL = {"q1": {"r1": 1, "r2": 1, "r3": 1, "n1": 0}, "q2": {"r1": 1, "r2": 1, "n1": 0, "n2": 0, "x": 1}}
#: Equal to the judgments except for q1's r2 and q2's r2; x is in no pool.
AUTOMATIC = {"q1": {"r1": 5, "r2": 0, "r3": 5, "n1": 0}, "q2": {"r1": 5, "r2": 1, "n1": 0, "n2": 0, "y": 5}}


def simulation(*measures: str, official: Labels = OFFICIAL) -> Simulation:
    parsed = [measure(name, official=True) for name in measures or ("P@2",)]
    return Simulation(RANKINGS, official, AUTOMATIC, parsed)


def left_out(depth: int) -> dict[str, Table]:
    one = simulation()
    outcomes = {run: one.drop(passages) for run, passages in unique_passages(one, depth, {}).items()}
    return left_out_tables(one, outcomes, {})


def by_run(table: Table) -> dict[str, dict[str, Value]]:
    return {str(row["run"]): row for row in table}


def standing(row: dict[str, Value], how: str) -> tuple[object, ...]:
    return tuple(row[f"{what}.{how}"] for what in ("rank", "mean", "tau"))


def naive_means(labels: Mapping[Place, int], name: str, queries: Iterable[str], rankings: Rankings) -> Any:
    """Computed by ir_measures, over all queries, for each run."""
    one, qrels = ir_measures.parse_measure(name), [ir_measures.Qrel(*key, n) for key, n in labels.items()]
    means = []
    for by_query in rankings.values():
        docs = [
            ir_measures.ScoredDoc(q, d, float(-rank))
            for q, ranking in by_query.items()
            for rank, d in enumerate(ranking)
        ]
        values = {m.query_id: m.value for m in ir_measures.iter_calc([one], qrels, docs)} if qrels else {}
        means.append(np.mean([values.get(q, 0.0) for q in queries]))
    return np.array(means).round(12)


def flat(labels: Labels) -> dict[Place, int]:
    return {(q, d): label for q, by in labels.items() for d, label in by.items()}


def test_leave_one_out_equals_a_hand_computation() -> None:
    rows = by_run(left_out(depth=2)["runs"])
    assert list(rows) == ["a", "c", "b"]
    # a alone has q1's r2 and q2's r1, both relevant: 0.25 remains, and r1 comes back.
    a = rows["a"]
    assert (a["left_out"], a["unique"], a["relevant"], a["filled"]) == ("a", 2, 2, 2)
    assert (a["rank.full"], a["mean.full"]) == (1, 0.75)
    assert standing(a, "holes") == (2, 0.25, pytest.approx(0.0))
    assert standing(a, "fill") == (1, 0.5, pytest.approx(stats.kendalltau([3, 1, 2], [2, 1, 2]).statistic))
    # c alone has r3 and r2: nothing remains, and r3 comes back, so that it ties with b.
    c = rows["c"]
    assert (c["unique"], c["relevant"], c["filled"]) == (2, 2, 2)
    assert (c["rank.full"], c["rank.holes"], c["rank.fill"]) == (2, 3, 2)
    assert (c["mean.full"], c["mean.holes"], c["mean.fill"]) == (0.5, 0.0, 0.25)
    # b alone has n2, which is not relevant: nothing moves.
    b = rows["b"]
    assert (b["unique"], b["relevant"], b["filled"]) == (1, 0, 1)
    assert standing(b, "holes") == standing(b, "fill") == (3, 0.25, 1.0)
    assert (b["rank.full"], b["mean.full"]) == (3, 0.25)


def test_the_summary_has_means_and_extremes_of_the_rows() -> None:
    tables = left_out(depth=2)
    (holes, fill), taus = tables["shifts"].rows, tables["runs"]["tau.holes"]
    assert holes == (
        *("P@2", "holes", pytest.approx(2 / 3), 1, "a", pytest.approx(1 / 3)),
        *(pytest.approx(sum(taus) / 3), min(taus)),
    )
    assert fill[:6] == ("P@2", "fill", 0, 0, "", pytest.approx(0.5 / 3))


def test_a_passage_below_the_depth_does_not_count_as_retrieved() -> None:
    rows = by_run(left_out(depth=1)["runs"])
    # In the first rank q1's r1 is a's and b's, q2's r1 a's alone, n1 b's alone, r3 and r2 c's alone.
    assert [rows[run]["unique"] for run in "abc"] == [1, 1, 2]


places = list(flat(OFFICIAL))


@given(st.lists(st.sampled_from(places), unique=True))
@settings(deadline=None)
def test_a_drop_equals_a_full_evaluation_of_all_queries(dropped: list[tuple[str, str]]) -> None:
    measures = ("nDCG@2", "AP", "P@2")
    outcome = simulation(*measures).drop(dropped)
    remain = {place: label for place, label in flat(OFFICIAL).items() if place not in dropped}
    automatic = {place: outcome.rule(n) for place, n in flat(AUTOMATIC).items() if place in dropped}
    assert outcome.filled == len(automatic)
    for index, name in enumerate(measures):
        for how, labels in (("holes", remain), ("fill", remain | automatic)):
            means = naive_means(labels, name, OFFICIAL, RANKINGS)
            assert outcome.boards[how][index] == pytest.approx(means)


@given(st.lists(st.sampled_from(places), unique=True, min_size=1), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_dropped_judgments_are_not_used(dropped: list[tuple[str, str]], rng: random.Random) -> None:
    other = {q: dict(by) for q, by in OFFICIAL.items()}
    for q, d in dropped:
        other[q][d] = rng.randrange(4)
    first, second = (simulation("nDCG@2", "P@2", official=by).drop(dropped) for by in (OFFICIAL, other))
    assert first.rule == second.rule
    assert all((first.boards[how] == second.boards[how]).all() for how in ("holes", "fill"))


def test_removal_equals_a_naive_computation() -> None:
    rng = random.Random(5)
    docs = [f"d{n}" for n in range(12)]
    queries = ["q1", "q2", "q3"]
    official = {q: {d: rng.randrange(3) for d in docs} for q in queries}
    automatic = {q: {d: 2 * official[q][d] + rng.randrange(2) for d in docs[:9]} for q in queries}
    rankings = {run: {q: rng.sample(docs, 6) for q in queries} for run in "abcde"}
    one = Simulation(rankings, official, automatic, [measure("nDCG@5")])
    drawn = draw_removed(official, repeats=4, seed=9)
    rows = list(removal_table(one, {key: one.drop(gone) for key, gone in drawn.items()}))
    assert [row["removed"] for row in rows] == list(STEPS)
    assert [row["n_removed"] for row in rows] == [round(36 * step / 100) for step in STEPS]
    for repeat, (less, more) in itertools.product(range(4), itertools.pairwise(STEPS)):
        assert set(drawn[repeat, less]) < set(drawn[repeat, more])
    assert len({frozenset(drawn[repeat, 90]) for repeat in range(4)}) == 4
    full = naive_means(flat(official), "nDCG@5", queries, rankings)
    for step, row in zip(STEPS, rows, strict=True):
        taus, differences, filled = [], [], []
        for gone in (drawn[repeat, step] for repeat in range(4)):
            remain = {place: label for place, label in flat(official).items() if place not in gone}
            rule, _ = one.rule(gone)
            mapped = {place: rule(label) for place, label in flat(automatic).items() if place in gone}
            means = naive_means(remain | mapped, "nDCG@5", queries, rankings)
            filled.append(len(mapped))
            taus.append(stats.kendalltau(full, means).statistic)
            differences.append(np.abs(means - full).mean())
        assert row["filled"] == pytest.approx(np.mean(filled))
        assert row["tau.fill"] == pytest.approx(np.mean(taus))
        half = stats.t.ppf(0.975, len(taus) - 1) * np.std(taus, ddof=1) * math.sqrt(1 + 1 / len(taus))
        assert row["tau.fill.low"] == pytest.approx(max(-1, np.mean(taus) - half))
        assert row["tau.fill.high"] == pytest.approx(min(1, np.mean(taus) + half))
        assert row["difference.fill"] == pytest.approx(np.mean(differences))
