"""The bank of TREC DL 2019 as an exam of its 37 runs, against the official leaderboard."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from scipy import stats

import trecexam


def test_abilities_agree_with_the_official_leaderboard_better_than_coverage_does(track: Path) -> None:
    with trecexam.open_track(track) as opened:
        fitted = opened.exam.fit()
        cover = {row.run: row.scores[0].mean for row in opened.leaderboard(["Cover(rel=4)@20"]).rows}
    assert fitted.exam.values.shape == (37, 210)
    # All cells have a rating, so the share of items that a run has right is its Cover.
    assert dict(zip(fitted.exam.examinees, fitted.fit.accuracy.tolist(), strict=True)) == pytest.approx(cover)
    ranks = json.loads((track / "official_leaderboard.json").read_text())
    theta = dict(zip(fitted.exam.examinees, fitted.fit.theta.tolist(), strict=True))
    runs = [name for name in theta if name in ranks]
    taus = {(ours, official): one.kendall_tau.value for ours, official, one in fitted.official}
    expected = stats.kendalltau([theta[name] for name in runs], [-ranks[name] for name in runs]).statistic
    assert taus["theta", "official_leaderboard"] == pytest.approx(expected, abs=1e-3)
    assert taus["theta", "official_leaderboard"] > 0.6
    assert taus["accuracy", "official_leaderboard"] < 0.5
    shares = fitted.exam.values.mean(axis=0)
    assert ((shares == 1).sum(), (shares == 0).sum()) == (26, 38)
    assert all(math.isfinite(value) for value in (*fitted.fit.a, *fitted.fit.b, *fitted.fit.theta))
