"""Exports of a track are enough to compute Cover with ir_measures, with the same value as the track."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import AP, Measure, P, nDCG
from support import HashGrader, make_small_track, write_jsonl

import trecexam
from trecexam.cli.main import run
from trecexam.scores import Cover, nCover
from trecexam.scores.columns import provider

MEASURES = [Cover(rel=4) @ 5, nCover(rel=4) @ 5, Cover(rel=4), nCover(rel=4) @ 1]


Values = dict[tuple[str, str], float]


def leaderboard_means(root: Path, measures: Iterable[Measure]) -> Values:
    """(run, measure) -> the mean on the track's leaderboard."""
    with trecexam.open_track(root) as track:
        board = track.leaderboard(list(measures))
    return {
        (row.run, name): score.mean
        for row in board.rows
        for name, score in zip(board.measures, row.scores, strict=True)
    }


def by_ir_measures(qrels: Any, root: Path, measures: Iterable[Measure]) -> Values:
    """The same, by ir_measures; `qrels` is a function, as generators are used up."""
    return {
        (path.stem, str(measure)): value
        for path in sorted((root / "runs").glob("*.run"))
        for measure, value in ir_measures.calc_aggregate(
            list(measures), qrels(), ir_measures.read_trec_run(str(path))
        ).items()
    }


def at_1(measures: Iterable[Measure]) -> list[Measure]:
    return [type(each)(**{**each.params, "rel": 1}) for each in measures]


def renamed(values: Values) -> Values:
    return {(name, measure.replace("rel=1", "rel=4")): value for (name, measure), value in values.items()}


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_subtopics_file_is_enough_to_compute_cover(graded: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"subtopics.qrels{suffix}"
    content = (graded / "out" / "rubric.subtopics.qrels").read_bytes()
    path.write_bytes(gzip.compress(content) if suffix else content)
    values = by_ir_measures(lambda: ir_measures.read_trec_qrels(str(path)), graded, at_1(MEASURES))
    assert renamed(values) == pytest.approx(leaderboard_means(graded, MEASURES))
    with pytest.raises(ValueError, match="0 or 1"):
        by_ir_measures(lambda: ir_measures.read_trec_qrels(str(path)), graded, MEASURES)


def test_an_item_without_any_answer_counts_in_every_export(graded: Path) -> None:
    rows = [json.loads(line) for line in (graded / "grades.jsonl").read_text().splitlines()]
    kept = [row for row in rows if row["item_id"] not in ("q1/1", "q2/3")]
    shutil.rmtree(graded / ".trecexam")
    write_jsonl(graded / "grades.jsonl", kept)
    run(["watch", str(graded), "--once"])
    expected = leaderboard_means(graded, MEASURES)
    path = str(graded / "out" / "rubric.subtopics.qrels")
    file_values = by_ir_measures(lambda: ir_measures.read_trec_qrels(path), graded, at_1(MEASURES))
    assert renamed(file_values) == pytest.approx(expected)
    with trecexam.open_track(graded) as track:
        assert [tuple(row) for row in track.export.subtopics()] == [
            tuple(row) for row in ir_measures.read_trec_qrels(path)
        ]
        assert by_ir_measures(track.qrels, graded, MEASURES) == pytest.approx(expected)


def test_a_frame_in_long_form_gives_cover_and_all_other_measures(graded: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    measures = [*MEASURES, Cover(rel=2) @ 5, Cover(rel=5, partial=3) @ 5, nDCG @ 5, P(rel=4) @ 5, AP(rel=3)]
    expected = leaderboard_means(graded, measures)
    with trecexam.open_track(graded) as track:
        frame = track.export.qrels_frame()
        rows = list(track.qrels())
    assert list(frame.columns) == ["query_id", "doc_id", "item_id", "rating", "label", "relevance"]
    assert len(frame) == sum(len(row.ratings) for row in rows)
    assert frame.groupby(["query_id", "doc_id"])["rating"].agg(tuple).to_dict() == {
        (row.query_id, row.doc_id): row.ratings for row in rows
    }
    assert (frame["label"] == frame["relevance"]).all()
    assert set(frame["item_id"][frame["query_id"] == "q1"]) == {"q1/0", "q1/1", "q1/2", "q1/3"}
    frame.to_csv(tmp_path / "frame.csv", index=False)
    forms: list[Any] = [
        lambda: frame,
        lambda: frame.drop(columns="relevance").rename(columns={"label": "relevance"}),
        lambda: pandas.read_csv(tmp_path / "frame.csv"),
        lambda: frame.sample(frac=1, random_state=3),
        lambda: frame.itertuples(index=False),
        lambda: frame.assign(rating=frame["rating"].astype("Int64").where(frame["rating"] >= 0)),
    ]
    for form in forms:
        assert by_ir_measures(form, graded, measures) == pytest.approx(expected)
    a_run = ir_measures.read_trec_run(str(graded / "runs" / "run0.run"))
    by_columns = provider.calc_aggregate(measures, frame, a_run)
    assert {str(measure): value for measure, value in by_columns.items()} == pytest.approx(
        {measure: value for (name, measure), value in expected.items() if name == "run0"}
    )


def test_a_frame_keeps_importance_for_weighted_cover(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    root = make_small_track(tmp_path / "track")
    bank = [json.loads(line) for line in (root / "bank.questions.jsonl").read_text().splitlines()]
    for row in bank:
        for number, question in enumerate(row["questions"]):
            question["importance"] = ("vital", "okay")[number % 2]
    (root / "bank.questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bank))
    measure = Cover(rel=4, partial=2, weights="vital") @ 5
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        frame = track.export.qrels_frame()
        board = {row.run: row.scores[0].mean for row in track.leaderboard([measure]).rows}
    assert set(frame["importance"]) == {"vital", "okay"}
    values = by_ir_measures(lambda: frame, root, [measure])
    assert {name: value for (name, _), value in values.items()} == pytest.approx(board)


def test_a_frame_with_contradictory_rows_is_rejected(graded: Path) -> None:
    pandas = pytest.importorskip("pandas")
    with trecexam.open_track(graded) as track:
        frame = track.export.qrels_frame()
    twice = pandas.concat([frame, frame.head(1).assign(rating=lambda rows: 5 - rows["rating"])])
    with pytest.raises(ValueError, match="two ratings on item"):
        ir_measures.calc_aggregate([Cover @ 5], twice, {})
    for part in (frame[frame["rating"] >= 4], frame.drop(index=1)):
        with pytest.raises(ValueError, match=r"no row for passage .* and item .*-1 where there is none"):
            ir_measures.calc_aggregate([nCover @ 5], part, {})
    fewer = frame[frame["item_id"].str.endswith(("/0", "/1"))]
    assert ir_measures.calc_aggregate([Cover @ 5], fewer, {}) == {Cover @ 5: 0}
    with pytest.raises(ValueError, match="add a column `label`"):
        ir_measures.calc_aggregate([Cover @ 5], frame.drop(columns=["label", "relevance"]), {})
