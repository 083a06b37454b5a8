"""Ratings of a grader as a feature, and judgments of another track."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learnable import grade_by, make_learnable, queries_of
from support import HashGrader, hashed_rating, labels_of, read_jsonl, write_jsonl

import trecexam
from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.arithmetic.passages import FEATURES, QueryPassages
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.folder import TrackFolder
from trecexam.graders import Answer, Cell
from trecexam.grades.open_track import OpenTrack

RATING = FEATURES.index("rating")


class ProbableGrader(HashGrader):
    """Gives probabilities with the ratings of every second passage."""

    @property
    def identity(self) -> dict[str, Any]:
        return {"grader": "probable"}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in super().grade(cells):
            yield [
                (cell, answer._replace(probabilities=chances(cell) if len(cell.text) % 2 else None))
                for cell, answer in batch
            ]


class ReadProbabilities(HashGrader):
    """Stores only whole ratings, and reads probabilities from its stored answers, like `embedding`."""

    def probabilities(self, answers: Sequence[str]) -> np.ndarray:
        zero, two = [0.5, 0.0, 0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
        return np.array([zero if "0" in answer else two for answer in answers])


def chances(cell: Cell) -> tuple[float, ...]:
    rating = hashed_rating(cell.text, cell.item.text)
    return tuple(0.5 + 0.5 / 6 if at == rating else 0.5 / 6 for at in range(6))


def gathered(root: Path, grader: HashGrader) -> tuple[QueryPassages, ...]:
    with trecexam.open_track(root, grader=grader) as track:
        assert track.update().graded > 0
    asked = len(grader.asked)
    with OpenTrack(TrackFolder.open(root), grader) as loaders:
        loader = loaders.first
        queries = gather_data(loader.load()).queries
    # Nothing is graded again.
    assert len(grader.asked) == asked
    return queries


def standardised(values: list[float]) -> np.ndarray:
    return np.asarray((np.array(values) - np.mean(values)) / np.std(values))


def texts(root: Path) -> dict[str, str]:
    return {row["docid"]: row["text"] for row in read_jsonl(root / "passages.jsonl")}


def without_information(root: Path) -> dict[str, int]:
    """Makes texts say nothing of relevance; returns the label of each judged passage."""
    rows = ({"docid": doc, "text": f"alike {doc}"} for doc in texts(root))
    write_jsonl(root / "passages.jsonl", rows)
    return {doc: label for (_, doc), label in labels_of(root / "qrels.txt").items()}


@pytest.mark.parametrize("grader", [HashGrader(), ProbableGrader()])
def test_ratings_or_expected_ratings_are_a_feature(learnable: Path, grader: HashGrader) -> None:
    queries, text_of, n_expected = gathered(learnable, grader), texts(learnable), 0
    for at, query in enumerate(queries):
        expected = []
        for doc in query.doc_ids:
            rating = float(hashed_rating(text_of[doc], f"what of q{at}a and q{at}b"))
            if isinstance(grader, ProbableGrader) and len(text_of[doc]) % 2:
                rating = 0.5 * rating + sum(range(6)) * 0.5 / 6
                n_expected += 1
            expected.append(rating)
        assert query.features[:, RATING] == pytest.approx(standardised(expected))
        # Passages in no run are not graded.
        assert not query.background[:, RATING].any()
    assert (n_expected > 5) == isinstance(grader, ProbableGrader)


def test_probabilities_read_from_answers_give_expected_ratings_too(
    learnable: Path,
) -> None:
    queries, text_of, differ = gathered(learnable, ReadProbabilities()), texts(learnable), 0
    for at, query in enumerate(queries):
        ratings = [hashed_rating(text_of[doc], f"what of q{at}a and q{at}b") for doc in query.doc_ids]
        expected = [2.0 if rating else 2.5 for rating in ratings]
        if len(set(expected)) == 1:
            assert not query.features[:, RATING].any()
        else:
            differ += 1
            assert query.features[:, RATING] == pytest.approx(standardised(expected))
    assert differ


def test_ratings_are_used_if_they_improve_the_fit(learnable: Path) -> None:
    """Random ratings are not used; those near people's labels are."""
    labels, features = without_information(learnable), []
    for rating in (lambda doc: 2 * labels.get(doc, 0), lambda doc: hashed_rating(doc, doc[:2])):
        grade_by(learnable, rating)
        with trecexam.open_track(learnable) as track:
            features.append(track.learn.labels().identity["features"])
    assert features[0] == ["fusion", "cosine", "length", "rating"]
    assert features[1] == ["fusion", "cosine", "length"]


# Learning from judgments of another track in addition to those of the track.


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another track: six queries with other words."""
    root = make_learnable(tmp_path / "other", queries=6)
    for name in ("queries.tsv", "bank.questions.jsonl", "passages.jsonl", "qrels.txt", "runs/a.run"):
        text = (root / name).read_text()
        (root / name).write_text(text.replace("q", "z").replace("zuer", "quer").replace("zuest", "quest"))
    for run_file in "bcd":
        (root / "runs" / f"{run_file}.run").unlink()
    return root


def test_labels_are_learned_from_both_tracks(learnable: Path, other: Path) -> None:
    here, there = queries_of(learnable), queries_of(other)
    learned = fit([*there, *here])
    with trecexam.open_track(learnable) as track:
        labels = track.learn.labels(source=other)
    by_hand = [gain for query in here for gain in predict(learned, query).gains.tolist()]
    assert [row[2] for row in labels.rows] == pytest.approx(by_hand)
    assert labels.identity["judgments"]["count"] == learned.n_judgments
    assert {row[0] for row in labels.rows} == {query.query_id for query in here}


def test_a_query_with_the_same_id_in_another_track_is_a_different_query(
    learnable: Path, tmp_path: Path
) -> None:
    """Otherwise one without a judgment would get the other's intercept in leaderboards."""
    twin = make_learnable(tmp_path / "twin")
    lines = (learnable / "qrels.txt").read_text().splitlines(keepends=True)
    (learnable / "qrels.txt").write_text("".join(line for line in lines if not line.startswith("q0 ")))
    with trecexam.open_track(learnable) as track:
        board = track.learn.labels(source=twin).board
    assert board is not None
    here, there = queries_of(learnable), queries_of(twin)
    apart = fit([*(replace(query, query_id=f"other {query.query_id}") for query in there), *here])
    scores = expected_scores(apart, here, 10, 2)
    means = dict(zip("abcd", scores[0].mean(axis=1).tolist(), strict=True))
    assert {row.run: row.scores["nDCG@10"].mean for row in board.rows} == pytest.approx(means, abs=1e-3)


@pytest.mark.parametrize("same", [True, False])
def test_ratings_of_another_track_count_if_both_have_the_same_grader(
    learnable: Path, other: Path, same: bool
) -> None:
    """Nothing is judged here, and only ratings show what is relevant."""
    truth, others = without_information(learnable), without_information(other)
    # A recording is identified by its content.
    both = dict.fromkeys([*texts(learnable), *texts(other)])
    for root, model in ((learnable, "one"), (other, "one" if same else "two")):
        grade_by(root, lambda doc: 2 * {**truth, **others}.get(doc, 1), docs=both, model=model)
    (learnable / "qrels.txt").unlink()
    with trecexam.open_track(learnable) as track:
        learned = track.learn.labels(source=other)
    assert ("rating" in learned.identity["features"]) == same
    gains = {row[1]: row[2] for row in learned.rows}
    pairs = [(gains[doc], label) for doc, label in truth.items() if doc in gains]
    assert (np.corrcoef(*zip(*pairs, strict=True))[0, 1] > 0.9) == same
