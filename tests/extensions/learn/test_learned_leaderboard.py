"""`leaderboard --learned`, `correlate --learned`, and what `learn` leaves of them in out/ and the report."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from learnable import make_learnable
from scipy.stats import kendalltau

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.learn.outputs import learned_report
from trecexam.files.atomic import sha256
from trecexam.line.loader import opened
from trecexam.scores.correlation import N_COEFFICIENTS, correlate

MEASURES = "nDCG@10", "AP(rel=2)@12"


def table(text: str) -> list[dict[str, str]]:
    header, *rows = (line.split("\t") for line in text.splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run([str(argument) for argument in arguments]) == status
    return capsys.readouterr()


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in root.rglob("*")
        if ".trecexam" not in path.parts and path.is_file()
    }


def test_the_learned_leaderboard_has_intervals_around_expected_means_and_writes_nothing(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(learnable)
    out, err = printed(capsys, "learned-leaderboard", learnable)
    rows = table(out)
    columns = [f"{measure}{end}" for measure in MEASURES for end in ("", ".low", ".high")]
    assert list(rows[0]) == ["run", *columns, "Judged@10"]
    assert {row["run"] for row in rows} == set("abcd")
    means = [float(row["nDCG@10"]) for row in rows]
    assert means == sorted(means, reverse=True)
    for row in rows:
        for measure in MEASURES:
            low, mean, high = (float(row[f"{measure}{end}"]) for end in (".low", "", ".high"))
            assert low < mean < high
            assert 0 < mean < 1
    assert "expected over 5 queries" in err
    assert "held the truth of nDCG" in err
    assert "the labels and the queries" in err
    assert contents(learnable) == before


def test_the_share_that_is_judged_is_that_of_the_first_ten_passages(learnable: Path) -> None:
    judged = {tuple(line.split()[0:3:2]) for line in (learnable / "qrels.txt").read_text().splitlines()}
    with trecexam.open_track(learnable) as track:
        board = track.learn.leaderboard(draws=2)
    for name, share in zip(board.runs, board.judged, strict=True):
        lines = [line.split() for line in (learnable / "runs" / f"{name}.run").read_text().splitlines()]
        top = [(line[0], line[2]) for line in lines if int(line[3]) <= 10]
        assert share == pytest.approx(sum(pair in judged for pair in top) / len(top))


def test_another_tracks_judgments_are_enough_for_a_leaderboard_with_intervals(
    learnable: Path, tmp_path: Path
) -> None:
    new = make_learnable(tmp_path / "new", queries=3)
    (new / "qrels.txt").unlink()
    with trecexam.open_track(new) as track:
        board = track.learn.leaderboard(source=learnable, draws=10)
    assert set(board.judged) == {0.0}
    assert (board.scores.variances(these_queries=True) > 0).all()
    assert len(board.scores.refitted) == 5


@pytest.mark.parametrize("options", [[], ["--these-queries"]])
def test_where_too_few_are_judged_there_are_no_intervals_and_it_says_why(
    learnable: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Of 14 passages of each of five queries the two that runs have highest are judged."""
    votes: Counter[tuple[str, str]] = Counter()
    for path in (learnable / "runs").iterdir():
        for line in path.read_text().splitlines():
            query, _, doc, rank, *_ = line.split()
            votes[query, doc] += 1 / math.log2(int(rank) + 1)
    of_query: dict[str, list[str]] = {}
    for line in (learnable / "qrels.txt").read_text().splitlines():
        of_query.setdefault(line.split()[0], []).append(line)
    kept = []
    for at, lines in enumerate(of_query.values()):
        first, second = sorted(lines, key=lambda line: -votes[line.split()[0], line.split()[2]])[:2]
        kept += [first, " ".join([*second.split()[:3], str(at % 3)])]
    (learnable / "qrels.txt").write_text("".join(f"{line}\n" for line in kept))
    out, err = printed(capsys, "learned-leaderboard", learnable, *options)
    assert "no intervals: 2.0 passages a query are judged" in err
    assert "95% intervals" not in err
    for row in table(out):
        for measure in MEASURES:
            assert 0 <= float(row[measure]) <= 1
            assert (row[f"{measure}.low"], row[f"{measure}.high"]) == ("", "")
    out, _ = printed(capsys, "learned-leaderboard", learnable, *options, "--json")
    assert {row[f"{measure}.low"] for row in json.loads(out)["leaderboard"] for measure in MEASURES} == {None}
    out, err = printed(capsys, "learned-correlate", learnable, "--official-measure", "nDCG@10")
    assert "no intervals: 2.0 passages a query are judged" in err
    assert {(row["kendall_tau.low"], row["kendall_tau.high"]) for row in table(out)} == {("", "")}


def test_for_these_queries_intervals_are_narrower(learnable: Path) -> None:
    with trecexam.open_track(learnable) as track:
        every, these = (track.learn.leaderboard(draws=20, these_queries=fixed) for fixed in (False, True))
    assert (every.scores.means == these.scores.means).all()
    assert ((these.ends[1] - these.ends[0]) < (every.ends[1] - every.ends[0])).all()
    assert "the labels only" in these.summary()


