"""Notes on several graders side by side, on the RAG demo track."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import write_run

import trecexam
from trecexam.cli.main import run

RUBRIC = 'measures = ["Cover(rel=4)@10"]'
OFFICIAL = 'official_measures = ["nDCG@10", "P(rel=2)@10"]\n'


@pytest.fixture
def rag(tmp_path: Path) -> Path:
    """The RAG demo track with two runs alone: of the same first ten passages, in opposite orders."""
    root = tmp_path / "rag"
    assert run(["demo", "--rag", str(root)]) == 0
    ranking: dict[str, list[str]] = {}
    for line in (root / "runs" / "dense.run").read_text().splitlines():
        query_id, _, doc_id, *_ = line.split()
        ranking.setdefault(query_id, []).append(doc_id)
    for path in (root / "runs").iterdir():
        path.unlink()
    for name, step in (("forth", 1), ("back", -1)):
        write_run(root / "runs" / name, {query_id: docs[:10][::step] for query_id, docs in ranking.items()})
    return root


def test_a_column_that_ties_all_runs_is_a_note_though_another_measure_is_the_graders_first(rag: Path) -> None:
    config = rag / "trecexam.toml"
    config.write_text(config.read_text().replace(RUBRIC, 'measures = ["nDCG@10", "Cover(rel=4)@10"]'))
    with trecexam.open_track(rag) as track:
        notes = track.leaderboard().notes
    assert [note for note in notes if note.startswith("rubric: all 2 runs have the same Cover(rel=4)@10")]


def test_a_note_names_the_thresholds_of_the_judgments_that_graders_are_compared_at(rag: Path) -> None:
    config = rag / "trecexam.toml"
    config.write_text(config.read_text().replace(OFFICIAL, ""))
    with trecexam.open_track(rag) as track:
        found = track.correlate()
        (note,) = (note for note in found.notes if note.startswith("graders are compared at different"))
        assert "umbrela: label 2 or more counts as relevant; judgment 2 or more counts as relevant" in note
        assert "rubric: label 4 or more counts as relevant; judgment 1 or more counts as relevant" in note
        named = track.correlate(official_measures=["nDCG@10"])
    assert not any(note.startswith("graders are compared") for note in named.notes)


@pytest.mark.parametrize("measures", ["nope@10", ["nope@10"]])
def test_an_unknown_measure_is_an_error_of_the_project_with_a_remedy(rag: Path, measures: object) -> None:
    with (
        trecexam.open_track(rag) as track,
        pytest.raises(trecexam.TrecexamError, match=r"unknown measure 'nope@10'; did you mean nCover@10"),
    ):
        track.leaderboard(measures)  # type: ignore[arg-type]
