"""The history on TREC DL 2019 after a dropped run and an edited question."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import ir_measures
import pytest

import trecexam
from trecexam.cli.main import run


@pytest.fixture(scope="module")
def track(dl19: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs but one, graded from the recording."""
    root = tmp_path_factory.mktemp("history") / "track"
    runs = root.parent / "runs"
    shutil.copytree(dl19 / "runs", runs)
    (runs / "p_bert.run").unlink(missing_ok=True)
    arguments = [
        *("--queries", dl19 / "queries.tsv", "--bank", dl19 / "bank.questions.jsonl.gz"),
        *("--passages", dl19 / "passages.jsonl.gz", "--runs", runs, "--grader", "recorded"),
        *("--recorded", dl19 / "graded.flan-t5-large.jsonl.gz"),
    ]
    assert run(["init", str(root), *map(str, arguments)]) == 0
    assert run(["watch", str(root), "--once"]) == 0
    return root


def qrels(root: Path) -> dict[tuple[str, str], int]:
    rows = ir_measures.read_trec_qrels(str(root / "out" / "rubric.qrels"))
    return {(row.query_id, row.doc_id): row.relevance for row in rows}


@pytest.mark.slow
def test_a_dropped_run_and_an_edited_recording_are_logged_with_their_labels(track: Path, dl19: Path) -> None:
    before = qrels(track)
    shutil.copy(dl19 / "runs" / "p_bert.run", track / "runs")
    assert run(["watch", str(track), "--once"]) == 0
    after = qrels(track)
    with trecexam.open_track(track) as opened:
        entry = opened.history.entry(2)
    assert entry.cause == "runs/p_bert.run added"
    assert {(row.query_id, row.doc_id): (row.before, row.after) for row in entry.board.labels} == {
        key: (before.get(key), after[key]) for key in after if before.get(key) != after[key]
    }
    # No label of the others changed, so only the new run moved them.
    for row in entry.board.runs:
        if row.change == "moved":
            assert (row.labels, row.because(20)) == (0, "others moved")

    recording = track / "graded.flan-t5-large.jsonl.gz"
    with gzip.open(recording, "rt") as file:
        lines = file.read().splitlines()
    changed = 0
    for number, line in enumerate(lines):
        query_id, passages = json.loads(line)
        for passage in passages:
            for grades in passage.get("exam_grades") or ():
                for rating in grades.get("self_ratings") or ():
                    if query_id == "19335" and rating["self_rating"] >= 4:
                        rating["self_rating"] = 1
                        changed += 1
        lines[number] = json.dumps([query_id, passages])
    assert changed
    with gzip.open(recording, "wt") as file:
        file.write("\n".join(lines) + "\n")
    assert run(["watch", str(track), "--once"]) == 0
    with trecexam.open_track(track) as opened:
        entry = opened.history.entry(3)
    assert entry.cause.startswith("graded.flan-t5-large.jsonl.gz edited; grader: sha256 ")
    assert {row.query_id for row in entry.board.labels} == {"19335"}
    moved = [row for row in entry.board.runs if row.change == "moved" and row.labels]
    assert moved
    for row in moved:
        rankings = [
            line.split()
            for line in (track / "runs" / f"{row.run}.run").read_text().splitlines()
            if line.split()[0] == "19335"
        ]
        rankings.sort(key=lambda fields: (float(fields[4]), fields[2]), reverse=True)
        first = {fields[2] for fields in rankings[:20]}
        changed_labels = {
            label.doc_id
            for label in entry.board.labels
            if label.doc_id in first and label.before != label.after
        }
        assert row.labels == len(changed_labels)
