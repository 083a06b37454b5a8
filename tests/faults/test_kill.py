from __future__ import annotations

import json
import random
import signal
import sqlite3
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from forked import preload, start_forked
from slow_update import update_slowly
from support import REPORTED, make_small_track, tsv_rows, write_run

ROUNDS = 12
NO_REPORT = "[report]\nwrite = false\n"


def start(root: Path, *, own: bool = False) -> BaseProcess:
    """An update in a separate process, which has loaded all and begins now."""
    output = printed(root)
    output.write_text("")
    child = start_forked(update_slowly, root, own=own, folder=root, output=output)
    end = time.monotonic() + 60
    while "ready\n" not in output.read_text():
        assert child.is_alive() or "ready\n" in output.read_text(), output.read_text()
        assert time.monotonic() < end
        time.sleep(0.001)
    return child


@pytest.fixture(scope="module", autouse=True)
def _language_models_are_imported_once() -> None:
    preload("transformers.models.t5.modeling_t5")


def printed(root: Path) -> Path:
    return root.with_name(f"{root.name}.printed")


def kill(child: BaseProcess) -> bool:
    """Whether it was still alive."""
    child.kill()
    child.join(60)
    return child.exitcode == -signal.SIGKILL


def finish(child: BaseProcess, root: Path) -> None:
    child.join(60)
    assert child.exitcode == 0, printed(root).read_text()
    assert printed(root).read_text() == "ready\ndone\n"


def stored(root: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(root / ".trecexam" / "grades.sqlite") as db:
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            return []  # killed before its tables were created
        found = db.execute(
            "SELECT hex(grader.digest), hex(item.digest), hex(passage.digest), rating, status, answer "
            "FROM grade JOIN grader ON grader.id = grader_id JOIN item ON item.id = item_id "
            "JOIN passage ON passage.id = passage_id ORDER BY 1, 2, 3"
        ).fetchall()
    db.close()
    return found


def outputs(root: Path) -> dict[str, bytes]:
    """Files of out/ and out/plots/ but the history, which has times."""
    paths = sorted(path for folder in ("out", "out/plots") for path in (root / folder).glob("*.*"))
    return {path.name: path.read_bytes() for path in paths if path.name != "history.tsv"}


@pytest.mark.slow
def test_after_random_kills_the_result_equals_an_undisturbed_run(tmp_path: Path) -> None:
    calm, stormy = (
        make_small_track(tmp_path / name, config=REPORTED, queries=4, docs=13) for name in ("calm", "stormy")
    )
    child = start(calm)
    began = time.monotonic()
    finish(child, calm)
    whole = time.monotonic() - began

    rng = random.Random(20261120)
    killed, seen = 0, 0
    while killed < ROUNDS:
        child = start(stormy)
        # Short times first, so that some rounds die while grading; later ones while writing.
        time.sleep(rng.uniform(0, whole * (0.2 if killed < ROUNDS // 2 else 1.1)))
        if not kill(child):
            # It finished before the signal came: create work again.
            (stormy / "out" / "manifest.json").unlink(missing_ok=True)
        killed += 1
        now = len(stored(stormy)) if (stormy / ".trecexam" / "grades.sqlite").exists() else 0
        assert now >= seen, "a stored grade was lost"
        seen = now
        manifest = stormy / "out" / "manifest.json"
        if manifest.exists():
            json.loads(manifest.read_text())
    finish(start(stormy), stormy)
    assert stored(stormy) == stored(calm)
    assert outputs(stormy) == outputs(calm)
    # After any number of kills: one leaderboard, one row a run.
    once, often = (
        [{**row, "time": ""} for row in tsv_rows(root / "out" / "history.tsv")] for root in (calm, stormy)
    )
    assert often == once


@pytest.mark.slow
def test_a_kill_during_logging_neither_loses_nor_repeats_a_moved_run(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track", config=f"[track]\ndepth = 8\n{NO_REPORT}")
    finish(start(root), root)
    rng = random.Random(20261121)
    for number in range(ROUNDS // 2):
        write_run(root / "runs" / f"new{number}.run", {"q1": [f"q1-d{number:02}"], "q2": ["q2-d00"]})
        child = start(root)
        time.sleep(rng.uniform(0, 0.25))
        kill(child)
        if rng.random() < 0.5:
            finish(start(root), root)
    finish(start(root), root)
    last: dict[str, tuple[str, str]] = {}
    for row in tsv_rows(root / "out" / "history.tsv"):
        assert last.get(row["run"], ("", "")) == (row["rank.before"], row["mean.before"])
        last[row["run"]] = row["rank.after"], row["mean.after"]
    assert {f"new{number}" for number in range(ROUNDS // 2)} <= last.keys()


@pytest.mark.slow
def test_a_language_model_killed_within_a_batch_resumes(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tiny_models import save_t5

    model = save_t5(tmp_path / "tiny-t5")
    settings = f'[track]\ndepth = 8\n[grader]\nname = "seq2seq"\nmodel = "{model}"\nmax_batch_tokens = 1200\n'
    settings += NO_REPORT
    calm, stormy = (make_small_track(tmp_path / name, config=settings) for name in ("calm", "stormy"))
    child = start(calm, own=True)
    began = time.monotonic()
    finish(child, calm)
    whole = time.monotonic() - began

    seen = []
    for part in (0.3, 0.3, 0.3):
        child = start(stormy, own=True)
        time.sleep(whole * part)
        kill(child)
        seen.append(len(stored(stormy)))
    assert seen == sorted(seen)
    assert 0 < seen[0] < len(stored(calm)), f"killed too early or too late: {seen}"
    finish(start(stormy, own=True), stormy)
    assert stored(stormy) == stored(calm)
    assert outputs(stormy) == outputs(calm)
