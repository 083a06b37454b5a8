"""Labels and judgments on one scale have one threshold, and every output shows both thresholds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support import RECORDED, all_notes, printed, tsv_table, write_run

import trecexam
from trecexam.cli.main import run

Labels = dict[tuple[str, str], int]


def drawn(best: int, seed: int, weights: tuple[int, ...]) -> tuple[Labels, Labels]:
    """Labels of a grader, and judgments that are mostly within one of them, both 0..best."""
    rng = random.Random(seed)
    keys = [(f"q{q}", f"d{d:03}") for q in range(6) for d in range(60)]
    labels = dict(zip(keys, rng.choices(range(best + 1), weights, k=len(keys)), strict=True))
    judgments = {
        key: min(best, max(0, label + rng.choice((-1, 0, 0, 0, 1)))) for key, label in labels.items()
    }
    labels["q0", "d000"] = judgments["q0", "d001"] = best
    return labels, judgments


def brute_kappa(labels: Labels, judgments: Labels, min_label: int, min_judgment: int) -> float:
    """Cohen's kappa of the passages that both have, relevant or not, by its definition."""
    both = [
        (labels[key] >= min_label, judgments[key] >= min_judgment)
        for key in labels.keys() & judgments.keys()
        if judgments[key] >= 0
    ]
    po = sum(a == b for a, b in both) / len(both)
    yes = [sum(pair[side] for pair in both) / len(both) for side in (0, 1)]
    pe = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    return (po - pe) / (1 - pe)


def make_track(folder: Path, labels: Labels, judgments: Labels, settings: str = "") -> Path:
    """A track with qrels as grades, next to other qrels."""
    for file, rows in (("umbrela.qrels", labels), ("people.qrels", judgments)):
        (folder / file).write_text("".join(f"{q} 0 {d} {label}\n" for (q, d), label in rows.items()))
    queries = {q for q, _ in labels}
    for number in range(3):
        ranking = {q: sorted((d for r, d in labels if r == q), reverse=bool(number))[:20] for q in queries}
        write_run(folder / "runs" / f"run{number}.run", ranking)
    root = folder / "track"
    options = [f"--{key}={folder / file}" for key, file in
               (("recorded", "umbrela.qrels"), ("qrels", "people.qrels"), ("runs", "runs"))]  # fmt: skip
    assert run(["init", str(root), *options]) == 0
    if settings:
        config = root / "trecexam.toml"
        config.write_text(config.read_text().replace("[scores]\n", f"[scores]\n{settings}"))
    assert run(["watch", str(root), "--once"]) in (0, 1)
    return root


def binary(text: str) -> dict[str, str]:
    """The row of the whole binary table."""
    rows = tsv_table(text)
    (row,) = (r for r in rows if (r["table"], r["label"], r["judgment"]) == ("binary", "all", "all"))
    return row


def agreement(capsys: pytest.CaptureFixture[str], root: Path, *options: str) -> tuple[dict[str, str], str]:
    row = binary(printed(capsys, "agreement", root, *options).out)
    return row, all_notes(capsys, "agreement", root, *options)


