"""A RAG track in one folder sends, stores and scores the same as three tracks with one grader each."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import material
import pytest
from material import toml
from recorder import Recorder
from tracks import lay_out_rag

pytest.importorskip("httpx2")

BEFORE = json.loads(Path(__file__).with_name("data").joinpath("three-folders.json").read_text())


def test_one_folder_sends_stores_and_scores_the_same_as_three(tmp_path: Path) -> None:
    with ExitStack() as stack:
        of = Recorder(tmp_path, stack)
        model = {"name": "openai", "model": "tiny", "base_url": of.server(material.answering)}
        lay_out_rag(of)
        support = toml("graders.support")
        of.write(
            "trecexam.toml",
            toml("grader", **model)
            + toml("graders.nuggets", unit="response", prompt="NuggetAssign")
            + support
            + toml("graders.umbrela", prompt="UMBRELA", pool="citations", qrels="people.qrels")
            + toml("graders.rubric"),
        )
        of.does("watch", of.track, "--once")
        asked = _counted(of.steps[-1]["requests"])
        of.stored(of.track)
        boards = {
            name: of.says("leaderboard", of.track, "--grader", name) and of.steps[-1] for name in _NAMES
        }
    assert asked == _counted(BEFORE["requests"])
    store = of.steps[1]
    assert store["graders"] == BEFORE["graders"]
    assert store["grades"] == BEFORE["grades"]
    for name, board in boards.items():
        now = {(row, column): value for row, column, value in board["values"]}
        missing = {
            (row, column): value
            for row, column, value in BEFORE["leaderboards"][name]
            # Support is another grader's column now; a file's name says the folder.
            if row
            and column != "file"
            and not column.startswith("Support")
            and now.get((row, column)) != value
        }
        assert not missing, name


_NAMES = ("nuggets", "umbrela", "rubric", "support")


def _counted(rows: list[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        key, times = row.rsplit(" x", 1)
        found[key] += int(times)
    return found
