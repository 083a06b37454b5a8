"""`trecexam representative`: a few queries that order the runs as all queries do."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau
from support import RECORDED, make_small_track, record_grades, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.disagreements.representative import choose_queries, split_half


def run_command(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run(["representative", *map(str, words)]) == status
    done = capsys.readouterr()
    return done.out, done.err


def rows(text: str) -> list[dict[str, str]]:
    header, *lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(header, line, strict=True)) for line in lines]


def tau(values: np.ndarray, queries: list[int]) -> float:
    """Kendall's tau of the board on these queries with that on all, by scipy; -1 if one ties all runs."""
    few, everything = values[:, queries].mean(axis=1).round(12), values.mean(axis=1).round(12)
    if len(set(few)) == 1 or len(set(everything)) == 1:
        return -1.0
    return float(kendalltau(few, everything).statistic)


@pytest.mark.parametrize("seed", range(8))
def test_each_query_is_the_best_one_to_add(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 5, (7, 9)) / 4 + np.arange(7)[:, None] / 9
    chosen, taus = choose_queries(values, 6)
    assert len(set(chosen)) == 6
    for n, (query, reached) in enumerate(zip(chosen, taus, strict=True)):
        before = list(chosen[:n])
        possible = {other: tau(values, [*before, other]) for other in range(9) if other not in before}
        best = max(possible.values())
        assert reached == pytest.approx(best)
        # The first of equally good ones.
        assert query == min(other for other, value in possible.items() if value == pytest.approx(best))
    chosen, taus = choose_queries(values, 50)
    assert sorted(chosen) == list(range(9))
    assert taus[-1] == pytest.approx(1)


def test_queries_that_tie_all_runs_are_chosen_last() -> None:
    values = np.array([[0.5, 0.1, 0.5], [0.5, 0.2, 0.5], [0.5, 0.3, 0.5]])
    chosen, taus = choose_queries(values, 3)
    assert chosen[0] == 1
    assert taus == [1, 1, 1]
    assert np.isnan(choose_queries(np.ones((3, 2)), 1)[1][0])


def test_queries_fitted_to_noise_on_one_half_do_not_help_on_the_other() -> None:
    rng = np.random.default_rng(4)
    noise = rng.random((30, 40))
    fitted, other, drawn = split_half(noise, 3)
    assert fitted.shape == other.shape == drawn.shape == (3,)
    assert (fitted - other > 0.2).all(), "choosing among 40 queries of noise fits the runs"
    assert (abs(other - drawn) < 0.1).all(), "and is worth no more than queries drawn at random"
    # If all queries order the runs alike, nothing is lost.
    alike = np.arange(10)[:, None] + rng.random((10, 6)) / 4
    for figures in split_half(alike, 2):
        assert figures == pytest.approx(1)
    again = split_half(noise, 3)
    assert [figures.tolist() for figures in again] == [fitted.tolist(), other.tolist(), drawn.tolist()]
    assert all(np.isnan(figures).all() for figures in split_half(noise[:3], 2))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six queries and nine runs; read-only."""
    root = make_small_track(tmp_path_factory.mktemp("many") / "track", queries=6)
    for number in range(3, 9):
        ranking = {f"q{q}": [f"q{q}-d{(d * 5 + number * q) % 12:02}" for d in range(12)] for q in range(1, 7)}
        write_run(root / "runs" / f"run{number}.run", ranking)
    record_grades(root)
    (root / "trecexam.toml").write_text(RECORDED)
    assert run(["watch", str(root), "--once"]) == 0
    return root


def test_the_table_shows_the_value_of_each_number_of_queries(
    many: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = run_command(capsys, many, "-m", "nDCG@8", "--most", "4")
    table = rows(out)
    with trecexam.open_track(many) as track:
        names = [row.run for row in track.leaderboard(["nDCG@8"]).rows]
        # The same by hand, from the values per query.
        capsys.readouterr()
        found = track.correlate.representative(["nDCG@8"], most=4)
    assert [row["query_id"] for row in table] == [row["query_id"] for row in found]
    assert [int(row["n_queries"]) for row in table] == [1, 2, 3, 4]
    assert {row["measure"] for row in table} == {"nDCG@8"}
    runs = map(str, (many / "runs").glob("*.run"))
    words = [str(many / "out" / "rubric.qrels"), *runs, "-m", "nDCG@8", "--per-query", "--json"]
    assert run(["evaluate", *words]) == 0
    by_query = json.loads(capsys.readouterr().out)["per_query"]
    queries = sorted({row["query_id"] for row in by_query})
    values = np.zeros((len(names), len(queries)))
    for row in by_query:
        values[names.index(row["run"]), queries.index(row["query_id"])] = row["value"]
    for n, row in enumerate(table, 1):
        chosen = [queries.index(each["query_id"]) for each in table[:n]]
        assert float(row["kendall_tau"]) == pytest.approx(tau(values, chosen), abs=1e-5)
        assert -1 <= float(row["kendall_tau.other_half"]) <= float(row["kendall_tau.chosen_half"]) <= 1
    assert "chosen to fit these 9 runs" in err
    assert "4 queries" in err


def test_official_measures_and_json_work(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run_command(capsys, many, "-m", "P@5", "--official-measure", "nDCG@10", "--json", "--most", "2")
    table = json.loads(out)["queries"]
    assert [(row["measure"], row["n_queries"]) for row in table] == [
        ("P@5", 1), ("P@5", 2), ("nDCG@10 (official)", 1), ("nDCG@10 (official)", 2),
    ]  # fmt: skip


def test_official_judgments_are_not_needed_and_halves_need_more_than_three_runs(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (graded / "qrels.txt").unlink()
    out, err = run_command(capsys, graded)
    table = rows(out)
    assert [row["n_queries"] for row in table] == ["1", "2", "3"]
    assert {row["kendall_tau.other_half"] for row in table} == {""}
    assert "too few runs" in err
    for path in (graded / "runs").glob("*.run"):
        path.unlink()
    assert "no runs to compare yet" in run_command(capsys, graded, status=2)[1]


def test_all_halves_differ() -> None:
    from trecexam.extensions.disagreements.representative import halves

    parts = list(itertools.islice(halves(9, 20), 40))
    assert len(parts) == 40
    for chosen, other in parts:
        assert sorted([*chosen, *other]) == list(range(9))
        assert {len(chosen), len(other)} == {4, 5}
