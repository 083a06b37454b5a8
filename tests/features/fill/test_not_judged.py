"""The label -1 is pooled and not judged: a hole for holes, fill, Judged, agreement; -2 is a judgment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import printed, tsv_rows

import trecexam
from trecexam.cli.main import run


def relabelled(root: Path, label: str) -> int:
    """Give every third judgment this label; return their number."""
    lines = (root / "qrels.txt").read_text().splitlines()
    changed = [f"{line.rsplit(' ', 1)[0]} {label}" if n % 3 == 0 else line for n, line in enumerate(lines)]
    (root / "qrels.txt").write_text("".join(line + "\n" for line in changed))
    return len(lines[::3])


@pytest.mark.parametrize("copied", [False, True])
def test_what_was_written_as_unjudged_is_filled_afterwards(
    graded: Path, tmp_path: Path, copied: bool
) -> None:
    lines = (graded / "qrels.txt").read_text().splitlines(True)
    official, first, second = (tmp_path / name for name in ("official", "first", "second"))
    official.write_text("".join(line for n, line in enumerate(lines) if n % 3))
    assert run(["fill", str(graded), "--qrels", str(official), "-o", str(first), "--as-unjudged"]) == 0
    if copied:
        # Without the table of sources beside it.
        first = Path(shutil.copy(first, tmp_path / "copy"))
    assert run(["fill", str(graded), "--qrels", str(first), "-o", str(second)]) == 0
    assert [row["source"] for row in tsv_rows(second.with_name("second.sources.tsv"))] == [
        row["source"] for row in tsv_rows(tmp_path / "first.sources.tsv")
    ]
    assert run(["fill", str(graded), "--qrels", str(official), "-o", str(tmp_path / "direct")]) == 0
    assert sorted(second.read_text().splitlines()) == sorted((tmp_path / "direct").read_text().splitlines())


def test_minus_1_is_a_hole_everywhere_and_minus_2_nowhere(graded: Path) -> None:
    whole = (graded / "qrels.txt").read_text()
    kept = "".join(line for n, line in enumerate(whole.splitlines(True)) if n % 3)

    def counts(text: str) -> tuple[object, ...]:
        (graded / "qrels.txt").write_text(text)
        with trecexam.open_track(graded) as track:
            judged = track.leaderboard(["Judged@5"], official=True).rows
            holes = track.holes().rows
            agreement, found = track.agreement(), track.fill.find()
        return [row.scores for row in judged], holes, agreement.n_both, found.n_holes

    relabelled(graded, "-1")
    assert counts((graded / "qrels.txt").read_text()) == counts(kept)
    (graded / "qrels.txt").write_text(whole)
    relabelled(graded, "-2")
    assert counts((graded / "qrels.txt").read_text()) == counts(whole)


def test_check_says_what_negative_labels_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.qrels").write_text("q1 0 a -1\nq1 0 b -2\nq1 0 c 1.0\n")
    first, second = printed(capsys, "check", tmp_path / "q.qrels").out.splitlines()[1:]
    assert "the label -1 means pooled and not judged" in first
    assert "the label -2 means judged, not relevant" in second
