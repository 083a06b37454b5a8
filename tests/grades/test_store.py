from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trecexam.errors import StoreError
from trecexam.grades.store import VERSION, GradeRow, GradeStore


def test_a_grade_is_found_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "grades.sqlite"
    with GradeStore(path) as store:
        grader = store.add_grader(b"g", "{}")
        item, passage = store.add_ids("item", [b"i"])[0], store.add_ids("passage", [b"p"])[0]
        store.add(grader, [GradeRow(item, passage, 4, "ok", "4.", (0.0, 0.1, 0.1, 0.1, 0.6, 0.1))])
    with GradeStore(path) as store:
        assert store.grader_id(b"g") == grader
        grades = store.columns(grader, [item])
        assert (grades.keys.tolist(), grades.codes.tolist()) == ([item << 32 | passage], [4])
        assert store.answers(grader, item)[passage].answer == "4."
        assert store.answers(grader, item)[passage].probabilities == (0.0, 0.1, 0.1, 0.1, 0.6, 0.1)


@pytest.mark.parametrize(
    "bad",
    [
        GradeRow(1, 1, 6, "ok", "6"),
        GradeRow(1, 1, None, "ok", ""),
        GradeRow(1, 1, 3, "unparsed", "3"),
        GradeRow(1, 1, None, "perhaps", ""),
    ],
)
def test_a_batch_with_an_invalid_grade_is_rejected_as_a_whole(tmp_path: Path, bad: GradeRow) -> None:
    with GradeStore(tmp_path / "s") as store:
        with pytest.raises(StoreError):
            store.add(1, [GradeRow(2, 2, 3, "ok", "3"), bad])
        assert store.count() == 0


def test_a_file_that_is_not_a_store_is_reported_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "grades.sqlite"
    path.write_bytes(b"this is not SQLite, it is a shopping list; " * 50)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"grades\.sqlite: file is not a database: .*move it away"):
        GradeStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_store_of_another_version_is_rejected(tmp_path: Path, version: int) -> None:
    path = tmp_path / "s"
    GradeStore(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    for write in (True, False):
        with pytest.raises(StoreError, match=f"another trecexam .store version {version}, .*move the store"):
            GradeStore(path, write=write)


def test_a_full_disk_loses_only_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with GradeStore(path) as store:
        store.add(1, [GradeRow(1, 1, 3, "ok", "3")])
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full: free some space"):
            store.add(1, [GradeRow(1, n, 3, "ok", "x" * 4000) for n in range(2, 200)])
        store._db.execute("PRAGMA max_page_count = 100000")
        assert store.count() == 1
        store.add(1, [GradeRow(1, 2, 4, "ok", "4")])
    with GradeStore(path) as store:
        assert {row.passage_id: row.rating for row in store.answers(1, 1).values()} == {1: 3, 2: 4}


def test_readers_see_the_last_commit_during_a_write_transaction(tmp_path: Path) -> None:
    with GradeStore(tmp_path / "s") as writer, GradeStore(tmp_path / "s") as reader:
        writer.add(1, [GradeRow(1, 1, 3, "ok", "3")])
        with closing(sqlite3.connect(tmp_path / "s", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT INTO grade VALUES (1, 1, 2, 3, 'ok', '', NULL, NULL, NULL)")
            assert reader.count() == 1
            other.execute("COMMIT")
        assert reader.count() == 2


def test_reading_creates_no_file_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s"
    with GradeStore(path, write=False) as store:
        assert store.count() == 0
        assert store.grader_id(b"g") is None
    assert not path.parent.exists()
    with GradeStore(path) as store:
        store.add(1, [GradeRow(1, 1, 3, "ok", "3")])
    with GradeStore(path, write=False) as store:
        assert store.count() == 1
        with pytest.raises(StoreError, match="readonly"):
            store.add(1, [GradeRow(1, 2, 3, "ok", "3")])


@pytest.mark.parametrize("items_at_a_time", [1, 2, 256])
def test_columns_of_answers_equal_the_rows_for_any_text(
    tmp_path: Path, items_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trecexam.grades.store._ITEMS", items_at_a_time)
    texts = ["4", "", "\0 4", "ü\0\0", "x" * 70, "a\nb"]
    with GradeStore(tmp_path / "grades.sqlite") as store:
        grader = store.add_grader(b"g", "{}")
        plain, odd, none = store.add_ids("item", [b"plain", b"odd", b"none"])
        passages = store.add_ids("passage", [bytes([n]) for n in range(len(texts))])
        store.add(grader, [GradeRow(plain, passage, 3, "ok", "3") for passage in reversed(passages)])
        rows = [GradeRow(odd, p, None, "unparsed", text) for p, text in zip(passages, texts, strict=True)]
        store.add(grader, rows)
        columns = store.columns(grader, [plain, odd, none], answers=True)
        found = zip(columns.keys.tolist(), columns.codes.tolist(), columns.answers.to_pylist(), strict=True)
        assert list(found) == [
            (item << 32 | passage, -2 if row.rating is None else row.rating, row.answer)
            for item in (plain, odd)
            for passage, row in sorted(store.answers(grader, item).items())
        ]


@pytest.mark.parametrize("write", [True, False])
def test_an_irregular_file_is_a_one_line_error_without_blocking(tmp_path: Path, write: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(StoreError, match=rf"{name}: is a folder, a pipe or a device.*move it away"):
            GradeStore(tmp_path / name, write=write)
