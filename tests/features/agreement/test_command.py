from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
from support import RECORDED, all_notes, printed, switch_report_on

import trecexam
from trecexam.cli.main import run

HEADER = [
    *("table", "min_rating", "min_answers", "min_relevant", "label", "judgment", "count"),
    *("kappa", "kappa.low", "kappa.high", "kappa.linear", "kappa.quadratic"),
]


def rows_of(text: str) -> list[dict[str, str]]:
    header, *lines = text.splitlines()
    assert header.split("\t") == HEADER
    return [dict(zip(HEADER, line.split("\t"), strict=True)) for line in lines]


def both_labels(track: Path) -> list[tuple[list[int], int]]:
    """The ratings of each pooled passage, best first, and its judgment; by naive code."""
    ratings: dict[tuple[str, str], list[int]] = {}
    for row in map(json.loads, (track / "grades.jsonl").read_text().splitlines()):
        ratings.setdefault((row["query_id"], row["doc_id"]), []).append(row["rating"])
    lines = (track / "qrels.txt").read_text().splitlines()
    judged = {(q, d): int(n) for q, _, d, n in map(str.split, lines)}
    return [
        (sorted(found, reverse=True), judged[place]) for place, found in ratings.items() if place in judged
    ]


def test_in_a_pipe_the_output_equals_the_file_in_out(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "agreement", graded).out
    assert text == (graded / "out" / "agreement.tsv").read_text()
    assert {row["min_rating"] for row in rows_of(text)} == {"4"}


def test_every_min_rating_is_combined_with_every_min_answers(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--min-rating", "2", "--min-rating", "5", "--min-answers", "1", "--min-answers", "3"]
    rows = rows_of(
        printed(capsys, "agreement", graded, *options, "--min-rating", "2", "--min-relevant", "3").out
    )
    passages = both_labels(graded)
    cells = {
        (r["table"], int(r["min_rating"]), int(r["min_answers"]), r["label"], r["judgment"]): int(r["count"])
        for r in rows
    }
    assert len(cells) == len(rows)
    assert {r["min_relevant"] for r in rows} == {"3"}
    for rating, answers in itertools.product((2, 5), (1, 3)):
        counts = Counter((r[answers - 1] >= rating, j >= 3) for r, j in passages)
        graded_counts = Counter((r[answers - 1], j) for r, j in passages)
        for (said, true), name in zip(
            itertools.product((True, False), repeat=2),
            itertools.product((f">={rating}", f"<{rating}"), (">=3", "<3")),
            strict=True,
        ):
            assert cells["binary", rating, answers, *name] == counts[said, true]
        for label, judgment in itertools.product(range(6), range(4)):
            assert (
                cells["graded", rating, answers, str(label), str(judgment)] == graded_counts[label, judgment]
            )
        for table in ("graded", "merged", "binary"):
            assert cells[table, rating, answers, "all", "all"] == len(passages)


def test_judged_passages_outside_the_pool_are_counted_until_they_are_pooled(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (graded / "qrels.txt").open("a") as qrels:
        qrels.write("q1 0 never 2\nq1 0 negative -1\nq9 0 d 1\n")
    note = "1 judged passage without a label outside the runs' first ranks; published tables include such"
    assert note in all_notes(capsys, "agreement", graded)
    switch_report_on(graded)
    assert run(["watch", str(graded), "--once"]) == 0
    assert note.replace("'", "&#39;") in (graded / "out" / "report.html").read_text()
    (graded / "trecexam.toml").write_text(RECORDED.replace("[track]", "[track]\npool_judged = true"))
    assert "published tables" not in all_notes(capsys, "agreement", graded)


def test_ratings_of_people_do_not_count_as_those_of_the_grader(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = printed(capsys, "agreement", graded).out
    with trecexam.open_track(graded) as track:
        grades = [grade for grade in track.grades() if grade["rating"] != 5]
        for grade in grades[:6]:
            track.override(
                grade["query_id"], grade["doc_id"], 5, item=grade["item_id"], who="ann", why="it answers"
            )
        track.override(
            grades[-1]["query_id"], grades[-1]["doc_id"], 0, item=grades[-1]["item_id"], who="bob", why="no"
        )
    assert printed(capsys, "agreement", graded).out == before
    assert "left out: the ratings of ann, bob in place of the grader's (7 cells, 0 passages)" in all_notes(
        capsys, "agreement", graded
    )
    assert run(["watch", str(graded), "--once"]) == 0
    assert (graded / "out" / "agreement.tsv").read_text() == before
