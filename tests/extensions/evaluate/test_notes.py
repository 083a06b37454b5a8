"""Notes of `trecexam.evaluate`."""

from __future__ import annotations

from pathlib import Path

import trecexam


def test_judgments_of_which_none_is_in_a_run_are_named(graded: Path) -> None:
    arguments = {"bank": graded / "bank.questions.jsonl", "passages": graded / "passages.jsonl"}
    runs = {"run0": graded / "runs" / "run0.run"}
    lines = (graded / "qrels.txt").read_text().splitlines()
    for official, expected in (
        ({"q1": {"other-1": 1}}, True),
        ({"q1": {lines[0].split()[2]: 1}}, False),
    ):
        with trecexam.evaluate(
            runs, **arguments, recorded=graded / "grades.jsonl", official=official
        ) as done:  # type: ignore[arg-type]
            notes = done.leaderboard.notes
        assert (
            any("no passage that it judges ('other-1') is in the pool" in note for note in notes) == expected
        )


def test_runs_that_32_bits_order_otherwise_are_named_where_people_look(
    graded: Path, tmp_path: Path, capsys: object
) -> None:
    import pytest

    from trecexam.cli.main import run

    assert isinstance(capsys, pytest.CaptureFixture)
    path = graded / "runs" / "run0.run"
    rows = [line.split() for line in path.read_text().splitlines()]
    # Highest docno last, a billion to the first.
    by_query: dict[str, list[str]] = {}
    for query_id, _, doc_id, *_ in rows:
        by_query.setdefault(query_id, []).append(doc_id)
    path.write_text(
        "".join(
            f"{q} Q0 {d} 1 {999_999_999 - rank} run0\n"
            for q, docs in by_query.items()
            for rank, d in enumerate(sorted(docs))
        )
    )
    note = f"run0: scores that are equal in 32 bits, so trec_eval 9 orders {len(by_query)} rankings otherwise"
    for command in (
        ["watch", str(graded), "--once"],
        ["leaderboard", str(graded)],
        ["leaderboard", str(graded), "--official"],
        ["correlate", str(graded)],
        ["export", "runs", str(graded), "-o", str(tmp_path / "runs")],
    ):
        capsys.readouterr()
        assert run(command) == 0
        assert note in capsys.readouterr().err, command
    with trecexam.open_track(graded) as track:
        for query_id, docs in by_query.items():
            assert track.export.runs()["run0"].ranking(query_id) == sorted(docs)
    assert run(["check", str(path), "--trec-eval", "9"]) == 0
    assert "beyond float precision" in capsys.readouterr().out