@pytest.mark.parametrize(("best", "threshold"), [(3, 2), (4, 3)])
def test_kappa_on_one_scale_uses_one_threshold(
    tmp_path: Path, best: int, threshold: int, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, judgments = drawn(best, 3, (8, 2, 2, 2, 1)[: best + 1])
    root = make_track(tmp_path, labels, judgments)
    row, notes = agreement(capsys, root)
    expected = brute_kappa(labels, judgments, threshold, threshold)
    assert expected > brute_kappa(labels, judgments, threshold, 1) + 0.1
    assert (row["min_rating"], row["min_relevant"]) == (str(threshold), str(threshold))
    assert row["kappa"] == f"{expected:.6f}"
    words = f"label {threshold} or more counts as relevant; judgment {threshold} or more counts as relevant"
    scale = f"labels and judgments are both on the scale 0..{best}, so both have the same threshold"
    assert words in notes
    assert scale in notes
    assert binary((root / "out" / "agreement.tsv").read_text()) == row


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ("", ["--min-rating", "1"], (1, 1)),
        ("", ["--min-rating", "2", "--min-relevant", "1"], (2, 1)),
        ("min_relevant = 3\n", [], (3, 3)),
        ("min_rating = 3\nmin_relevant = 2\n", [], (3, 3)),
    ],
)
def test_a_threshold_of_one_side_is_that_of_the_other_and_of_two_settings_the_greater_is_used(
    tmp_path: Path,
    settings: str,
    options: list[str],
    expected: tuple[int, int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels, judgments = drawn(3, 4, (4, 3, 2, 1))
    row, notes = agreement(capsys, make_track(tmp_path, labels, judgments, settings), *options)
    assert (int(row["min_rating"]), int(row["min_relevant"])) == expected
    assert row["kappa"] == f"{brute_kappa(labels, judgments, *expected):.6f}"
    assert f"label {expected[0]} or more counts as relevant; judgment {expected[1]} or more" in notes


def test_the_scale_of_judgments_is_read_from_the_whole_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the queries of this track no passage is judged 3; in others some are."""
    labels, judgments = drawn(3, 6, (4, 3, 2, 1))
    judgments = {key: min(label, 2) for key, label in judgments.items()} | {("q99", "d"): 3}
    row, _ = agreement(capsys, make_track(tmp_path, labels, judgments))
    assert (row["min_rating"], row["min_relevant"]) == ("2", "2")
    assert row["kappa"] == f"{brute_kappa(labels, judgments, 2, 2):.6f}"


def test_different_scales_use_the_thresholds_of_the_settings(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row, notes = agreement(capsys, graded)
    assert (row["min_rating"], row["min_relevant"]) == ("4", "1")
    assert "judgment 1 or more counts as relevant" in notes
    assert "labels are on the scale 0..5 and judgments on 0..3" in notes
    assert "labels >=4 with judgments >=2, labels 1..3 with judgments 1, labels <1 with judgments <1" in notes
    assert "the lowest judgment of its group" in notes
    (graded / "trecexam.toml").write_text(RECORDED + '[scores]\nlabel = "count"\n')
    row, notes = agreement(capsys, graded)
    assert (row["min_rating"], row["min_relevant"]) == ("4", "1")
    assert "label 1 or more (items rated 4 or better) counts as relevant" in notes


@pytest.mark.parametrize(
    ("best", "settings", "threshold"), [(3, "", 2), (4, "", 3), (3, "min_relevant = 3\n", 3)]
)
def test_official_measures_use_the_threshold_of_agreement(
    tmp_path: Path, best: int, settings: str, threshold: int
) -> None:
    """Labels had P(rel=2) and judgments P, which counted from 1."""
    labels, judgments = drawn(best, 3, (8, 2, 2, 2, 1)[: best + 1])
    with trecexam.open_track(make_track(tmp_path, labels, judgments, settings)) as track:
        assert track.agreement().found[0].thresholds.min_relevant == threshold
        board = track.leaderboard(official=True)
        assert board.measures == ("nDCG@10", f"AP(rel={threshold})", f"P(rel={threshold})@20")
        assert not any("from 1 on" in note for note in board.notes)
        run0 = board["run0"]
        share = [
            sum(judgments["q" + str(q), doc] >= threshold for doc in run0_docs(labels, f"q{q}")) / 20
            for q in range(6)
        ]
        assert run0[f"P(rel={threshold})@20"] == pytest.approx(sum(share) / 6)
        named = track.leaderboard(["P@20"], official=True).notes
    assert any("judgments from 1 on count in P@20; this track's threshold is" in note for note in named)


def run0_docs(labels: Labels, query: str) -> list[str]:
    return sorted(d for r, d in labels if r == query)[:20]
