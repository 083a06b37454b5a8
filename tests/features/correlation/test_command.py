"""`trecexam correlate`: thresholds, notes and invalid input."""

from __future__ import annotations

import json
import random
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from support import all_notes, printed, tsv_table, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.grades.evaluation import official_values, rubric_values
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.scores.correlation import correlate
from trecexam.scores.rank_correlation import find_outliers

Rows = list[dict[str, str]]


def table(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Rows:
    return tsv_table(printed(capsys, "correlate", *arguments)[0])


def settings(root: Path, scores: str) -> None:
    """The recorded track's settings with these in [scores]."""
    text = (root / "trecexam.toml").read_text().split("[scores]")[0]
    (root / "trecexam.toml").write_text(f"{text}[scores]\n{scores}\n")


def values(root: Path, measure: str, *, official: bool) -> tuple[list[str], np.ndarray]:
    """The runs, and their values of shape (runs, queries), from the leaderboard's own per-query values."""
    with OpenTrack(open_folder(root)) as loaders:
        loader = loaders.first
        loaded = loader.load()
        evaluated = official_values(loaded, [measure]) if official else rubric_values(loaded, [measure])
    names = sorted(evaluated.runs)
    return names, evaluated.matrix(measure, names, sorted(evaluated.query_ids))


@pytest.fixture
def many(graded: Path) -> Path:
    """The graded track with five more runs."""
    rng = random.Random(1)
    for number in range(5):
        ranking = {q: rng.sample([f"{q}-d{d:02}" for d in range(12)], 8) for q in ("q1", "q2", "q3")}
        write_run(graded / "runs" / f"more{number}.run", ranking)
    return graded


@pytest.mark.parametrize("label", ["max", "count"])
def test_a_threshold_option_equals_the_setting_of_the_same_name(
    many: Path, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(many, f'label = "{label}"')
    options = ["--official-measure", "nDCG@5", "--official-measure", "P@5"]
    asked = [part for name in ("P(rel=2)@3", "nCover@5", "alpha_nDCG@5", "nDCG@4") for part in ("-m", name)]
    with trecexam.open_track(many) as track:
        compared = track.correlate(asked[1::2], options[1::2], min_ratings=[2, 5])
    found = tsv_table(compared.to_tsv())
    assert list(found[0])[:3] == ["measure", "official_measure", "min_rating"]
    expected: Rows = []
    for rating in ("2", "5"):
        settings(many, f'label = "{label}"\nmin_rating = {rating}')
        rel = rating if label == "max" else 2
        names = [f"P(rel={rel})@3", f"nCover(rel={rating})@5", "alpha_nDCG@5", "nDCG@4"]
        plain = table(capsys, many, *[part for name in names for part in ("-m", name)], *options)
        expected += [{"min_rating": rating, **row} for row in plain]
    if label == "max":
        # The label is a rating: nDCG has no threshold and is listed once.
        ungraded = [row for row in expected if row["measure"] == "nDCG@4"][:2]
        expected = [row for row in expected if row["measure"] != "nDCG@4"]
        expected += [{**row, "min_rating": ""} for row in ungraded]
    assert sorted(map(repr, map(sorted, map(dict.items, found)))) == sorted(
        map(repr, map(sorted, map(dict.items, expected)))
    )
    assert [row["min_rating"] for row in found[:4]] == ["2", "5", "2", "5"]
    assert len({row["kendall_tau"] for row in found}) > 3


def test_rbo_p_is_passed_on(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-m", "nDCG@8", "--official-measure", "nDCG@8"]
    _, ours = values(many, "nDCG@8", official=False)
    _, theirs = values(many, "nDCG@8", official=True)
    (row,) = table(capsys, many, *options)
    assert float(row["rbo"]) == pytest.approx(correlate(ours, theirs, rbo_p=0.9).rbo.value, abs=1e-6)
    with trecexam.open_track(many) as track:
        for p in (0.5, 0.95):
            ((_, found),) = track.correlate(["nDCG@8"], ["nDCG@8"], rbo_p=p).pairs
            assert found.rbo.value == pytest.approx(correlate(ours, theirs, rbo_p=p).rbo.value, abs=1e-6)


def test_a_note_counts_swapped_pairs_and_names_the_runs_whose_ranks_differ_most(
    many: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, ours = values(many, "P(rel=4)@8", official=False)
    _, theirs = values(many, "nDCG@10", official=True)
    mine, official = (np.round(side.mean(axis=1), 12) for side in (ours, theirs))
    swapped = sum((mine[a] - mine[b]) * (official[a] - official[b]) < 0 for a, b in combinations(range(8), 2))
    assert swapped
    asked = ["-m", "P(rel=4)@8", "--official-measure", "nDCG@10"]
    said = printed(capsys, "correlate", many, *asked)[1]
    assert f"{swapped} of 28 pairs of runs swap between P(rel=4)@8 and official nDCG@10; largest" in said
    far = [each for each in find_outliers(names, ours, theirs)[:3] if each.rubric_rank != each.official_rank]
    assert ", ".join(f"{o.run} ({o.rubric_rank:g}, {o.official_rank:g})" for o in far) in said
    assert "pairs of runs swap" not in printed(capsys, "correlate", many, *asked, "--per-query")[1]


def test_correlate_says_what_was_compared_and_which_queries_have_no_judgments(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "compared over 3 queries and 3 runs\n" in all_notes(capsys, "correlate", graded)
    judged = [line for line in (graded / "qrels.txt").read_text().splitlines() if not line.startswith("q2")]
    (graded / "qrels.txt").write_text("\n".join([*judged, "x 0 d 1", "y 0 d 1"]) + "\n")
    said = all_notes(capsys, "correlate", graded)
    assert "compared over 2 queries and 3 runs; without official judgments, and left out: 'q2'; " in said
    assert "; judged, and not among the grader's queries: 2" in said


def test_runs_missing_from_the_official_leaderboard_are_reported(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (graded / "official_leaderboard.json").write_text('{"run0": 1, "elsewhere": 2, "run2": 3}')
    text, said = printed(capsys, "correlate", graded)
    assert "not in the official leaderboard, and so not compared with it: 'run1'" in said
    ranked = [row for row in tsv_table(text) if row["official_measure"] == "official_leaderboard"]
    assert {row["n_runs"] for row in ranked} == {"2"}
    # It can be requested by name, and is then the only one.
    alone = table(capsys, graded, "--official-measure", "official_leaderboard")
    assert alone == ranked


def test_an_official_leaderboard_alone_is_enough(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (graded / "qrels.txt").unlink()
    (graded / "official_leaderboard.json").write_text('{"run0": 3, "run1": 2, "run2": 1}')
    (row, *_) = table(capsys, graded)
    assert (row["official_measure"], row["n_runs"]) == ("official_leaderboard", "3")
    assert "pairs of runs swap" in printed(capsys, "correlate", graded)[1]
    _, said = printed(capsys, "correlate", graded, "--per-query", status=2)
    assert "an official leaderboard has no values per query" in said


def refusal(capsys: pytest.CaptureFixture[str], root: Path) -> str:
    """The one-line error, the same in every form of the command."""
    found = set()
    for command, *options in (["correlate"], ["correlate", "--thresholds"]):
        out, err = printed(capsys, command, root, *options, status=2)
        assert out == ""
        assert err.startswith("trecexam: ")
        found.add(err)
    (line,) = found
    assert line.count("\n") == 1
    return line


def test_without_official_judgments_the_error_says_what_is_needed(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (graded / "qrels.txt").unlink()
    assert "put official_leaderboard.json here" in refusal(capsys, graded)
    _, said = printed(capsys, "correlate", graded, "--official-measure", "official_leaderboard", status=2)
    assert "no official leaderboard: put official_leaderboard.json here" in said


def test_runs_without_a_judged_passage_are_reported(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said() -> str:
        return printed(capsys, "correlate", graded)[1]

    assert "is judged" not in said()
    for name in ("said", "told"):
        rows = [{"topic_id": f"q{n}", "run_id": name, "answer": [{"text": f"{name} {n}"}]} for n in (1, 2, 3)]
        (graded / "runs" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if name == "said":
            assert (
                "said: none of its passages is judged, so its official values are 0; leave it out to compare "
                "the others"
            ) in said()
    assert "said, told: none of their passages is judged, so their official values are 0" in said()
    # One that has judged passages, none of them relevant, is as bad as its 0 says.
    with (graded / "qrels.txt").open("a") as qrels:
        qrels.write("q1 0 q1-bad 0\n")
    for name in ("said", "told"):
        (graded / "runs" / f"{name}.jsonl").unlink()
    write_run(graded / "runs" / "bad.run", {"q1": ["q1-bad"]})
    assert "is judged" not in said()


def test_unsupported_official_measures_are_reported_and_stop_nothing_else(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Diversity measures on judgments without subtopics: `watch` ended in a traceback and wrote nothing."""
    settings = graded / "trecexam.toml"
    settings.write_text(settings.read_text() + '[scores]\nofficial_measures = ["alpha_nDCG@20", "nDCG@10"]\n')
    shutil.rmtree(graded / "out")
    capsys.readouterr()
    assert run(["watch", str(graded), "--once"]) == 1
    assert "rejected: trecexam.toml: [scores] official_measures: alpha_nDCG@20 needs subtopics" in (
        capsys.readouterr().err
    )
    assert (graded / "out" / "leaderboard.tsv").exists()
    assert (graded / "out" / "holes.tsv").exists()
    assert not (graded / "out" / "correlation.tsv").exists()
    assert run(["correlate", str(graded)]) == 2
    assert run(["correlate", str(graded), "--official-measure", "nDCG@10"]) == 0
