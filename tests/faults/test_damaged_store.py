"""Damage to the grade store: the same leaderboard as without it, or a line that says what to do."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from support import RECORDED, hashed_rating, make_small_track

from trecexam.cli.main import run

SEVERAL = """[track]
depth = 4
[report]
write = false
[graders.rubric]
name = "recorded"
recorded = "rubric.jsonl"
[graders.mini]
kind = "rubric"
name = "recorded"
recorded = "mini.jsonl"
"""


def record(root: Path, name: str, salt: str = "") -> None:
    rows = [
        {
            "query_id": q,
            "doc_id": f"{q}-d{d:02}",
            "item_id": f"{q}/{i}",
            "rating": hashed_rating(salt, q + f"{d}/{i}"),
        }
        for q in ("q1", "q2", "q3")
        for d in range(12)
        for i in range(4)
    ]
    (root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module", params=["one grader", "two graders"])
def track(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    several = request.param == "two graders"
    root = make_small_track(
        tmp_path_factory.mktemp("store") / "track", config=SEVERAL if several else RECORDED
    )
    for name, salt in (("rubric.jsonl", ""), ("mini.jsonl", "m"), ("grades.jsonl", "")):
        record(root, name, salt)
    assert run(["watch", "--once", str(root)]) == 0
    # One file, without a WAL.
    with sqlite3.connect(root / ".trecexam" / "grades.sqlite") as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return root


def shown(root: Path, capfd: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    status = run([*command, str(root)])
    out, err = capfd.readouterr()
    return status, out, err


def flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(1, len(content))]


def ratings_of(path: Path) -> list[tuple[object, ...]] | None:
    """What is stored, by SQLite itself; None where that is refused."""
    try:
        with sqlite3.connect(path) as store:
            rows = store.execute("SELECT grader_id, item_id, passage_id, rating FROM grade").fetchall()
            whole = store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    finally:
        store.close()
    return rows if whole else None


@pytest.mark.parametrize(
    ("damage", "times"), [(flipped, 12), (cut, 20), pytest.param(flipped, 40, marks=pytest.mark.slow)]
)
def test_a_damaged_store_gives_the_right_leaderboard_or_says_what_to_do(
    track: Path,
    capfd: pytest.CaptureFixture[str],
    damage: Callable[[bytes, random.Random], bytes],
    times: int,
) -> None:
    store = track / ".trecexam" / "grades.sqlite"
    whole, stored = store.read_bytes(), ratings_of(store)
    codes = list((track / ".trecexam").rglob("codes"))
    expected = shown(track, capfd, "leaderboard")
    assert expected[0] == 0
    rng = random.Random(44)
    told = 0
    try:
        for number in range(times):
            store.write_bytes(damage(whole, rng))
            for path in codes:
                path.unlink(missing_ok=True)
            for name in ("leaderboard", "status"):
                status, out, err = shown(track, capfd, name)
                assert "Traceback" not in err
                if status == 2:
                    assert err.count("\n") == 1, (number, err)
                    assert "grades.sqlite: " in err
                    assert "move" in err or "make the folder writable" in err, err
                    told += 1
                elif status == 1:
                    assert any(
                        f"{grader}" in line and "grades.sqlite" in line
                        for line in err.splitlines()
                        for grader in ("rubric", "mini")
                    ), err
                    told += 1
                else:
                    assert status == 0
                    if name == "leaderboard" and (out, err) != expected[1:]:
                        # A value that became another valid one: SQLite keeps no checksum of it.
                        now = ratings_of(store)
                        assert now not in (None, stored), (number, out, err)
    finally:
        for path in store.parent.glob("grades.sqlite-*"):
            path.unlink()
        store.write_bytes(whole)
    assert told or times < 20


@pytest.mark.parametrize("command", ["leaderboard", "status", "correlate"])
def test_a_grader_without_its_recording_is_named_and_the_others_are_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    root = make_small_track(
        tmp_path / "track",
        config=f'{SEVERAL}[graders.third]\nkind = "rubric"\nname = "recorded"\nrecorded = "third.jsonl"\n',
    )
    for name in ("rubric", "mini", "third"):
        record(root, f"{name}.jsonl", name)
    assert run(["watch", "--once", str(root)]) == 0
    assert shown(root, capfd, command)[0] == 0
    (root / "mini.jsonl").unlink()
    status, out, err = shown(root, capfd, command)
    assert status == 1
    assert sum("mini" in line and "mini.jsonl" in line for line in err.splitlines()) == 1
    assert "rubric" in out
    assert "third" in out
