"""A person's rating of a passage as a judgment."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign import SCALE, campaign, to_rate
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.learn.learned_pool import people_judgments
from trecexam.extensions.learn.peoples_labels import label_of_rating


@pytest.mark.parametrize(
    ("labels", "min_relevant", "expected"),
    [
        ([0, 1, 2, 3], 2, [0, 0, 1, 1, 2, 3]),
        ([0, 1], 1, [0, 0, 0, 0, 1, 1]),
        ([1, 2, 3], 1, [0, 0, 0, 0, 1, 3]),
        ([0, 1, 2, 3, 4, 5], 4, [0, 1, 2, 3, 4, 5]),
        ([0, 1], 2, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_ratings_are_converted_to_the_scale_of_the_judgments(
    labels: list[float], min_relevant: int, expected: list[float]
) -> None:
    assert [label_of_rating(rating, 5, 4, labels, min_relevant) for rating in range(6)] == expected


@given(st.sets(st.integers(0, 6), min_size=1), st.integers(1, 4), st.integers(1, 5), st.data())
def test_relevant_stays_relevant_and_a_better_rating_never_gets_a_lower_label(
    labels: set[int], min_relevant: int, max_rating: int, data: st.DataObject
) -> None:
    min_rating = data.draw(st.integers(1, max_rating))
    given_labels = [
        label_of_rating(rating, max_rating, min_rating, sorted(labels), min_relevant)
        for rating in range(max_rating + 1)
    ]
    assert given_labels == sorted(given_labels)
    assert [label >= min_relevant for label in given_labels] == [
        rating >= min_rating for rating in range(max_rating + 1)
    ]
    assert set(given_labels) <= {0, min_relevant, *labels}


@pytest.mark.parametrize("is_official", [False, True])
def test_judgments_on_the_scale_of_the_track_are_used_unchanged(graded: Path, is_official: bool) -> None:
    qrels = graded / "qrels.txt"
    lines = qrels.read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if " q1-d01 " not in line))
    with campaign(graded, SCALE, official=is_official) as track:
        for doc_id, rating in (("q1-d00", 2), ("q1-d01", 1), ("q1-d02", "cannot")):
            query = to_rate(track, "q1")
            record_assessment(track.folder, query, doc_id, "", rating, who="ada", why="x")  # type: ignore[arg-type]
        loaded = track._loader.load()
        known = {} if loaded.official is None else {row[:2]: row.relevance for row in loaded.official}
        expected = {("q1", "q1-d00"): 2, ("q1", "q1-d01"): 1, **known}
        official, n_people = people_judgments(loaded)
        assert official is not None
        assert {row[:2]: row.relevance for row in official.rows} == expected
        assert n_people == len(expected) - len(known)
        assert is_official or official.source == "judgments.tsv"
        # Commands that compare with official judgments see none of these.
        assert {row[:2]: row.relevance for row in loaded.official or ()} == known
