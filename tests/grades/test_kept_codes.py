"""Codes cached for the next process and tracks for the next call always equal a new reading."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, make_small_track, write_run

import trecexam
from trecexam.features.leaderboard.board import leaderboard
from trecexam.folder import TrackFolder
from trecexam.graders.base import Answer, identity_digest
from trecexam.grades.grading import missing_cells, record
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.store import GradeStore


@pytest.fixture
def root(updated: Path) -> Path:
    """A track with stored grades and cached codes."""
    assert codes_of(updated).exists()
    return updated


def codes_of(root: Path) -> Path:
    return root / ".trecexam" / "codes"


def values(root: Path) -> Any:
    """The values that a new process computes for the track."""
    with OpenTrack(TrackFolder.open(root), HashGrader()) as loaders:
        loader = loaders.first
        track = loader.load()
        return leaderboard(track), {
            q: (sheet.doc_ids, sheet.codes.tolist()) for q, sheet in track.sheets.items()
        }


def read_without_cache(root: Path) -> Any:
    """The same without the cache."""
    codes_of(root).unlink(missing_ok=True)
    return values(root)


def change_grade(root: Path) -> None:
    """Changes one stored rating."""
    with GradeStore(root / ".trecexam" / "grades.sqlite") as store:
        grader = store.grader_id(identity_digest(HashGrader().identity))
        assert grader is not None
        grade = next(row for item in range(1, 99) for row in store.answers(grader, item).values())
        store.add(grader, [grade._replace(rating=5 - (grade.rating or 0), answer="changed")])


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*args: Any) -> Any:
        raise AssertionError("grades were read of the store")

    monkeypatch.setattr(GradeStore, "columns", read)


def test_a_new_process_reads_no_grades_if_the_store_is_unchanged(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
    expected = values(root)
    with monkeypatch.context() as patched:
        refuse_to_read(patched)
        assert values(root) == expected
    assert read_without_cache(root) == expected


def other_text(root: Path) -> None:
    path = root / "passages.jsonl"
    path.write_text(path.read_text().replace("passage 3 about q1", "other words"))


def other_item(root: Path) -> None:
    path = root / "bank.questions.jsonl"
    path.write_text(path.read_text().replace("question 1 of q2?", "another question?"))


def another_run(root: Path) -> None:
    write_run(root / "runs" / "late.run", {"q1": ["q1-d11", "q1-d10"], "q3": ["q3-d00"]})


def no_passages(root: Path) -> None:
    (root / "passages.jsonl").write_text(json.dumps({"docid": "x", "text": "of nothing here"}) + "\n")


@pytest.mark.parametrize(
    "change",
    [change_grade, other_text, other_item, another_run, no_passages],
    ids=lambda change: change.__name__,
)
def test_changes_since_the_last_update_are_noticed(root: Path, change: Callable[[Path], None]) -> None:
    before = values(root)
    change(root)
    after = values(root)
    assert after == read_without_cache(root)
    assert after != before


def test_a_grade_in_the_write_ahead_log_of_an_open_store_is_noticed(root: Path) -> None:
    before = values(root)
    with GradeStore(root / ".trecexam" / "grades.sqlite") as store:
        change_grade(root)
        assert store.at_rest() is None
        after = values(root)
        assert after != before
        store.settle()
        assert store.at_rest() is not None
        assert values(root) == after
    assert after == read_without_cache(root)


def test_an_update_that_grades_caches_its_codes_although_its_store_stays_open(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        other_text(root)
        assert track.update().graded
        expected = track.leaderboard()
        with monkeypatch.context() as patched:
            refuse_to_read(patched)
            assert values(root)[0] == expected
    # Closing does not change which store they belong to.
    refuse_to_read(monkeypatch)
    assert values(root)[0] == expected


PROMPT = 'template = "Question: {{question}} Context: {{context}}"\nparser = "{parser}"\n'


def test_another_parser_of_a_prompt_is_used_although_its_file_looks_unchanged(tmp_path: Path) -> None:
    root = make_small_track(
        tmp_path / "track",
        config='[track]\ndepth = 8\n[grader]\nname = "openai"\nmodel = "m"\nprompt = "own.toml"\n'
        'base_url = "http://127.0.0.1:9/v1"\n',
    )
    prompt = root / "own.toml"
    prompt.write_text(PROMPT.format(parser="rating"))

    def codes() -> set[int]:
        with OpenTrack(TrackFolder.open(root)) as loaders:
            loader = loaders.first
            return {code for sheet in loader.load().sheets.values() for code in sheet.codes.ravel().tolist()}

    with OpenTrack(TrackFolder.open(root)) as loaders:
        loader = loaders.first
        loaders.open_to_write()
        for cell in missing_cells(loader.load()):
            record(loader, [(cell, Answer(3, "ok", "3"))])
        loader.keep_codes(loader.refreshed(loader.load()))
    assert codes() == {3}
    before = prompt.stat()
    # With equally many characters, in the same file.
    prompt.write_text(PROMPT.format(parser="answer"))
    os.utime(prompt, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (after := prompt.stat()).st_mtime_ns == before.st_mtime_ns
    assert after.st_size == before.st_size
    kept = codes()
    codes_of(root).unlink()
    assert kept == codes() != {3}


def test_a_track_is_loaded_once_while_none_of_its_files_changes(root: Path) -> None:
    with OpenTrack(TrackFolder.open(root), HashGrader()) as loaders:
        loader = loaders.first
        first = loader.load()
        assert loader.load() is first
        other_text(root)
        second = loader.load()
        assert second is not first
        assert "other words" in second.texts.values()
        (root / "official_leaderboard.json").symlink_to(root / "nowhere")
        third = loader.load()
        assert any(row.file == "official_leaderboard.json" for row in third.rejected)
        os.utime(root / "qrels.txt", ns=(1, 1))
        assert loader.load() is not third
