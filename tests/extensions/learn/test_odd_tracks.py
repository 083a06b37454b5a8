"""Incomplete or minimal tracks: each command works or gives a one-line error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from learnable import make_learnable

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


def one_rank(root: Path) -> None:
    (root / "trecexam.toml").write_text("[track]\ndepth = 1\n")


def query_that_no_run_has(root: Path) -> None:
    with (root / "queries.tsv").open("a") as queries:
        queries.write("q9\tq9a q9b\n")


def both(*changes: Change) -> Change:
    return lambda root: [change(root) for change in changes]


FINE = [0] * 3
NOTHING_TO_LEARN = [2] * 3
ODD: dict[str, tuple[Change, list[int]]] = {
    "one query": (one_query, FINE),
    "one judgment": (labels(lambda doc, label: 1 if doc == "q0-d01" else None), NOTHING_TO_LEARN),
    "one judgment a query": (
        labels(lambda doc, label: int(doc[1]) % 3 if doc.endswith("d01") else None),
        FINE,
    ),
    "all judgments the same": (labels(lambda doc, label: 1), NOTHING_TO_LEARN),
    "nothing relevant": (labels(lambda doc, label: 0), NOTHING_TO_LEARN),
    "negative labels alone": (labels(lambda doc, label: -1), NOTHING_TO_LEARN),
    "some negative labels": (labels(lambda doc, label: -1 if doc.endswith("1") else label), FINE),
    "all of the pool judged": (all_judged, FINE),
    "all of one query judged": (both(all_judged, one_query), FINE),
    "all of one query of several judged": (
        both(all_judged, labels(lambda doc, label: label if doc.startswith("q0") else None)),
        FINE,
    ),
    "one run": (one_run, FINE),
    "a run without a query": (without("runs/a.run", "q0 "), FINE),
    "no queries with a text": (lambda root: (root / "queries.tsv").unlink(), FINE),
    "no passages with a text": (without("passages.jsonl"), FINE),
    "a query that no run has": (query_that_no_run_has, FINE),
    "one rank": (one_rank, FINE),
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
