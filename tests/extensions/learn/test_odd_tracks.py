"""Incomplete or minimal tracks, and tracks without a bank: each command works or gives a one-line error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from learnable import make_learnable
from support import printed

from trecexam.cli.main import run

Change = Callable[[Path], object]

#: The statuses below belong to these commands, in this order.
COMMANDS = (
    ["learn"],
    ["leaderboard", "--labels", "learned"],
    ["fill", "--by", "learned", "-o", "FILLED"],
)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def labels(change: Callable[[str, str], object]) -> Change:
    """Replaces each label by `change(passage, label)`; None removes the line."""

    def changed(root: Path) -> None:
        rows = [line.split() for line in lines(root / "qrels.txt")]
        new = [(row, change(row[2], row[3])) for row in rows]
        (root / "qrels.txt").write_text(
            "".join(f"{row[0]} 0 {row[2]} {label}\n" for row, label in new if label is not None)
        )

    return changed


def all_judged(root: Path) -> None:
    pooled = {tuple(line.split()[0:3:2]) for path in (root / "runs").iterdir() for line in lines(path)}
    (root / "qrels.txt").write_text(
        "".join(f"{q} 0 {doc} {int(doc[-2:]) % 3}\n" for q, doc in sorted(pooled))
    )


def one_query(root: Path) -> None:
    for path in (root / "queries.tsv", root / "qrels.txt", *(root / "runs").iterdir()):
        path.write_text("".join(line for line in lines(path) if line.startswith("q0")))


def one_run(root: Path) -> None:
    for name in "bcd":
        (root / "runs" / f"{name}.run").unlink()


def without(name: str, *parts: str) -> Change:
    """Removes the lines that contain one of these; without words, all lines."""

    def changed(root: Path) -> None:
        kept = [line for line in lines(root / name) if parts and not any(part in line for part in parts)]
        (root / name).write_text("".join(kept))

    return changed


def one_passage(root: Path) -> None:
    for path in (root / "runs").iterdir():
        path.write_text(
            "".join(line for line in lines(path) if not line.startswith("q0") or "q0-d01" in line)
        )


FINE = [0] * 3
NOTHING_TO_LEARN = [2] * 3
ODD: dict[str, tuple[Change, list[int]]] = {
    "one query": (one_query, FINE),
    "one judgment": (labels(lambda doc, label: 1 if doc == "q0-d01" else None), NOTHING_TO_LEARN),
    "negative labels alone": (labels(lambda doc, label: -1), NOTHING_TO_LEARN),
    "all of the pool judged": (all_judged, FINE),
    "one run": (one_run, FINE),
    "a run without a query": (without("runs/a.run", "q0 "), FINE),
    "no passages with a text": (without("passages.jsonl"), FINE),
    "a query with one passage": (one_passage, FINE),
}
#: The others run with `--all`: each has three commands.
AT_EVERY_COMMIT = ("one query", "one judgment", "a run without a query")


@pytest.mark.parametrize(
    "odd",
    [pytest.param(odd, marks=() if odd in AT_EVERY_COMMIT else pytest.mark.slow) for odd in ODD],
)
def test_an_incomplete_track_is_processed_or_rejected_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    root = make_learnable(tmp_path / "track", queries=4, docs=10)
    (root / "bank.questions.jsonl").unlink()
    change, expected = ODD[odd]
    change(root)
    found = []
    for command in COMMANDS:
        arguments = [part.replace("FILLED", str(tmp_path / "filled.qrels")) for part in command]
        capsys.readouterr()
        found.append(run([arguments[0], str(root), *arguments[1:]]))
        shown = capsys.readouterr()
        if found[-1]:
            assert shown.out == ""
            assert len(shown.err.splitlines()) == 1
        assert "nan" not in shown.out.lower().split()
    assert found == expected


# Tracks with runs, texts and judgments but no test bank.


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    root = make_learnable(tmp_path / "inputs", queries=6)
    (root / "bank.questions.jsonl").unlink()
    return root


@pytest.fixture
def bankless(inputs: Path, tmp_path: Path) -> Path:
    """A user who starts with runs and qrels."""
    root = tmp_path / "track"
    given = ["queries.tsv", "passages.jsonl", "qrels.txt"]
    files = [part for name in given for part in (f"--{name.split('.')[0]}", str(inputs / name))]
    assert run(["init", str(root), *files, "--runs", str(inputs / "runs")]) == 0
    return root


def test_judgments_with_other_ids_are_reported_with_both_ids(
    bankless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (bankless / "qrels.txt").read_text().splitlines()
    (bankless / "qrels.txt").write_text("".join(line.replace("0 q", "0 zzq", 1) + "\n" for line in lines))
    judged = f"'zzq0-d01', 'zzq0-d02' and {len(lines) - 2} more"
    examples = f"qrels.txt: no passage that it judges ({judged}) is in the pool ('q0-d00', "
    for words in (["learn"], ["fill", "--dry-run"]):
        capsys.readouterr()
        assert run([words[0], str(bankless), *words[1:]]) == 2, words
        assert examples in capsys.readouterr().err, words


def run_command(
    capsys: pytest.CaptureFixture[str], root: Path, *arguments: str, status: int = 0
) -> tuple[str, str]:
    return printed(capsys, arguments[0], root, *arguments[1:], status=status)


def test_holes_are_filled_by_learned_labels_without_a_grader(
    bankless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = bankless.parent / "filled.qrels"
    _, err = run_command(capsys, bankless, "fill", "-o", str(output), status=2)
    assert "no test bank" in err
    assert "`--by learned` fills without one" in err
    assert not output.exists()
    _, err = run_command(capsys, bankless, "fill", "--by", "grader", "-o", str(output), status=2)
    assert "no test bank" in err
    _, err = run_command(capsys, bankless, "fill", "--by", "learned", "-o", str(output))
    assert "0 cells to grade" in err
    official = (bankless / "qrels.txt").read_text()
    filled = output.read_text()
    assert filled.startswith(official)
    assert len(filled.splitlines()) > len(official.splitlines())
    # Also by the result of a cross-validation.
    run_command(capsys, bankless, "learn")
    output.unlink()
    _, err = run_command(capsys, bankless, "fill", "-o", str(output))
    assert "filled by learned labels; cross-validation here" in err
    assert output.read_text() == filled
