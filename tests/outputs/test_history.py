"""out/history.tsv: the runs that each update of a track moved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, make_small_track, tsv_rows, update, write_run

from trecexam.errors import TrecexamError
from trecexam.files import atomic
from trecexam.outputs.history import MovedRun

QUIET = "[track]\ndepth = 8\n[report]\nwrite = false\n"


def rows(root: Path) -> list[dict[str, str]]:
    return tsv_rows(root / "out" / "history.tsv")


def board(root: Path) -> dict[str, tuple[int, float]]:
    """Run -> rank and mean by the first measure, from leaderboard.json."""
    means = {
        row["run"]: next(iter(row["scores"].values()))["mean"]
        for row in json.loads((root / "out" / "leaderboard.json").read_text())["runs"]
    }
    return {
        run: (1 + sum(other > mean for other in means.values()), round(mean, 6))
        for run, mean in means.items()
    }


def standings(moved: tuple[MovedRun, ...], side: str) -> dict[str, tuple[int, float]]:
    pairs = {row.run: (getattr(row, f"rank_{side}"), getattr(row, f"mean_{side}")) for row in moved}
    return {run: pair for run, pair in pairs.items() if pair != (None, None)}


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    root = make_small_track(tmp_path / "track", config=QUIET)
    update(root)
    return root


def test_an_update_adds_the_runs_whose_rank_or_mean_changed(logged: Path) -> None:
    before, text = board(logged), (logged / "out" / "history.tsv").read_text()
    write_run(logged / "runs" / "new.run", {q: [f"{q}-d11", f"{q}-d10", f"{q}-d00"] for q in ("q1", "q2")})
    moved = update(logged).moved
    after = board(logged)
    changed = {run for run in after if before.get(run) != after[run]}
    assert {row.run for row in moved} == changed >= {"new"}
    assert standings(moved, "before") == {run: before[run] for run in changed & before.keys()}
    assert standings(moved, "after") == {run: after[run] for run in changed}
    # Earlier rows stay as they are.
    assert (logged / "out" / "history.tsv").read_text().startswith(text)


def test_a_removed_run_is_gone_and_is_new_when_dropped_again(logged: Path) -> None:
    run, before = logged / "runs" / "run1.run", board(logged)
    content = run.read_text()
    run.unlink()
    gone = next(row for row in update(logged).moved if row.run == "run1")
    assert ((gone.rank_before, gone.mean_before), gone.rank_after) == (before["run1"], None)
    assert gone.summary == f"run1 gone from {before['run1'][0]}"
    run.write_text(content)
    back = next(row for row in update(logged).moved if row.run == "run1")
    assert (back.rank_before, (back.rank_after, back.mean_after)) == (None, before["run1"])
    assert back.summary == f"run1 new at {before['run1'][0]}"


def test_a_stopped_update_is_not_logged(logged: Path) -> None:
    before, ranked = rows(logged), board(logged)
    bank = logged / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace(" of q", " quite unlike q"))
    graded: list[object] = []
    stopped = update(logged, HashGrader(batch=5), progress=graded.append, stop=lambda: bool(graded))
    assert (stopped.complete, stopped.moved, rows(logged)) == (False, (), before)
    moved = update(logged).moved
    assert standings(moved, "before").items() <= ranked.items()


@pytest.mark.parametrize("damage", ["missing", "another header", "no text", "a folder"])
def test_an_unreadable_history_begins_again(logged: Path, damage: str) -> None:
    path = logged / "out" / "history.tsv"
    path.unlink()
    if damage == "another header":
        path.write_text("entry\twhen\n1\tnow\n")
    elif damage == "no text":
        path.write_bytes(b"\xff\xfe")
    elif damage == "a folder":
        path.mkdir()
    assert standings(update(logged).moved, "after") == board(logged)
    assert {row["run"] for row in rows(logged)} == board(logged).keys()


def test_an_edited_row_that_is_no_row_any_more_stays_and_counts_as_nothing(logged: Path) -> None:
    path = logged / "out" / "history.tsv"
    path.write_text(path.read_text() + "my own remark\n2026\trun0\tP@5\tfirst\t\t\t")
    assert update(logged).moved == ()
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    assert "new" in {row.run for row in update(logged).moved}
    assert "my own remark\n" in path.read_text()


def test_an_unwritable_history_leaves_the_outputs_unchanged(
    logged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outputs() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (logged / "out").rglob("*") if path.is_file()}

    before = outputs()
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d03", "q1-d11"]})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("trecexam.files.atomic.os.fsync", full)
        with pytest.raises(TrecexamError, match=r"history\.tsv: cannot be written: No space left"):
            update(logged)
    assert outputs() == before
    assert update(logged).moved


class _Killed(BaseException):
    """Simulates kill -9: nothing in the program catches it."""


@pytest.mark.parametrize("changed_meanwhile", [False, True])
def test_a_kill_between_any_two_writes_neither_loses_nor_repeats_a_moved_run(
    logged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed_meanwhile: bool
) -> None:
    replace = atomic.replace_together
    for survives in range(100):
        # Each additional file is one more moment.
        root = Path(shutil.copytree(logged, tmp_path / str(survives)))
        write_run(root / "runs" / "new.run", {"q1": ["q1-d03", "q1-d11"]})
        writes = 0

        def until_killed(contents: Any, survives: int = survives, **options: Any) -> list[Path]:
            nonlocal writes
            if writes == survives:
                raise _Killed
            writes += 1
            return replace(contents, **options)

        with monkeypatch.context() as patch:
            patch.setattr("trecexam.files.atomic.replace_together", until_killed)
            try:
                update(root)
            except _Killed:
                killed = True
            else:
                killed = False
        if changed_meanwhile:
            write_run(root / "runs" / "more.run", {"q2": ["q2-d03", "q2-d11"]})
        update(root)
        last: dict[str, tuple[str, str]] = {}
        for row in rows(root):
            assert last.get(row["run"], ("", "")) == (row["rank.before"], row["mean.before"])
            last[row["run"]] = row["rank.after"], row["mean.after"]
        assert {run: (int(rank), float(mean)) for run, (rank, mean) in last.items()} == board(root)
        if not killed:
            break
    assert survives > 3
