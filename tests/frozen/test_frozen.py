"""Recorded outputs of commands on the frozen tracks, compared with the present ones.

For an intended change, add a line with the reason to CHANGES.md; TRECEXAM_FREEZE=1 records the data again.
TRECEXAM_FROZEN_KEEP=FOLDER leaves the tracks there, to be compared with those of another commit.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("sklearn")

import adapter
from recorder import Recorder
from tracks import TRACKS

from trecexam.graders.server import exchange
from trecexam.graders.weights import offline_folder

DATA = Path(__file__).with_name("data")
#: Tracks in which an encoder has a say.
ENCODED = frozenset({"embedding"})
#: At every commit; the others are replayed by `python -m pytest tests/frozen`, and by `--all`.
QUICK = frozenset({"erag", "exam", "fill", "judging", "nuggets", "ragval", "rag", "recorded"})
FREEZE = os.environ.get("TRECEXAM_FREEZE") == "1"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(exchange, "LONGEST_PAUSE", 0.05)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in TRACKS],
)
def test_the_outputs_of_a_frozen_track_are_unchanged(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name in ENCODED and offline_folder() is None:
        pytest.skip("needs the extra `offline`")
    path, kept = DATA / f"{name}.json", os.environ.get("TRECEXAM_FROZEN_KEEP")
    with ExitStack() as stack:
        of = Recorder(tmp_path, stack)
        try:
            TRACKS[name](of)
        finally:
            if kept:
                shutil.copytree(tmp_path, Path(kept) / name, dirs_exist_ok=True)
            now = _frozen(of.steps)
    before = path.read_text(encoding="utf-8") if path.exists() else "[]"
    wrong = differences(json.loads(before), json.loads(now))
    if FREEZE:
        path.write_text(now, encoding="utf-8")
        with capsys.disabled():
            print(
                f"\n{name}: {len(wrong)} differences, each to be explained in CHANGES.md",
                *wrong[:200],
                sep="\n  ",
            )
        return
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:60])


def _frozen(steps: list[dict[str, Any]]) -> str:
    """JSON with a line a value, so that two changes of the data meet in git only where they meet."""
    return "[" + ",\n".join(_lines(step) for step in steps) + "]\n"


def _lines(step: dict[str, Any]) -> str:
    parts = []
    for part, said in step.items():
        name = json.dumps(part)
        if isinstance(said, dict):
            rows = [f"{json.dumps(key)}: {json.dumps(said[key], ensure_ascii=False)}" for key in said]
            parts.append(f"{name}: {{" + ",\n  ".join(rows) + "}")
        elif isinstance(said, list):
            parts.append(
                f"{name}: [" + ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in said) + "]"
            )
        else:
            parts.append(f"{name}: {json.dumps(said, ensure_ascii=False)}")
    return "{" + ",\n ".join(parts) + "}"


def differences(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[str]:
    """What is another thing now; a note, a column or a file that was added is none."""
    if len(before) != len(now):
        return [f"{len(before)} steps were frozen, {len(now)} were run"]
    found = []
    for number, (old, new) in enumerate(zip(before, now, strict=True), 1):
        place, fit = f"{number}. {old['command']}", adapter.of_fit(old["command"])
        for part in (old.keys() | new.keys()) - {"command"}:
            was, now_is = old.get(part), new.get(part)
            if was != now_is:
                found += [f"{place}: {part}: {line}" for line in _told(part, was, now_is, fit)]
    return found


def _told(part: str, was: Any, now: Any, fit: bool) -> list[str]:
    if part == "notes":
        return [f"lost: {note}" for note in was if note not in now]
    if part == "values":
        left, right = (
            Counter(json.dumps(triple, ensure_ascii=False) for triple in each) for each in (was, now)
        )
        known = {triple[1] for triple in was}
        gone, come = (
            [json.loads(triple) for triple in each.elements()] for each in (left - right, right - left)
        )
        # Simulated intervals move where sums of another processor break a tie otherwise.
        rounded = [triple for triple in gone if fit or triple[1].endswith((".low", ".high"))]
        for triple in rounded:
            like = (new for new in come if adapter.near(triple, new))
            if (new := next(like, None)) is not None:
                gone.remove(triple)
                come.remove(new)
        lost = [f"lost or changed: {json.dumps(triple, ensure_ascii=False)}" for triple in gone]
        return lost + [f"new: {json.dumps(t, ensure_ascii=False)}" for t in come if t[1] in known]
    if isinstance(was, dict) and isinstance(now, dict):
        keys = sorted(key for key in was if not adapter.near(was[key], now.get(key)))
        return [f"{key}: {_state(now, key)}" for key in keys]
    if isinstance(was, list) and isinstance(now, list):
        left, right = Counter(was), Counter(now)
        return [f"no longer: {x}" for x in (left - right).elements()] + [
            f"new: {x}" for x in (right - left).elements()
        ]
    return [f"{was!r} is {now!r} now"]


def _state(now: dict[str, Any], key: str) -> str:
    return "is no longer there" if key not in now else "is another one"
