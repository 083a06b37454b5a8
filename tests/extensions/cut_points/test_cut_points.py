"""Cut points of the embedding grader, fitted on judgments."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import trecexam
from trecexam.extensions.cut_points.fitting import link, soft_link
from trecexam.graders.cut_points import CUT_POINTS, SOFT_CUTS, probabilities
from trecexam.graders.weights import offline_folder


def test_linking_gives_each_judgment_its_share_of_passages() -> None:
    cosines = np.linspace(0, 1, 1001)
    judgments = np.searchsorted([0.4, 0.6, 0.9], cosines, side="right")
    one, two, three, four, five = link(cosines.tolist(), judgments.tolist())
    assert (two, four, five) == (0.4, 0.6, 0.9)
    assert (one, three) == (0.3, 0.5)
    with pytest.raises(ValueError, match="no passage has the judgment 3"):
        link([0.1, 0.2, 0.3], [0, 1, 2])


def test_soft_cut_points_are_recovered_from_simulated_judgments() -> None:
    rng = np.random.default_rng(5)
    cosines = rng.uniform(0, 1, (4000, 3))
    steps = 1 - (1 - np.stack([probabilities(cosines)[..., r:].sum(axis=2) for r in (2, 4, 5)])).prod(axis=2)
    judgments = (rng.random(4000) < steps).sum(axis=0)  # the same number for all three steps
    found = soft_link(list(cosines), judgments.tolist())
    assert np.array(found.points)[[1, 3, 4]] == pytest.approx([0.9, 1.03, 1.31], abs=0.06)
    assert found.width == pytest.approx(SOFT_CUTS.width, abs=0.04)
    with pytest.raises(ValueError, match="no passage has the judgment 2"):
        soft_link([np.array([0.1]), np.array([0.2])], [0, 1])


def run_script(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trecexam.extensions.cut_points", root]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_printed_cut_points_are_valid_settings(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra `embedding` is not installed")
    if offline_folder() is None:
        pytest.skip("needs the extra `offline`")
    root = tmp_path / "demo"
    trecexam.make_demo_track(root)
    with trecexam.open_track(root) as track:
        fitted = track.grading.cut_points()
    rows = fitted.table.records()
    assert [row["cut_point.built_in"] for row in rows] == list(CUT_POINTS)
    cuts = [row["cut_point"] for row in rows]
    assert cuts == sorted(cuts)
    first, settings = run_script(root).stdout.split("\n", 1)
    assert first == f"set this in [grader] of {root / 'trecexam.toml'}:"
    assert tomllib.loads(settings) == {
        "cut_points": cuts,
        "soft_cuts": [row["soft_cut"] for row in rows],
        "soft_width": fitted.soft_width,
    }


def test_without_judgments_the_error_says_what_is_missing(small_track: Path) -> None:
    (small_track / "qrels.txt").unlink()
    done = run_script(small_track)
    assert done.returncode == 1
    why = "cut points need passages and official judgments as files"
    assert done.stderr == f"cut_points: {small_track}: {why}\n"
