from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support import HashGrader, make_small_track

import trecexam
from converters.bank import read_bank
from trecexam.errors import ItemConflictError, LockedError, TrecexamError
from trecexam.extensions.banks.editing import Edited, items_to_edit
from trecexam.files.track_lock import TrackLock
from trecexam.inputs.overrides import digest_of

BANK = "bank.questions.jsonl"


def texts(root: Path) -> dict[str, str]:
    return {item.item_id: item.text for item in read_bank(root / BANK)}


def test_an_edit_regrades_only_that_item(small_track: Path, hash_grader: HashGrader) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        asked = len(hash_grader.asked)
        done = track.bank.edit_item("q1/2", "another question?", who="Ann")
        assert done == Edited(
            done.before._replace(text="another question?") if done.before else done.item,
            done.before,
            small_track / BANK,
            True,
            (),
        )
        track.update()
        new = hash_grader.asked[asked:]
        pooled = {cell.doc_id for cell in hash_grader.asked[:asked] if cell.item.query_id == "q1"}
        assert {cell.item.text for cell in new} == {"another question?"}
        assert {cell.doc_id for cell in new} == pooled
        # Restoring the text costs nothing.
        track.bank.edit_item("q1/2", "question 2 of q1?", who="Ann")
        assert track.update().graded == 0
        assert [edit["before"] for edit in track.bank.edits("q1")["q1/2"]] == [
            "question 2 of q1?",
            "another question?",
        ]


def test_with_recorded_grades_a_note_says_that_an_edited_item_keeps_its_grades(small_track: Path) -> None:
    (small_track / "trecexam.toml").write_text('[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    with trecexam.open_track(small_track) as track:
        edited = track.bank.edit_item("q1/2", "another?", who="Ann")
        assert "both texts get the same grades" in edited.warnings[-1]
        assert track.bank.edit_item("q1/2", "another?", who="Ann").warnings == ()
        assert track.bank.retire_item("q1/2", who="Ann").warnings == ()


def test_an_added_item_is_graded_for_its_query_and_a_retired_one_is_not_graded(
    small_track: Path, hash_grader: HashGrader
) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        asked = len(hash_grader.asked)
        done = track.bank.add_item("q2", "  is it\nnew? ", who="Ann", why="it was missing")
        assert (done.item.item_id, done.item.text, done.before) == ("q2/4", "is it new?", None)
        track.update()
        assert {(cell.query_id, cell.item.item_id) for cell in hash_grader.asked[asked:]} == {("q2", "q2/4")}
        items = track.status()["items"]
        track.bank.retire_item("q2/4", who="Bob")
        assert track.update().graded == 0
        assert (track.status()["items"], track.status()["retired_items"]) == (items - 1, 1)
        assert track.bank.retire_item("q2/4", who="Bob", retired=False).item == done.item
        assert track.update().graded == 0
        assert track.status()["items"] == items


def test_the_bank_stores_who_changed_what_when_and_why(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        track.bank.edit_item("q1/0", "new?", who=" Ann\tB ", why="clearer")
        track.bank.retire_item("q1/0", who="Bob")
        edit, retired = track.bank.edits("q1")["q1/0"]
    assert (edit["who"], edit["why"], edit["before"]) == ("Ann B", "clearer", "question 0 of q1?")
    assert (retired["who"], retired["retired"]) == ("Bob", True)
    assert edit["when"] <= retired["when"]


def test_a_concurrent_change_is_not_overwritten(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        item = next(one for one in read_bank(small_track / BANK) if one.item_id == "q1/0")
        seen = digest_of(item)
        assert track.bank.edit_item("q1/0", "Ann's?", who="Ann", seen=seen).written
        before = (small_track / BANK).read_bytes()
        with pytest.raises(ItemConflictError, match=r"was changed meanwhile.*Ann's\?") as caught:
            track.bank.edit_item("q1/0", "Bob's?", who="Bob", seen=seen)
        assert caught.value.now == item._replace(text="Ann's?")
        with pytest.raises(ItemConflictError):
            track.bank.retire_item("q1/0", who="Bob", seen=seen)
        with pytest.raises(ItemConflictError, match="no longer") as gone:
            track.bank.edit_item("q1/9", "x", who="Bob", seen=seen)
        assert gone.value.now is None
        assert (small_track / BANK).read_bytes() == before
        assert track.bank.edit_item("q1/0", "Bob's?", who="Bob", seen=digest_of(caught.value.now)).written


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.bank.edit_item("q1/0", "  \n", who="Ann"), "has no text"),
        (lambda t: t.bank.edit_item("q1/0", "a\x00b", who="Ann"), "control character, U+0000, in 'a\\x00b'"),
        (lambda t: t.bank.edit_item("q1/0", "a\ud800", who="Ann"), "control character, U+D800"),
        (lambda t: t.bank.edit_item("q1/0", "a\x9bb", who="Ann"), "control character, U+009B"),
        (lambda t: t.bank.edit_item("q1/0", "a\u202eb", who="Ann"), "control character, U+202E"),
        (lambda t: t.bank.add_item("q1", "a\x1c", who="Ann"), "control character, U+001C"),
        (lambda t: t.bank.add_item("q1", "a", who="Ann\u2067"), "control character, U+2067"),
        (lambda t: t.bank.retire_item("q1/0", who="Ann", why="\x1b[31m"), "control character, U+001B"),
        (
            lambda t: t.bank.edit_item("q1/0", "a" * 2001, who="Ann"),
            "has 2,001 characters, and may have 2,000",
        ),
        (
            lambda t: t.bank.retire_item("q1/0", who="Ann", why="a" * 501),
            "has 501 characters, and may have 500",
        ),
        (lambda t: t.bank.edit_item("q1/0", "x", who=" "), "needs a name"),
        (lambda t: t.bank.edit_item("q1/0", "question 1 of q1?", who="A"), "has this item already, 'q1/1'"),
        (
            lambda t: t.bank.edit_item("q1/00", "x", who="A"),
            "no item 'q1/00' in the bank; did you mean 'q1/0'?",
        ),
        (lambda t: t.bank.add_item("q1", "question 1 of q1?", who="A"), "has this item already, 'q1/1'"),
        (lambda t: t.bank.add_item("q11", "x", who="A"), "no query 'q11' in the track; did you mean 'q1'?"),
        (lambda t: t.bank.add_item("q1", "x", who="A", kind="essay"), "a question or a nugget"),
        (lambda t: t.bank.add_item("q1", "x", who="A", importance="so so"), "vital, okay or none"),
    ],
)
def test_invalid_edits_are_a_one_line_error(
    small_track: Path, change: Callable[[trecexam.track.Track], object], reason: str
) -> None:
    before = (small_track / BANK).read_bytes()
    with trecexam.open_track(small_track) as track, pytest.raises(TrecexamError) as caught:
        change(track)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (small_track / BANK).read_bytes() == before


