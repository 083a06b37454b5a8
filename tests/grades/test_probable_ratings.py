"""Tracks whose grader gives probabilities: expected labels, ECover, and what counts as certain."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import HashGrader, hashed_rating, make_small_track

import trecexam
from trecexam.cli.main import run
from trecexam.graders import Answer, Cell

EXPECTED = '[track]\ndepth = 8\n[scores]\nlabel = "expected"\n'


def shares_of(rating: int) -> tuple[float, ...]:
    """Probability 0.6, and the rest on the next lower and the next higher rating."""
    shares = [0.0] * 6
    for place, share in ((rating, 0.6), (max(rating - 1, 0), 0.2), (min(rating + 1, 5), 0.2)):
        shares[place] += share
    return tuple(shares)


class UnsureGrader(HashGrader):
    """As HashGrader, with probabilities of all items but the first of each query."""

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in super().grade(cells):
            yield [
                (cell, answer if cell.item.item_id.endswith("/0") else answer._replace(probabilities=shares))
                for cell, answer in batch
                for shares in [shares_of(hashed_rating(cell.text, cell.item.text))]
            ]


@pytest.fixture(scope="module")
def unsure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track with expected labels, updated."""
    root = make_small_track(tmp_path_factory.mktemp("unsure") / "track", config=EXPECTED)
    with trecexam.open_track(root, grader=UnsureGrader()) as track:
        track.update()
    return root


def by_hand(track: Any, rated: dict[tuple[str, str], int] | None = None) -> dict[str, dict[str, Any]]:
    """query_id -> doc_id -> P(rating >= r), shape (4, 5), from the known behaviour of the grader."""
    chances: dict[str, dict[str, Any]] = {}
    for row in track.grades():
        shares = np.array(shares_of(row["rating"]))
        if row["item_id"].endswith("/0"):
            shares = np.eye(6)[row["rating"]]
        person = (rated or {}).get((row["doc_id"], row["item_id"]))
        if person is not None:
            shares = np.eye(6)[person]
        of_doc = chances.setdefault(row["query_id"], {}).setdefault(row["doc_id"], np.zeros((4, 5)))
        of_doc[int(row["item_id"][-1])] = [shares[r:].sum() for r in range(1, 6)]
    return chances


def test_outputs_have_expected_gains_next_to_whole_labels(unsure: Path) -> None:
    with trecexam.open_track(unsure, grader=UnsureGrader()) as track:
        chances = by_hand(track)
        board = track.leaderboard()
        runs = track.export.runs()
    header, *lines = (unsure / "out" / "rubric.gains.tsv").read_text().splitlines()
    assert header.split("\t") == ["query_id", "doc_id", "gain", "label"]
    rows = [line.split("\t") for line in lines]
    gain = {(q, d): float(value) for q, d, value, _ in rows}
    for q, of_query in chances.items():
        for d, at_least in of_query.items():
            assert gain[q, d] == pytest.approx((1 - (1 - at_least).prod(axis=0)).sum(), abs=1e-6)
    assert [f"{q} 0 {d} {label}" for q, d, _, label in rows] == (
        unsure / "out" / "rubric.qrels"
    ).read_text().splitlines()
    assert board.measures[:4] == ("P(rel=4)@8", "ECover(rel=4)@8", "Cover(rel=4)@8", "nDCG@8")
    for row in board.rows:
        values, covers = [], []
        for q, of_query in chances.items():
            ranking = runs[row.run].ranking(q)[:8]
            gains = {d: (1 - (1 - a).prod(axis=0)).sum() for d, a in of_query.items()}
            got = sum(gains.get(d, 0.0) / np.log2(rank + 2) for rank, d in enumerate(ranking))
            best = sorted(gains.values(), reverse=True)[:8]
            values.append(got / sum(value / np.log2(rank + 2) for rank, value in enumerate(best)))
            missed = [1 - of_query[d][:, 3] for d in ranking if d in of_query]
            covers.append((1 - np.prod(missed, axis=0)).mean())
        assert row.scores[3].mean == pytest.approx(np.mean(values))
        assert row.scores[1].mean == pytest.approx(np.mean(covers))


