"""What graders said is a way to treat unjudged passages, and ratings or expected ratings are features."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learnable import WordEncoder
from support import HashGrader, hashed_rating

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.learn.graders import graders_of
from trecexam.extensions.learn.learned_pool import LearningData, gather_data
from trecexam.graders import Answer, Cell
from trecexam.graders.base import identity_digest
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder


class ProbableGrader(HashGrader):
    """Gives probabilities with the ratings of every other passage."""

    @property
    def identity(self) -> dict[str, Any]:
        return {"grader": "probable"}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in super().grade(cells):
            yield [
                (cell, answer._replace(probabilities=chances(cell) if len(cell.text) % 2 else None))
                for cell, answer in batch
            ]


def chances(cell: Cell) -> tuple[float, ...]:
    rating = hashed_rating(cell.text, cell.item.text)
    return tuple(0.5 + 0.5 / 6 if at == rating else 0.5 / 6 for at in range(6))


def graded(root: Path, *graders: HashGrader) -> None:
    for grader in graders:
        with trecexam.open_track(root, grader=grader) as track:
            assert track.update().graded > 0


def gathered(root: Path, grader: HashGrader | None = None) -> tuple[LearningData, dict[str, Any]]:
    with TrackLoader(TrackFolder.open(root), grader) as loader:
        track = loader.load()
        data = gather_data(track, encoder=WordEncoder())
        return data, dict(graders_of(track, data.queries))


def texts(root: Path) -> dict[str, str]:
    rows = map(json.loads, (root / "passages.jsonl").read_text().splitlines())
    return {row["docid"]: row["text"] for row in rows}


def test_each_grader_that_ever_graded_has_a_row_by_its_name_and_none_is_asked_again(learnable: Path) -> None:
    now, before, other = HashGrader(version=1), HashGrader(version=2), ProbableGrader()
    graded(learnable, before, other, now)
    asked = len(now.asked)
    data, means = gathered(learnable, now)
    digest = identity_digest(before.identity).hex()[:8]
    assert list(means) == ["grader hash", f"grader hash ({digest})", "grader probable"]
    assert len(now.asked) == asked
    text_of = texts(learnable)
    for at, query in enumerate(data.queries):
        item = f"what of q{at}a and q{at}b"
        by_hand = [hashed_rating(text_of[doc], item) for doc in query.doc_ids]
        assert means["grader hash"][at].tolist() == by_hand


def test_the_command_shows_every_grader_that_is_there(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graded(learnable, HashGrader(), ProbableGrader())
    with trecexam.open_track(learnable, grader=HashGrader()) as track:
        rows = track.learn.cross_validate(known=[0.5], top=[3], repeats=1, resamples=0).rows
    methods = [row.method for row in rows if row.split == "3 most retrieved known"]
    assert methods[-2:] == ["grader hash", "grader probable"]
    by_name = {row.method: row for row in rows if row.split == "3 most retrieved known"}
    assert -1 <= by_name["grader probable"].tau.value <= 1
    assert -1 <= by_name["grader probable"].kappa.value <= 1
    # The track's own grader, which is another one, never graded here.
    assert run(["cross-validate", str(learnable), "--json", "--repeats", "1"]) == 0
    assert '"grader hash"' in capsys.readouterr().out


def test_a_grader_that_rated_a_part_of_the_pool_is_named_with_how_much(learnable: Path) -> None:
    graded(learnable, HashGrader())
    with (learnable / "passages.jsonl").open("a") as passages:
        passages.write(json.dumps({"docid": "new", "text": "q0a q0b q0c new"}) + "\n")
    (learnable / "runs" / "e.run").write_text("q0 Q0 new 1 9 e\n")
    with trecexam.open_track(learnable) as track:
        notes = track.learn.cross_validate(known=[0.5], top=[3], repeats=1, resamples=0).notes
    n = sum(len(query.doc_ids) for query in gathered(learnable)[0].queries)
    assert f"grader hash: {n - 1} of {n} passages have a rating, the others count as 0" in notes


def test_where_a_grader_gave_probabilities_its_expected_ratings_are_the_features(learnable: Path) -> None:
    grader = ProbableGrader()
    graded(learnable, grader)
    data, means = gathered(learnable, grader)
    text_of = texts(learnable)
    n_expected = 0
    for at, query in enumerate(data.queries):
        expected = []
        for doc in query.passages.doc_ids:
            rating = hashed_rating(text_of[doc], f"what of q{at}a and q{at}b")
            if len(text_of[doc]) % 2:
                rating = 0.5 * rating + sum(range(6)) * 0.5 / 6
                n_expected += 1
            expected.append(rating)
        for column in (6, 7):
            assert query.passages.features[:, column] == pytest.approx(np.array(expected))
        assert means["grader probable"][at][query.rows] == pytest.approx(np.array(expected))
    assert n_expected > 5


def test_without_probabilities_ratings_are_the_features(learnable: Path) -> None:
    graded(learnable, HashGrader())
    data, _ = gathered(learnable, HashGrader())
    text_of = texts(learnable)
    (query,) = (query for query in data.queries if query.passages.query_id == "q2")
    ratings = [hashed_rating(text_of[doc], "what of q2a and q2b") for doc in query.passages.doc_ids]
    assert query.passages.features[:, 6].tolist() == ratings


class ReadProbabilities(HashGrader):
    """Stores whole ratings alone, and reads probabilities from its stored answers, as `embedding` does."""

    def probabilities(self, answers: Sequence[str]) -> np.ndarray:
        return np.array([[1 / 2, 0, 0, 0, 0, 1 / 2]] * len(answers))


def test_probabilities_that_a_grader_reads_from_its_answers_are_expected_ratings_too(learnable: Path) -> None:
    grader = ReadProbabilities()
    graded(learnable, grader)
    data, _ = gathered(learnable, grader)
    for query in data.queries:
        assert query.passages.features[:, 6] == pytest.approx(np.full(len(query.rows), 2.5))
