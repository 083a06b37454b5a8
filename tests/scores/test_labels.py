"""Labels and the qrels made from them, against a naive computation."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import ir_measures
import numpy as np
import pytest

from trecexam.scores.expected import with_probabilities
from trecexam.scores.labels import (
    RubricQrel,
    binary_labels,
    label_qrels,
    labels,
    subtopic_qrels,
)
from trecexam.scores.ratings import QueryRatings


def small() -> QueryRatings:
    ratings = np.array([[5, 4, -1], [0, -1, -1], [-1, -1, -1], [3, 4, 4], [1, 1, 1]], np.int8)
    return QueryRatings("q", ("a", "b", "c", "d", "e"), 3, ratings)


def naive_ratings(q: QueryRatings) -> dict[str, list[int]]:
    return {d: [int(r) for r in row if r >= 0] for d, row in zip(q.doc_ids, q.ratings.tolist(), strict=True)}


def test_a_passage_rating_by_a_person_replaces_those_of_its_items() -> None:
    small_one = small()
    q = QueryRatings("q", small_one.doc_ids, 3, small_one.ratings, {"a": 0, "c": 4, "e": 5})
    assert labels(q) == {"a": 0, "b": 0, "c": 4, "d": 4, "e": 5}
    assert list(labels(q)) == ["a", "b", "c", "d", "e"]
    assert labels(q, "count", 4) == {"a": 0, "b": 0, "c": 1, "d": 2, "e": 1}
    assert labels(q, "count", 4, 2) == {"a": 0, "b": 0, "c": 2, "d": 2, "e": 2}
    assert labels(q, "count", 5) == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1}
    assert binary_labels(q, 5) == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1}
    assert [row.doc_id for row in label_qrels([q])] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("min_answers", [1, 2, 3, 9])
@pytest.mark.parametrize("min_rating", [1, 4, 5])
def test_labels_equal_a_computation_with_lists(
    queries: list[QueryRatings], min_rating: int, min_answers: int
) -> None:
    for q in queries:
        best, count, reached = {}, {}, {}
        for doc_id, found in naive_ratings(q).items():
            if not found:
                continue
            ranked = sorted(found, reverse=True)
            best[doc_id] = ranked[min_answers - 1] if len(ranked) >= min_answers else 0
            hits = len([r for r in found if r >= min_rating])
            count[doc_id] = hits if hits >= min_answers else 0
            reached[doc_id] = 1 if hits >= min_answers else 0
        assert labels(q, "max", min_rating, min_answers) == best
        assert labels(q, "count", min_rating, min_answers) == count
        assert binary_labels(q, min_rating, min_answers) == reached


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (np.zeros((2, 2), np.int8), "shape"),
        (np.zeros((1, 2), np.int64), "int8"),
        (np.array([[6, 0]], np.int8), "outside"),
        (np.array([[-2, 0]], np.int8), "outside"),
    ],
)
def test_ratings_are_checked(matrix: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        QueryRatings("q", ("a",), 2, matrix)


def test_invalid_arguments_and_ratings_of_people_are_rejected() -> None:
    q = small()
    for human in ({"z": 1}, {"a": 6}, {"a": -1}):
        with pytest.raises(ValueError, match="human ratings"):
            QueryRatings("q", q.doc_ids, 3, q.ratings, human)
    with pytest.raises(ValueError, match="at least 1"):
        labels(q, min_answers=0)
    with pytest.raises(ValueError, match="unknown label rule 'mean'"):
        labels(q, "mean")  # type: ignore[arg-type]


def test_label_rows_are_plain_qrels_with_ratings() -> None:
    rows = list(label_qrels([small()]))
    assert rows[0] == ir_measures.Qrel("q", "a", 5)
    assert rows == [ir_measures.Qrel("q", d, label) for d, label in labels(small()).items()]
    assert rows[0].ratings == (5, 4, -1)
    assert isinstance(rows[0], ir_measures.Qrel)
    assert [type(value) for value in rows[0]] == [str, str, int, str]
    binary = list(label_qrels([small()], "count", 5, binary=True))
    assert [row.relevance for row in binary] == [1, 0, 0, 0]


def test_label_rows_keep_what_they_carry_through_copies() -> None:
    q = replace(small(), importances=("vital", "okay", ""), weights=(1.0, 2.0, -0.5))
    row = next(iter(label_qrels([with_probabilities(q, np.full((5, 3, 6), 1 / 6))])))
    assert isinstance(row, RubricQrel)
    changed = row._replace(relevance=9)
    assert changed.relevance == 9
    for other in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row), changed):
        assert isinstance(other, RubricQrel)
        for name in ("ratings", "importances", "weights", "at_least"):
            assert getattr(other, name) == getattr(row, name) is not None


def test_subtopic_rows_equal_the_ratings_at_the_threshold(queries: list[QueryRatings]) -> None:
    assert [tuple(row) for row in subtopic_qrels(small(), 4)] == [
        ("q", "a", 1, "1"), ("q", "b", 0, "1"), ("q", "d", 0, "1"), ("q", "e", 0, "1"),
        ("q", "a", 1, "2"), ("q", "d", 1, "2"), ("q", "e", 0, "2"),
        ("q", "d", 1, "3"), ("q", "e", 0, "3"),
    ]  # fmt: skip
    for q in queries:
        expected = {
            (doc_id, str(item), int(rating >= 3))
            for doc_id, row in zip(q.doc_ids, q.ratings.tolist(), strict=True)
            for item, rating in enumerate(row, 1)
            if rating >= 0
        }
        found = [(row.doc_id, row.iteration, row.relevance) for row in subtopic_qrels(q, 3)]
        assert set(found) == expected
        assert len(found) == len(expected)
    # An item without a rating is named all the same, by the first passage that has one.
    one = QueryRatings("q", ("a", "b"), 2, np.array([[-1, -1], [5, -1]], np.int8))
    assert [tuple(row) for row in subtopic_qrels(one, 4)] == [("q", "b", 1, "1"), ("q", "b", 0, "2")]
