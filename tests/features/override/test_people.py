"""Several people on one cell: undo, `cannot`, rules, and judgments on the scale of the track."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import HashGrader, update

import trecexam
from trecexam import Track
from trecexam.errors import RatingConflictError, TrecexamError
from trecexam.features.override.overriding import QueryToRate, seen_token, take
from trecexam.track import selection

CELL = ("q1", "q1-d03")
SCALE = '[judging]\nscale = ["no", "somewhat", "yes"]\n'


@pytest.fixture
def small_track(small_track: Path) -> Path:
    """A track without official judgments: people rate whole passages on the grader's scale."""
    (small_track / "qrels.txt").unlink()
    return small_track


@pytest.fixture
def track(small_track: Path, hash_grader: HashGrader) -> Iterator[Track]:
    with trecexam.open_track(small_track, grader=hash_grader) as opened:
        opened.update()
        yield opened


def with_settings(track: Track, text: str) -> Track:
    """The same track with additional settings."""
    path = track.folder.config_path
    path.write_text(path.read_text() + text)
    track.close()
    return trecexam.open_track(track.folder.root, grader=HashGrader())


def query_to_rate(track: Track) -> QueryToRate:
    loaded = selection(track).graded()
    sheet = loaded.sheets["q1"]
    texts = {doc_id: sheet.text_of(doc_id) for doc_id in sheet.doc_ids}
    return QueryToRate("q1", loaded.bank.items["q1"], (), texts, 8, 5, scale=loaded.judging_scale)


def listed_ratings(track: Track) -> list[tuple[str, int | None, str]]:
    return [(row[5], row[3], row[-1]) for row in track.override.ratings().table.rows]


def test_undo_restores_the_earlier_rating_of_the_same_person(track: Track) -> None:
    for rating in (3, 4):
        track.override(*CELL, rating, who="Ann", why=f"it is {rating}")
    undone = track.override(*CELL, None, who="Ann", why="a slip")
    assert (undone.row.rating, undone.row.why) == (3, "it is 3")
    assert undone.after is not None
    assert undone.after.rating == 3
    assert listed_ratings(track)[-1] == ("Ann", 3, "counts")
    # A second undo: there is nothing before that.
    assert track.override(*CELL, None, who="Ann", why="all of it").after is None
    with pytest.raises(TrecexamError, match="no rating to withdraw"):
        track.override(*CELL, None, who="Ann", why="again")
    track.override(*CELL, 5, who="Ann", why="after all")
    assert track.override(*CELL, None, who="Ann", why="no").row.rating is None


def test_an_assessor_sees_and_withdraws_only_her_ratings(track: Track) -> None:
    query, folder = query_to_rate(track), track.folder
    take(folder, query, "q1-d03", "", 3, "Ann", "a")
    with pytest.raises(TrecexamError, match="no rating to withdraw"):
        take(folder, query, "q1-d03", "", None, "Bob", "b", own_only=True)
    # Bob did not see Ann's rating, and need not.
    bob = take(folder, query, "q1-d03", "", 1, "Bob", "b", seen_token(None), own_only=True)
    assert bob.written
    with pytest.raises(RatingConflictError, match="Bob rated it 1"):
        take(folder, query, "q1-d03", "", 2, "Bob", "b", seen_token(None), own_only=True)
    assert take(folder, query, "q1-d03", "", 2, "Bob", "b", seen_token(bob.row), own_only=True).written
    assert not take(folder, query, "q1-d03", "", 2, "Bob", "b", own_only=True).written


def test_cannot_judge_has_a_reason_and_changes_no_score(track: Track) -> None:
    before = track.leaderboard()
    row = take(track.folder, query_to_rate(track), "q1-d03", "", None, "Ann", "in Welsh", cannot=True).row
    assert row.cannot
    assert "\tcannot\t" in (track.folder.root / "overrides.tsv").read_text()
    assert listed_ratings(track) == [("Ann", None, "cannot judge")]
    assert track.leaderboard().rows == before.rows
    assert track.override.summary() == {"cells": 0, "passages": 0, "who": []}


def test_time_and_notes_are_stored_in_additional_columns(track: Track) -> None:
    query, path = query_to_rate(track), track.folder.root / "overrides.tsv"
    take(track.folder, query, "q1-d03", "", 3, "Ann", "a")
    old = path.read_text()
    take(track.folder, query, "q1-d04", "", 3, "Ann", "a", seconds=7.25, note="see d03")
    header, *lines = path.read_text().splitlines()
    assert header == old.splitlines()[0] + "\tseconds\tnote"
    assert lines[0] == old.splitlines()[1]
    assert lines[1].endswith("\t7.25\tsee d03")


def test_differing_ratings_do_not_count_until_they_are_adjudicated(track: Track) -> None:
    machine = {row.doc_id: row.relevance for row in track.qrels() if row.query_id == "q1"}["q1-d03"]
    with with_settings(track, '[judging]\nrule = "adjudicated"\n') as adjudicated:
        adjudicated.override(*CELL, (machine + 1) % 6, who="Ann", why="x")
        kept = adjudicated.override(*CELL, (machine + 2) % 6, who="Bob", why="x")
        assert (kept.written, kept.after) == (True, None)
        assert {row.doc_id: row.relevance for row in adjudicated.qrels() if row.query_id == "q1"}[
            "q1-d03"
        ] == machine
        decided = take(
            adjudicated.folder,
            query_to_rate(adjudicated),
            "q1-d03",
            "",
            (machine + 3) % 6,
            "Org",
            "read both",
            adjudicates=True,
        )
        assert decided.after == decided.row
        assert [state for *_, state in listed_ratings(adjudicated)] == ["overruled", "overruled", "counts"]


def test_judgments_on_the_scale_of_the_track_are_separate_from_grader_labels(track: Track) -> None:
    before = sorted(track.qrels())
    with with_settings(track, SCALE) as scaled:
        done = scaled.override(*CELL, 2, who="Ann", why="x")
        assert not (scaled.folder.root / "overrides.tsv").exists()
        assert "q1-d03\t\t2\tAnn" in (scaled.folder.root / "judgments.tsv").read_text()
        assert done.after == done.row
        assert sorted(scaled.qrels()) == before
        assert listed_ratings(scaled) == [("Ann", 2, "counts")]
        assert scaled.status()["judgments"] == 1
        with pytest.raises(TrecexamError, match=r"3 is not on the track's scale, 0\.\.2"):
            scaled.override(*CELL, 3, who="Ann", why="x")
        # Items are rated on the grader's scale.
        scaled.override(*CELL, 5, item="q1/0", who="Ann", why="x")
        assert "q1/0\t5" in (scaled.folder.root / "overrides.tsv").read_text()


# A rating does not replace one that was not seen.


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


def test_of_many_concurrent_first_ratings_one_is_accepted(small_track: Path, hash_grader: HashGrader) -> None:
    update(small_track, hash_grader)
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


def test_undo_withdraws_only_ratings_of_the_same_person(track: Track) -> None:
    track.override(*CELL, 3, who="Ann", why="a")
    track.override(*CELL, 4, who="Bob", why="b")
    after = track.override(*CELL, None, who="Bob", why="a slip").after
    assert after is not None
    assert (after.who, after.rating) == ("Ann", 3)
    assert listed_ratings(track) == [("Ann", 3, "counts"), ("Bob", 4, "replaced"), ("Bob", None, "withdrawn")]
    after = track.override(*CELL, None, who="Ann", why="a slip").after
    assert after is None


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