def test_a_rating_by_a_person_is_certain(unsure: Path, tmp_path: Path) -> None:
    root = tmp_path / "track"
    shutil.copytree(unsure, root)
    (root / "overrides.tsv").write_text(
        "query_id\tdoc_id\titem_id\trating\twho\twhy\nq1\tq1-d00\tq1/1\t5\tann\tread\nq2\tq2-d01\t\t3\tann\tread\n"
    )
    with trecexam.open_track(root, grader=UnsureGrader()) as track:
        chances = by_hand(track, {("q1-d00", "q1/1"): 5})
        rows = {(row.query_id, row.doc_id): row for row in track.qrels(probabilities=True)}
        track.update()
    at_least = rows["q1", "q1-d00"].at_least
    assert at_least is not None
    assert np.array(at_least) == pytest.approx(chances["q1"]["q1-d00"])
    assert at_least[1] == (1.0,) * 5
    lines = (root / "out" / "rubric.gains.tsv").read_text().splitlines()
    assert "q2\tq2-d01\t3.000000\t3" in lines


def test_without_probabilities_expected_labels_equal_plain_labels(tmp_path: Path) -> None:
    boards = []
    for name, config in (("max", EXPECTED.replace("expected", "max")), ("expected", EXPECTED)):
        root = make_small_track(tmp_path / name, config=config)
        with trecexam.open_track(root, grader=HashGrader()) as track:
            track.grading.grade()
            found = track.leaderboard(["nDCG@8", "AP(rel=4)", "Cover(rel=4)@8", "ECover(rel=4)@8"])
        boards.append(found.rows)
        assert re.search("count as certain", found.notes[0])
        assert all(row.scores[2].mean == row.scores[3].mean for row in found.rows)
    assert boards[0] == boards[1]


def test_exported_recorded_grades_keep_their_probabilities(
    unsure: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "track"
    shutil.copytree(unsure, root)
    with trecexam.open_track(root, grader=UnsureGrader()) as track:
        board = track.leaderboard(["ECover(rel=4)@8", "nDCG@8"])
        exported = [{**row, "model": "", "prompt": ""} for row in track.grades()]
    (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in exported))
    shutil.rmtree(root / ".trecexam")
    recorded = '[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n'
    (root / "trecexam.toml").write_text(f"{EXPECTED}{recorded}")
    with trecexam.open_track(root) as track:
        track.update()
        assert track.leaderboard(["ECover(rel=4)@8", "nDCG@8"]) == board
    assert run(["export", "grades", str(root)]) == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["probabilities"] for row in again] == [
        row["probabilities"] and list(row["probabilities"]) for row in exported
    ]


UNUSABLE: tuple[tuple[float, ...], ...] = (
    (-0.5, 1.5, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, float("inf")),
    (0.0,) * 6,
    (0.5, 0.5),
)


class OddGrader(HashGrader):
    """Gives invalid probabilities with the first item of each query."""

    def __init__(self, odd: tuple[float, ...]) -> None:
        super().__init__()
        self._odd = odd

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in super().grade(cells):
            yield [
                (
                    cell,
                    answer._replace(
                        probabilities=self._odd if cell.item.item_id.endswith("/0") else (0.1,) * 5 + (0.5,)
                    ),
                )
                for cell, answer in batch
            ]


@pytest.mark.parametrize("odd", UNUSABLE)
def test_invalid_probabilities_count_as_none(tmp_path: Path, odd: tuple[float, ...]) -> None:
    root = make_small_track(tmp_path / "t", config=EXPECTED, queries=1)
    with trecexam.open_track(root, grader=OddGrader(odd)) as track:
        n = track.grading.grade().cells
        (line,) = (note for note in track.leaderboard(["ECover(rel=4)@8"]).notes if "probabilities" in note)
        rows = list(track.qrels(probabilities=True))
    assert line.startswith(
        f"{n // 4} of the grader's {n} ratings have no probabilities, and count as certain in "
    )
    assert {share for row in rows for share in (row.at_least or ())[0]} == {0.0, 1.0}
    assert {share for row in rows for share in (row.at_least or ())[1]} - {0.0, 1.0}