def test_json_has_full_precision_and_says_what_the_intervals_hold(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = printed(capsys, "learned-leaderboard", learnable, "--these-queries", "--json")
    value = json.loads(out)
    assert (value["measures"], value["n_queries"], value["intervals"]) == ([*MEASURES], 5, "these queries")
    with trecexam.open_track(learnable) as track:
        board = track.learn.leaderboard(these_queries=True)
    assert [row["run"] for row in value["leaderboard"]] == list(board.runs)
    assert [row["nDCG@10"] for row in value["leaderboard"]] == board.scores.means[0].tolist()


def test_without_runs_or_judgments_it_says_so(learnable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (learnable / "qrels.txt").write_text("")
    printed(capsys, "learned-leaderboard", learnable, status=2)
    for path in (learnable / "runs").iterdir():
        path.unlink()
    assert "runs" in printed(capsys, "learned-leaderboard", learnable, status=2)[1]


def test_the_learned_leaderboard_is_correlated_with_both_official_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learnable = make_learnable(tmp_path / "six", runs="abcdef")
    ranks = {name: rank for rank, name in enumerate("abcdef", 1)}
    (learnable / "official_leaderboard.json").write_text(json.dumps(ranks))
    out, err = printed(capsys, "learned-correlate", learnable, "--official-measure", "nDCG@10")
    rows = table(out)
    assert [(row["measure"], row["official_measure"]) for row in rows] == [
        (f"learned {measure}", "nDCG@10") for measure in MEASURES
    ]
    for row in rows:
        low, tau, high = (float(row[f"kendall_tau{end}"]) for end in (".low", "", ".high"))
        assert low <= tau <= high
        assert low < 1
    assert "compared over 5 queries and 6 runs" in err
    for name in "ef":
        (learnable / "runs" / f"{name}.run").unlink()
    out, err = printed(capsys, "learned-correlate", learnable, "--official-measure", "nDCG@10")
    assert {row["kendall_tau.low"] for row in table(out)} == {""}
    assert "of 4 runs, learned nDCG@10 has 4 distinct values, nDCG@10 (official) 4" in err
    out, _ = printed(capsys, "learned-correlate", learnable)
    assert [row["official_measure"] for row in table(out)[-2:]] == ["official_leaderboard"] * 2


def test_intervals_of_correlations_hold_what_labels_leave_open(tmp_path: Path) -> None:
    """Tau of each draw and of each fit without a query, by scipy: their variance is added."""
    learnable = make_learnable(tmp_path / "six", runs="abcdef")
    ranks = {"a": 1, "b": 3, "c": 2, "d": 4, "e": 6, "f": 5}
    (learnable / "official_leaderboard.json").write_text(json.dumps(ranks))
    with trecexam.open_track(learnable) as track:
        pairs = dict(track.learn.correlate(["official_leaderboard"]).pairs)
        board = track.learn.leaderboard()
    official = -np.array([ranks[name] for name in board.runs])
    drawn, refitted = (
        [kendalltau(row, official).statistic for row in np.round(side[:, 0], 12)]
        for side in (board.scores.drawn, board.scores.refitted)
    )
    error = math.sqrt(np.var(drawn) + (len(refitted) - 1) * np.var(refitted))
    assert error > 0
    shown = pairs["learned nDCG@10", "official_leaderboard"]
    by_hand = correlate(board.scores.values[0], official, label_error=error)
    assert (shown.tau_low, shown.tau_high) == pytest.approx((by_hand.tau_low, by_hand.tau_high))


def test_an_error_of_labels_widens_intervals_and_none_leaves_them_as_they_are() -> None:
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(10, 1)) * 2 + rng.normal(size=(2, 10, 30))
    plain, same, wider = (
        correlate(*sides, label_error=error) for error in (0.0, np.zeros(N_COEFFICIENTS), 0.1)
    )
    assert plain == same
    assert wider.kendall_tau == plain.kendall_tau
    assert wider.tau_low < plain.tau_low


def test_learn_writes_the_same_leaderboard_and_names_it(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", str(learnable)]) == 0
    out, _ = printed(capsys, "learned-leaderboard", learnable)
    assert (learnable / "out" / "learned-leaderboard.tsv").read_text() == out
    assert (
        "learned-leaderboard.tsv" in json.loads((learnable / "out" / "learned.json").read_text())["outputs"]
    )


def test_the_report_has_a_section_as_long_as_it_is_of_these_runs_and_judgments(learnable: Path) -> None:
    def sections() -> list[str]:
        with opened(learnable) as loader:
            return [part.title for part in learned_report(loader.load())]

    assert sections() == []
    assert run(["learn", str(learnable)]) == 0
    assert sections() == ["Leaderboard by learned labels"]
    board, as_written = learnable / "out" / "learned-leaderboard.tsv", (learnable / "qrels.txt").read_text()
    (learnable / "qrels.txt").write_text(as_written + "q0 0 q0-d00 2\n")
    assert sections() == []
    (learnable / "qrels.txt").write_text(as_written)
    assert len(sections()) == 1
    board.write_text(board.read_text() + "\n")
    assert sections() == []


def test_an_update_that_learns_has_the_section_at_once(learnable: Path) -> None:
    with (learnable / "trecexam.toml").open("a") as settings:
        settings.write("\n[learn]\nupdate = true\n")
    assert run(["watch", "--once", str(learnable)]) == 0
    report = (learnable / "out" / "report.html").read_bytes()
    assert b"Leaderboard by learned labels" in report
    manifest = json.loads((learnable / "out" / "manifest.json").read_text())
    assert manifest["outputs"]["report.html"] == sha256(report)


def test_two_judgments_of_one_query_have_correlations_and_each_remark_is_made_once(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (learnable / "qrels.txt").write_text("q0 0 q0-d01 0\nq0 0 q0-d02 2\nq0 0 q0-d04 -1\n")
    out, err = printed(capsys, "learned-correlate", learnable)
    assert table(out)[0]["measure"] == "learned nDCG@10"
    assert err.count("negative label") == 1
