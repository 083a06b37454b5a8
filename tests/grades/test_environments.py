"""The environment of answers is stored with them, and mixed environments are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, make_small_track, write_run

import trecexam
from trecexam.grades.store import GradeRow, GradeStore

CPU = {"device": "cpu", "processor": "one", "dtype": "float32", "torch": "2.13.0"}
CUDA = {"device": "cuda", "processor": "two", "dtype": "bfloat16", "torch": "2.13.0"}


class Placed(HashGrader):
    """Reports its environment once it has graded."""

    def __init__(self, where: dict[str, str]) -> None:
        super().__init__()
        self.where = where
        self.made_on: dict[str, str] | None = None

    @property
    def environment(self) -> dict[str, str] | None:
        return self.made_on

    def grade(self, cells: Any) -> Any:
        for batch in super().grade(cells):
            self.made_on = self.where
            yield batch


def manifest(root: Path) -> dict[str, Any]:
    return json.loads((root / "out" / "manifest.json").read_bytes())


def update(root: Path, where: dict[str, str] | None) -> Any:
    with trecexam.open_track(root, grader=HashGrader() if where is None else Placed(where)) as track:
        return track.update()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_small_track(tmp_path / "track", queries=2, docs=6, items=2)


def add_run(root: Path) -> None:
    """Adds a run with a passage that no run had in its first ranks."""
    texts = [json.loads(line) for line in (root / "passages.jsonl").read_text().splitlines()]
    with (root / "passages.jsonl").open("a") as file:
        for name in ("new", "newer"):
            file.write(json.dumps({**texts[0], "docid": name, "text": f"a passage that is {name}"}) + "\n")
    write_run(root / "runs" / "later.run", {"q1": ["new", "newer"]})


def test_the_manifest_names_the_environment_of_all_answers_where_the_grader_has_one(
    root: Path, tmp_path: Path
) -> None:
    update(root, CPU)
    assert manifest(root)["environments"] == {"mixed": [], "graded_on": [CPU]}
    assert not update(root, CPU).changed
    without = make_small_track(tmp_path / "without", queries=1)
    update(without, None)
    assert "environments" not in manifest(without)
    assert not update(without, None).changed


def test_answers_of_two_devices_are_counted_separately(root: Path) -> None:
    first = update(root, CPU).graded
    add_run(root)
    assert update(root, CUDA).graded == 4
    made_on = manifest(root)["environments"]
    assert made_on["mixed"] == ["device", "dtype", "processor"]
    assert made_on["graded_on"] == [{**CPU, "answers": first}, {**CUDA, "answers": 4}]


def test_a_repeated_answer_counts_for_its_latest_environment(tmp_path: Path) -> None:
    with GradeStore(tmp_path / "s") as store:
        grader = store.add_grader(b"g", "{}")
        store.add(grader, [GradeRow(1, n, 3, "ok", "3") for n in range(5)], CPU)
        store.add(grader, [GradeRow(1, n, 3, "ok", "3") for n in range(2)], CUDA)
        store.add(grader, [GradeRow(1, 9, None, "error", "3")], CUDA)
        assert store.environments(grader) == [(CPU, 3), (CUDA, 3)]
        store.forget(grader, [1 << 32 | 9])
        assert store.environments(grader) == [(CPU, 3), (CUDA, 2)]
        assert store.n_environments() == 2