def test_adding_an_item_equal_to_a_retired_one_suggests_restoring_it(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        track.bank.retire_item("q1/1", who="Ann")
        with pytest.raises(TrecexamError, match="'q1/1', retired: take it back instead"):
            track.bank.add_item("q1", "question 1 of q1?", who="Ann")


def test_findings_of_bank_check_are_warnings(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        assert track.bank.edit_item("q1/0", "Query number q1", who="A").warnings == ("a copy of the query",)
        assert "31 words" in track.bank.edit_item("q1/0", "word " * 31, who="A").warnings[0]
        # It comes before the duplicate.
        near = track.bank.edit_item("q1/0", "Question 3 of Q1", who="A")
        assert near.warnings == (
            "item 'q1/3': duplicate of 'q1/0' on line 1, but for case, punctuation or blanks",
        )
        for number in range(3):
            track.bank.retire_item(f"q1/{number}", who="A")
        assert "all items of the query are retired" in track.bank.retire_item("q1/3", who="A").warnings
        (_, one, *_) = items_to_edit(track.folder, "q1")
        assert one.edits[0]["retired"] is True


def test_a_first_item_can_be_added_to_a_query_without_items(small_track: Path) -> None:
    with (small_track / "queries.tsv").open("a") as file:
        file.write("q4\tthe fourth\n")
    with trecexam.open_track(small_track) as track:
        assert items_to_edit(track.folder, "q4") == ()
        done = track.bank.add_item("q4", "first?", who="Ann")
        assert [one.item for one in items_to_edit(track.folder, "q4")] == [done.item]
        with pytest.raises(TrecexamError, match="no query 'q5'"):
            items_to_edit(track.folder, "q5")


def test_a_compressed_bank_behind_a_symlink_keeps_compression_link_and_mode(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    kept = tmp_path / "kept.gz"
    kept.write_bytes(gzip.compress((root / BANK).read_bytes()))
    kept.chmod(0o640)
    (root / BANK).unlink()
    (root / f"{BANK}.gz").symlink_to(kept)
    with trecexam.open_track(root) as track:
        track.bank.edit_item("q1/0", "new?", who="Ann")
    assert (root / f"{BANK}.gz").is_symlink()
    assert next(iter(read_bank(kept))).text == "new?"
    assert kept.read_bytes()[:2] == b"\x1f\x8b"
    assert kept.stat().st_mode & 0o777 == 0o640


def test_the_item_is_added_to_the_last_file_of_its_kind(small_track: Path) -> None:
    nuggets = small_track / "bank.a-nuggets.jsonl"
    nuggets.write_text('{"qid": "q1", "nuggets": [{"text": "a fact"}]}\n')
    with trecexam.open_track(small_track) as track:
        assert track.bank.add_item("q1", "new?", who="A").file.name == BANK
        done = track.bank.add_item("q1", "another fact", who="A", kind="nugget", importance="okay")
        assert (done.file, done.item.importance) == (nuggets, "okay")
        # A query that is new to the nuggets file is still added there.
        assert track.bank.add_item("q2", "a fact", who="A", kind="nugget").file == nuggets


def test_edits_are_rejected_while_a_model_generates_the_bank(small_track: Path) -> None:
    with (
        trecexam.open_track(small_track) as track,
        TrackLock(small_track / ".trecexam" / "generate.lock", "writing this track's bank"),
        pytest.raises(LockedError, match=f"process {os.getpid()} is already writing this track's bank"),
    ):
        track.bank.edit_item("q1/0", "x", who="Ann")


def test_concurrent_writers_lose_no_edit(small_track: Path) -> None:
    wrong: list[Exception] = []

    def write(name: str) -> None:
        try:
            with trecexam.open_track(small_track) as track:
                for number in range(5):
                    track.bank.add_item("q1", f"{name} {number}?", who=name)
                    track.bank.edit_item(f"q2/{name}", f"{name} {number}!", who=name)
        except Exception as error:
            wrong.append(error)

    names = [str(n) for n in range(4)]
    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    found = texts(small_track)
    assert {f"{name} {n}?" for name in names for n in range(5)} <= set(found.values())
    assert [found[f"q2/{name}"] for name in names] == [f"{name} 4!" for name in names]
    rows = [json.loads(line) for line in (small_track / BANK).read_text().splitlines()]
    assert [len(entry.get("edits", ())) for entry in rows[1]["questions"]] == [5, 5, 5, 5]
