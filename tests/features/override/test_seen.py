from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support import HashGrader

import trecexam
from trecexam.errors import RatingConflictError
from trecexam.features.override.overriding import seen_token

CELL = ("q1", "q1-d03")


@pytest.fixture
def small_track(small_track: Path) -> Path:
    """A track without official judgments: people rate whole passages on the grader's scale."""
    (small_track / "qrels.txt").unlink()
    return small_track


def test_a_rating_does_not_replace_one_that_was_not_seen(small_track: Path, hash_grader: HashGrader) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        nobody = seen_token(None)
        ann = track.override(*CELL, 4, item="q1/0", who="Ann", why="a", seen=nobody).row
        content = (small_track / "overrides.tsv").read_bytes()
        with pytest.raises(RatingConflictError, match="meanwhile Ann rated it 4: a") as caught:
            track.override(*CELL, 1, item="q1/0", who="Bob", why="b", seen=nobody)
        assert caught.value.now == ann
        assert (small_track / "overrides.tsv").read_bytes() == content
        # Other cells have no rating.
        track.override(*CELL, 1, item="q1/1", who="Bob", why="b", seen=nobody)
        track.override(*CELL, 1, who="Bob", why="b", seen=nobody)
        bob = track.override(*CELL, 1, item="q1/0", who="Bob", why="b", seen=seen_token(ann))
        assert (bob.before, bob.written) == (ann, True)


def test_a_rating_withdrawn_in_the_meantime_is_a_conflict_too(
    small_track: Path, hash_grader: HashGrader
) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        ann = track.override(*CELL, 4, who="Ann", why="a").row
        track.override(*CELL, None, who="Ann", why="no")
        with pytest.raises(RatingConflictError, match="withdrawn meanwhile") as caught:
            track.override(*CELL, None, who="Bob", why="b", seen=seen_token(ann))
        assert caught.value.now is None


def test_of_many_concurrent_first_ratings_one_is_accepted(small_track: Path, hash_grader: HashGrader) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
    taken, refused = [], []

    def say(name: str) -> None:
        with trecexam.open_track(small_track, grader=HashGrader()) as track:
            try:
                seen = seen_token(None)
                taken.append(track.override(*CELL, int(name), who=name, why="w", seen=seen).row.who)
            except RatingConflictError as error:
                refused.append((name, error.now and error.now.who))

    threads = [threading.Thread(target=say, args=(str(n),)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    assert sorted(refused) == sorted((str(n), taken[0]) for n in range(6) if str(n) != taken[0])


def test_a_rating_of_a_passage_counts_and_conflicts_for_its_copy_too(
    small_track: Path, hash_grader: HashGrader
) -> None:
    lines = (small_track / "passages.jsonl").read_text().replace("passage 5 about", "passage 3 about")
    (small_track / "passages.jsonl").write_text(lines)
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        track.override("q1", "q1-d05", 4, who="Ann", why="a", seen=seen_token(None))
        with pytest.raises(RatingConflictError, match="Ann rated it 4"):
            track.override("q1", "q1-d03", 2, who="Bob", why="b", seen=seen_token(None))
