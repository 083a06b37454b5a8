"""Vectors cached with the track; no answer depends on them."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.records import Item
from trecexam.graders import Cell, embedding
from trecexam.graders.embedding import EmbeddingGrader, KeptVectors
from trecexam.graders.meter import measured
from trecexam.graders.weights import offline_folder

MAKER = {"weights": "one"}


def vectors(*texts: str) -> dict[str, Any]:
    return {text: np.array([len(text), 0.1, -1 / 3], np.float32) for text in texts}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return {text: vector.tobytes() for text, vector in one.items()} == {
        text: vector.tobytes() for text, vector in other.items()
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite"


def test_stored_vectors_are_read_back_unchanged_and_others_are_not_found(path: Path) -> None:
    KeptVectors(path, MAKER).add(vectors("a", "bb", "\ud800"))
    assert same(KeptVectors(path, MAKER).get(["a", "c", "\ud800"]), vectors("a", "\ud800"))
    assert KeptVectors(path, {"weights": "two"}).get(["a"]) == {}


def test_after_any_damage_a_vector_is_unchanged_or_computed_again(path: Path) -> None:
    rng = random.Random(0)
    made = {f"text {number}": np.array([number, 0.1], np.float32) for number in range(60)}
    KeptVectors(path, MAKER).add(made)
    whole = path.read_bytes()
    for number in range(300):
        damaged = bytearray(whole)
        # The first page has the schema.
        bit = rng.randrange(8 * (len(whole) if number % 3 else 4096))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        kept = KeptVectors(path, MAKER)
        found = kept.get([*made])
        assert same(found, {text: made[text] for text in found})
        kept.add({text: vector for text, vector in made.items() if text not in found})
        again = kept.get([*made])
        assert same(again, {text: made[text] for text in again})


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_an_irregular_file_is_replaced(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    kept = KeptVectors(path, MAKER)
    assert kept.get(["a"]) == {}
    kept.add(vectors("a"))
    assert same(kept.get(["a"]), vectors("a"))


def test_an_unwritable_folder_or_file_is_ignored(path: Path, tmp_path: Path) -> None:
    elsewhere = KeptVectors(tmp_path / "none" / "vectors.sqlite", MAKER)
    elsewhere.add(vectors("a"))
    assert elsewhere.get(["a"]) == {}
    assert not (tmp_path / "none").exists()
    (path / "file").mkdir(parents=True)
    kept = KeptVectors(path, MAKER)
    kept.add(vectors("a"))
    assert kept.get(["a"]) == {}


def test_writing_waits_for_another_process_and_then_gives_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptVectors(path, MAKER)
    kept.add(vectors("a"))
    monkeypatch.setattr(embedding, "PATIENCE", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    kept.add(vectors("b"))
    assert kept.get(["a"]) == {}
    other.execute("ROLLBACK")
    other.close()
    assert same(kept.get(["a", "b"]), vectors("a"))


def test_several_processes_can_add_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine two seconds are over before the others have written; then vectors are left.
    monkeypatch.setattr(embedding, "PATIENCE", 60.0)
    KeptVectors(path, MAKER).add(vectors("first"))
    parts = [[f"{number}" for number in range(start, start + 40)] for start in range(0, 400, 20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda texts: KeptVectors(path, MAKER).add(vectors(*texts)), parts))
    texts = [text for part in parts for text in part]
    assert same(KeptVectors(path, MAKER).get(texts), vectors(*texts))


def test_the_oldest_vectors_are_removed_if_there_are_too_many(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptVectors(path, MAKER)
    monkeypatch.setattr(embedding, "MOST_BYTES", 3 * (3 * 4 + 8))
    for text in "abcde":
        kept.add(vectors(text))
    assert sorted(kept.get(list("abcde"))) == ["c", "d", "e"]


class Counting(EmbeddingGrader):
    """Records what it embeds."""

    seen: list[str]

    def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        return np.array([[text.count(word) + 0.5 for word in "aeiou"] for text in texts], np.float32) / 9


def graded(path: Path, items: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The texts that a new process embeds, and the cosines of the passages and items."""
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    grader = Counting(folder, device="cpu", vectors_path=path)
    grader.seen = []
    cells = [
        Cell("q", "", text, text, Item("q", f"q/{item}", item)) for text in ("sea", "bee") for item in items
    ]
    answers = {
        f"{cell.doc_id} {cell.item.text}": answer.raw
        for batch in grader.grade(cells)
        for cell, answer in batch
    }
    return sorted(grader.seen), answers


def test_a_new_question_embeds_only_itself_and_answers_do_not_depend_on_the_cache(path: Path) -> None:
    first, answers = graded(path, ["one"])
    assert first == ["bee", "one", "sea"]
    second, more = graded(path, ["one", "two"])
    assert second == ["two"]
    assert more == graded(path.with_name("other"), ["two", "one"])[1]
    assert answers.items() <= more.items()
    timed: list[Any] = []
    measured(lambda part: timed.append(graded(path, part)), ["one"], 1)
    assert timed == [(first, answers)]


def test_the_environment_of_cached_vectors_is_available_without_loading_a_model(path: Path) -> None:
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    cell = Cell("q", "", "d", "a text", Item("q", "q/1", "a question"))
    environments = []
    for _ in range(2):
        grader = EmbeddingGrader(folder, device="cpu", dtype="bfloat16", vectors_path=path)
        assert [answer.status for batch in grader.grade([cell]) for _, answer in batch] == ["ok"]
        environments.append(grader.environment)
    assert "_model" not in vars(grader)
    assert environments[0] == environments[1]
    assert environments[0] is not None
    assert (environments[0]["device"], environments[0]["dtype"]) == ("cpu", "bfloat16")
