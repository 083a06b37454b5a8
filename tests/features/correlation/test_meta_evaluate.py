"""`trecexam correlate` against a leaderboard of values equals AutoJudge's `meta-evaluate`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from nltk_folder import with_nltk_data
from support import write_run

import trecexam
from trecexam.cli.main import run

QUERIES = ("q1", "q2", "q3")


@pytest.fixture
def many(graded: Path) -> Path:
    """The graded track with fourteen runs, with two pairs of equal ones."""
    rng = random.Random(7)
    for number in range(11):
        ranking = {q: rng.sample([f"{q}-d{d:02}" for d in range(12)], 8) for q in QUERIES}
        for name in ("", "-twin") if number in (3, 8) else ("",):
            write_run(graded / "runs" / f"more{number}{name}.run", ranking)
    return graded


@pytest.mark.parametrize("tied", [False, True])
def test_both_agree_on_every_coefficient(many: Path, tmp_path: Path, tied: bool) -> None:
    with with_nltk_data():
        evaluation = pytest.importorskip("autojudge_evaluate.evaluation")
    rng = random.Random(11)
    with trecexam.open_track(many) as track:
        names = [row.run for row in track.leaderboard().rows]
    lines = ["run_id\tquery_id\tmeasure\tvalue"]
    # The tenth run has no equal one, so that the ten best do not depend on the order of lines.
    levels = {name: (number // 3 if tied and number < 9 else number) for number, name in enumerate(names)}
    for measure in ("Truth", "Other"):
        worth = dict(zip(names, rng.sample(sorted(levels.values(), reverse=True), len(names)), strict=True))
        worth = levels if measure == "Truth" else worth
        for name in sorted(names):
            lines += [f"{name}\t{q}\t{measure}\t{worth[name] / 20}" for q in (*QUERIES, "all")]
    truth = tmp_path / "truth.txt"
    truth.write_text("\n".join(lines) + "\n")
    (many / "official_leaderboard.txt").write_text(truth.read_text())
    judged = tmp_path / "judged.txt"
    assert run(["export", "leaderboard", str(many), "--format", "ir_measures", "-o", str(judged)]) == 0
    evaluator = evaluation.LeaderboardEvaluator(
        truth_leaderboard=truth, truth_format="ir_measures", truth_has_header=True, eval_format="ir_measures",
        on_missing="default",
    )  # fmt: skip
    theirs = evaluator.evaluate(judged)
    with trecexam.open_track(many) as track:
        ours = track.correlate(official_measures=["official_leaderboard"]).to_pandas()
    assert len(theirs) == len(ours) > 2
    for row in ours.to_dict("records"):
        official = row["official_measure"].removeprefix("official_leaderboard:")
        said = theirs[official, row["measure"]]
        columns = {
            "kendall": "kendall_tau", "kendall@10": "kendall@10", "spearman": "spearman_rho",
            "pearson": "pearson_r", "tauap_b": "tau_ap_b", "tau_gap": "tau_gap",
        }  # fmt: skip
        for name, column in columns.items():
            if name == "kendall@10" and tied and official == "Other":
                continue  # its tenth has equal runs
            assert row[column] == pytest.approx(said[name], abs=1e-9), (official, row["measure"], name)
