"""`trecexam simulate`: tables, messages and invalid input. The numbers are tested in arithmetic/."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import all_notes, make_small_track, printed, tsv_table, write_run

import trecexam

#: What is left out -> the options.
OPTIONS = {"runs": (), "removal": ("--judgments", "--repeats", "2")}
BOTH = pytest.mark.parametrize("kind", list(OPTIONS))


def run_command(
    capsys: pytest.CaptureFixture[str], kind: str, *arguments: str | Path
) -> tuple[list[dict[str, str]], str]:
    rows = tsv_table(printed(capsys, "simulate", *OPTIONS[kind], *arguments).out)
    return rows, all_notes(capsys, "simulate", *OPTIONS[kind], *arguments)


def refused(capsys: pytest.CaptureFixture[str], kind: str, *arguments: str | Path) -> str:
    out, err = printed(capsys, "simulate", *OPTIONS[kind], *arguments, status=2)
    assert (out, err.count("\n")) == ("", 1)
    return err


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


def test_leave_one_out_has_one_row_per_measure_and_run(
    disjoint_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, said = run_command(
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
    ranks = [int(row["rank.full"]) for row in rows[:3]]
    assert ranks == sorted(ranks)
    assert "3 of 3 runs have judged passages that no other has in its first 8 ranks" in said
    assert "nDCG@10: a run whose own judgments are missing moves by " in said
    assert (
        "labels are mapped: fitted in each step on the judgments that remain; on all of them: fitted" in said
    )


def test_full_means_equal_those_of_the_official_leaderboard(
    disjoint_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _ = run_command(capsys, "runs", disjoint_runs, "--official-measure", "nDCG@10")
    board = tsv_table(printed(capsys, "leaderboard", disjoint_runs, "--official", "-m", "nDCG@10").out)
    assert [(row["run"], row["mean.full"]) for row in rows] == [(row["run"], row["nDCG@10"]) for row in board]


def test_removal_has_one_row_per_measure_and_share(
    disjoint_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _ = run_command(capsys, "removal", disjoint_runs, "--repeats", "3")
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
    assert rows == run_command(capsys, "removal", disjoint_runs, "--repeats", "3")[0]
    with trecexam.open_track(disjoint_runs) as track:
        drawn = [list(track.simulate(judgments=True, repeats=3, seed=seed).table) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_team_is_left_out_as_a_whole(
    disjoint_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "teams.tsv").write_text("a\tT\n\nc\tT\nnot-here\tU\n")
    rows, said = run_command(
        capsys, "runs", disjoint_runs, "--teams", tmp_path / "teams.tsv", "--official-measure", "P@2"
    )
    assert {row["run"]: row["left_out"] for row in rows} == {"a": "T", "b": "b", "c": "T"}
    # q2-d01 is only in a and c.
    assert {row["run"]: row["unique"] for row in rows} == {"a": "8", "b": "2", "c": "8"}
    assert "1 of 3 runs have no team in" in said
    assert "2 of 2 teams have judged passages" in said


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a T\n", "teams.tsv:1: not `run<TAB>team`"),
        ("a\tT\na\tU\n", "teams.tsv:2: run 'a' is of team 'T' already"),
        ("\n", "teams.tsv: no teams in it"),
        ("z\tT\n", "teams.tsv: none of its 1 run ('z', ...) is on the leaderboard"),
        (None, "teams.tsv: no such file"),
    ],
)
def test_invalid_teams_are_rejected(
    disjoint_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "teams.tsv").write_text(content)
    assert why in refused(capsys, "runs", disjoint_runs, "--teams", tmp_path / "teams.tsv")


@BOTH
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--official-measure", "nDGC@10"], "did you mean nDCG"),
        (["--official-measure", "alpha_nDCG@10"], "alpha_nDCG@10 needs subtopics"),
    ],
)
def test_invalid_options_are_a_one_line_error(
    disjoint_runs: Path, capsys: pytest.CaptureFixture[str], kind: str, options: list[str], why: str
) -> None:
    assert why in refused(capsys, kind, disjoint_runs, *options)


@BOTH
def test_no_runs_one_run_or_tied_runs_have_no_tau(
    graded: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    rows, said = run_command(capsys, kind, with_runs(graded))
    assert f"no runs yet: drop some into {graded / 'runs'}" in said
    assert (kind == "runs") == (rows == [])
    rows, said = run_command(capsys, kind, with_runs(graded, a={"q1": ["q1-d00", "q1-d01"]}))
    assert "no tau: it needs two runs or more" in said
    assert {row["tau.holes"] for row in rows} == {row["tau.fill"] for row in rows} == {""}
    same = {"q1": ["q1-d00", "q1-d01"]}
    rows, _ = run_command(capsys, kind, with_runs(graded, a=same, b=same))
    assert {row["tau.holes"] for row in rows} == {row["tau.fill"] for row in rows} == {""}


@BOTH
def test_if_no_judged_passage_has_a_grade_all_stay_holes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    root = make_small_track(tmp_path / "track", queries=1)
    rows, said = run_command(capsys, kind, root)
    assert "no passage has both an automatic and an official label" in said
    assert "0 of 12 judged passages have an automatic label" in said
    assert "steps no rule could be fitted on the remaining judgments" in said
    assert {float(row["filled"]) for row in rows} == {0.0}
    assert all(row["tau.holes"] == row["tau.fill"] for row in rows)


@BOTH
def test_judgments_of_other_queries_count_with_a_note(
    disjoint_runs: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    with (disjoint_runs / "qrels.txt").open("a") as file:
        file.write("q8 0 d 1\nq9 0 d 0\n")
    _, said = run_command(capsys, kind, disjoint_runs)
    assert "2 of 5 judged queries are not among the grader's queries: they count in all means" in said
    (disjoint_runs / "qrels.txt").write_text("q8 0 d 1\nq9 0 d 0\n")
    _, said = run_command(capsys, kind, disjoint_runs)
    assert "are query ids written in another form?" in said


@BOTH
def test_simulating_writes_nothing(
    disjoint_runs: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    def state() -> dict[str, bytes]:
        return {
            str(p): p.read_bytes()
            for p in disjoint_runs.rglob("*")
            if p.is_file() and ".sqlite" not in p.name
        }

    before = state()
    run_command(capsys, kind, disjoint_runs)
    assert state() == before
