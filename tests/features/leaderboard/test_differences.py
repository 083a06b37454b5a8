"""`trecexam compare`, `track.compare` and out/differences.tsv, against scipy."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headings import score_columns
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support import RECORDED, make_small_track, printed, record_grades, tsv_rows, tsv_table, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.features.leaderboard.differences import compare, group_letters

Row = dict[str, str]


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine queries, six runs: one skips queries, two are equal. Read-only."""
    root = make_small_track(tmp_path_factory.mktemp("differences") / "track", queries=9)
    write_run(root / "runs" / "skips.run", {"q1": ["q1-d03", "q1-d00"], "q7": ["q7-d00"]})
    docs = [3, 1, 8, 4, 5, 2]
    for name in ("twin-a", "twin-b"):
        ranking = {f"q{q}": [f"q{q}-d{d:02}" for d in docs] for q in range(1, 10)}
        write_run(root / "runs" / f"{name}.run", ranking)
    return update(root)


def update(root: Path) -> Path:
    """The track with the grades of a `HashGrader`, and without a report."""
    record_grades(root)
    (root / "trecexam.toml").write_text(RECORDED)
    assert run(["watch", str(root), "--once"]) == 0
    return root


def per_query(root: Path, measure: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for row in tsv_rows(root / "out" / "per_query.tsv"):
        if row["measure"] == measure:
            values.setdefault(row["run"], []).append(float(row["value"]))
    return values


def holm_by_hand(p: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Each p times the number of p values that are not smaller; not less than those before it."""
    adjusted, least = {}, 0.0
    for place, pair in enumerate(sorted(p, key=lambda pair: p[pair])):
        least = max(least, min(1.0, p[pair] * (len(p) - place)))
        adjusted[pair] = least
    return adjusted


def shown_by(
    capsys: pytest.CaptureFixture[str], *words: object, command: str = "compare"
) -> tuple[list[str], list[Row]]:
    out = printed(capsys, command, *words).out
    return out.splitlines()[0].split("\t"), tsv_table(out)


def letters(text: str) -> set[str]:
    return set(re.findall(r"[a-zA-Z]\d*", text))


def test_differences_in_out_equal_paired_t_tests_of_all_pairs(track: Path) -> None:
    board = tsv_rows(track / "out" / "leaderboard.tsv")
    measure = score_columns(board[0])[0]
    values = per_query(track, measure)
    order = [row["run"] for row in board]
    pairs = list(itertools.combinations(order, 2))
    p = {
        (a, b): float(stats.ttest_rel(values[a], values[b]).pvalue)
        for a, b in pairs
        if values[a] != values[b]
    }
    assert len(p) == len(pairs) - 1 == 14, "the twins are equal"
    # The pair without a test counts among them.
    last = {("", ""): 2.0}
    holm = holm_by_hand(p | last)
    table = tsv_rows(track / "out" / "differences.tsv")
    assert list(table[0]) == [
        "run_a", "run_b", "measure", "difference", "effect_size", "t", "p", "p_corrected", "reject",
    ]  # fmt: skip
    assert [(row["run_a"], row["run_b"]) for row in table] == pairs
    for row, (a, b) in zip(table, pairs, strict=True):
        assert row["measure"] == measure
        differences = [x - y for x, y in zip(values[a], values[b], strict=True)]
        assert float(row["difference"]) == pytest.approx(sum(differences) / 9, abs=1e-6)
        assert float(row["difference"]) >= 0
        if (a, b) == ("twin-a", "twin-b"):
            assert [row[name] for name in ("effect_size", "t", "p", "p_corrected")] == [""] * 4
            assert row["reject"] == "False"
            continue
        expected = stats.ttest_rel(values[a], values[b])
        assert float(row["t"]) == pytest.approx(expected.statistic, abs=1e-5)
        assert float(row["effect_size"]) == pytest.approx(expected.statistic / 3, abs=1e-5)
        assert float(row["p"]) == pytest.approx(p[a, b], abs=1e-6)
        assert float(row["p_corrected"]) == pytest.approx(holm[a, b], abs=1e-5)
        assert row["reject"] == str(holm[a, b] < 0.05)
    assert {row["reject"] for row in table} == {"True", "False"}, "else the test says little"


def test_two_runs_share_a_letter_if_they_do_not_differ_significantly(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    different = {
        (row["run_a"], row["run_b"]): row["reject"] for row in tsv_rows(track / "out" / "differences.tsv")
    }
    groups = {row["run"]: row["group"] for row in tsv_rows(track / "out" / "groups.tsv")}
    for (a, b), rejected in different.items():
        assert letters(groups[a]).isdisjoint(letters(groups[b])) == (rejected == "True")
    plain_header, plain = shown_by(capsys, track, command="leaderboard")
    header, shown = shown_by(capsys, track)
    assert header == ["run", "group", *plain_header[1:]]
    assert {row["run"]: row.pop("group") for row in shown} == groups
    assert shown == plain


@pytest.mark.parametrize("test", ["t", "randomisation"])
def test_a_baseline_gives_the_columns_and_values_of_a_pyterrier_experiment(
    track: Path, capsys: pytest.CaptureFixture[str], test: str
) -> None:
    measures = score_columns(tsv_rows(track / "out" / "leaderboard.tsv")[0])[::2][:2]
    words = [word for name in measures for word in ("-m", name)]
    plain_header, plain = shown_by(capsys, track, *words, command="leaderboard")
    header, shown = shown_by(capsys, track, *words, "--baseline", "run1", "--test", test)
    names = ("difference", "effect size", "+", "-", "p-value", "reject", "p-value corrected")
    assert header == [*plain_header, *(f"{measure} {name}" for measure in measures for name in names)]
    assert [{name: row[name] for name in plain_header} for row in shown] == plain
    for measure in measures:
        values = per_query(track, measure)
        p = {}
        for name, of_run in values.items():
            sides = of_run, values["run1"]
            if name != "run1" and test == "t":
                p[name, "run1"] = float(stats.ttest_rel(*sides).pvalue)
            elif name != "run1":
                p[name, "run1"] = float(
                    stats.permutation_test(
                        sides, lambda a, b: sum(a) - sum(b), permutation_type="samples", vectorized=False
                    ).pvalue
                )
        holm = holm_by_hand(p)
        for row in shown:
            compared = [row[f"{measure} {name}"] for name in names]
            if row["run"] == "run1":
                assert compared == [""] * 7
                continue
            differences = [a - b for a, b in zip(values[row["run"]], values["run1"], strict=True)]
            corrected = holm[row["run"], "run1"]
            assert [float(compared[0]), float(compared[4]), float(compared[6])] == pytest.approx(
                [sum(differences) / 9, p[row["run"], "run1"], corrected], abs=1e-5
            )
            assert compared[2:4] == [
                str(sum(d > 0 for d in differences)),
                str(sum(d < 0 for d in differences)),
            ]
            assert compared[5] == str(corrected < 0.05)


def test_pairs_in_a_pipe_equal_the_file_in_out_with_more_on_request(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = score_columns(tsv_rows(track / "out" / "leaderboard.tsv")[0])[::2]
    capsys.readouterr()
    assert run(["compare", str(track), "--pairs", "-m", measures[0]]) == 0
    assert capsys.readouterr().out == (track / "out" / "differences.tsv").read_text()
    _, all_pairs = shown_by(capsys, track, "--pairs")
    assert [row["measure"] for row in all_pairs] == [name for name in measures for _ in range(15)]
    _, uncorrected = shown_by(capsys, track, "--pairs", "-m", measures[0], "--correction", "none")
    assert all(row["p"] == row["p_corrected"] for row in uncorrected)
    _, tenfold = shown_by(capsys, track, "--pairs", "-m", measures[0], "--correction", "bonferroni")
    for row in tenfold:
        if row["p"]:
            assert float(row["p_corrected"]) == pytest.approx(min(1, 15 * float(row["p"])), abs=1e-4)


@pytest.mark.parametrize("runs", [0, 1])
def test_a_track_of_one_run_or_none_has_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: int
) -> None:
    root = make_small_track(tmp_path / "track")
    for number in range(runs, 3):
        (root / "runs" / f"run{number}.run").unlink()
    update(root)
    assert tsv_rows(root / "out" / "differences.tsv") == []
    _, shown = shown_by(capsys, root)
    assert [row["group"] for row in shown] == ["a"] * runs
    here = "run0 is the only one" if runs else "there is none"
    assert run(["compare", str(root)]) == 0
    assert f"`compare` needs two runs with scores, and {here}: drop more into" in capsys.readouterr().err
    _, compared = shown_by(capsys, root, "--baseline", "run0") if runs else ([], [])
    assert len(compared) == runs
    assert {value for row in compared for name, value in row.items() if name.endswith("p-value")} <= {""}


def test_a_run_with_an_undefined_value_is_last_and_differs_from_no_run() -> None:
    values = np.array([[0.1, math.nan, 0.3, 0.2], [0.9, 0.8, 0.9, 1.0], [0.1, 0.2, 0.1, 0.1]])
    for permutations in (None, 100):
        compared = compare(
            "AP", ["broken", "good", "poor"], values, permutations=permutations, correction="none"
        )
        assert compared.runs == ("good", "poor", "broken")
        assert np.isnan(compared.p_corrected).tolist() == [False, True, True]
        assert not compared.reject[1:].any()
        assert letters(compared.groups["broken"]) >= letters(compared.groups["good"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"alpha": 1.0}, "alpha 1.0 is not"),
        ({"test": "z"}, "unknown test 'z'; there are t, randomisation"),
        ({"correction": "x"}, "unknown correction 'x'"),
        ({"permutations": 0}, "0 permutations"),
        ({"seed": 1.5}, "seed 1.5: give a whole number, 0 or more"),
    ],
)
def test_python_rejects_arguments_out_of_range(track: Path, arguments: dict[str, Any], reason: str) -> None:
    with trecexam.open_track(track) as opened, pytest.raises(ValueError, match=re.escape(reason)):
        opened.compare(**arguments)


# Letters of groups.


def matrix(n: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    different = np.zeros((n, n), bool)
    for a, b in pairs:
        different[a, b] = different[b, a] = True
    return different


@given(st.integers(0, 14).flatmap(lambda n: st.tuples(st.just(n), st.randoms(), st.floats(0, 1))))
def test_two_runs_share_a_letter_if_and_only_if_they_do_not_differ(drawn: tuple) -> None:
    n, random, share = drawn
    pairs = [pair for pair in itertools.combinations(range(n), 2) if random.random() < share]
    groups = group_letters(matrix(n, pairs))
    assert len(groups) == n
    assert all(groups)
    for a, b in itertools.combinations(range(n), 2):
        assert letters(groups[a]).isdisjoint(letters(groups[b])) == ((a, b) in pairs)
    # No group is redundant.
    for letter in set().union(*map(letters, groups)):
        members = [run for run in range(n) if letter in letters(groups[run])]
        others = [letters(groups[run]) - {letter} for run in members]
        assert not all(a & b for a, b in itertools.combinations_with_replacement(others, 2))
