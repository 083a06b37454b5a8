"""The live state behind the pages while files change, disappear and break."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support import write_run
from worker_thread import live_track

from trecexam.extensions.page.gather import queries
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.urls import Urls

urls = Urls()


@pytest.fixture
def live(track: Path) -> Iterator[LiveTrack]:
    with live_track(track) as opened:
        assert opened.wait_for(lambda one: one.view is not None)
        yield opened


def test_a_dropped_run_is_shown_once_the_file_is_stable(live: LiveTrack, track: Path) -> None:
    write_run(track / "runs" / "new.run", {"q1": ["q1-d01"]})
    assert live.reload()
    assert live.view is not None
    assert "new" not in live.view.runs
    assert live.wait_for(lambda one: one.view is not None and "new" in one.view.runs, 15)


@pytest.mark.parametrize(
    "breaking",
    [
        lambda root: (root / "bank.questions.jsonl").unlink(),
        lambda root: (root / "bank.questions.jsonl").write_text("{"),
        lambda root: (root / "trecexam.toml").write_text("[track"),
        lambda root: (root / ".trecexam" / "grades.sqlite").write_text("no store"),
        lambda root: (shutil.rmtree(root / "runs"), (root / "runs").write_text("")),
        lambda root: root.rename(root.with_name("elsewhere")),
    ],
    ids=["no bank", "half a bank", "half the settings", "no store", "no runs", "no track"],
)
def test_after_an_error_the_last_good_state_is_kept_and_the_reason_shown(
    track: Path, client: TestClient, breaking: Callable[[Path], object]
) -> None:
    live = client.app.state.live  # type: ignore[attr-defined]
    aside = track.with_name("aside")
    shutil.copytree(track, aside)
    breaking(track)
    live.reload()
    assert live.trouble
    page = client.get("/")
    assert page.status_code == 200
    assert "run0" in page.text
    assert "cannot be read now" in page.text
    shutil.rmtree(track, ignore_errors=True)
    aside.rename(track)
    live.reload()
    assert live.trouble == ""
    assert "cannot be read now" not in client.get("/").text


def test_an_unreadable_store_is_reported_next_to_the_ratings(track: Path, client: TestClient) -> None:
    path = track / ".trecexam" / "grades.sqlite"
    path.unlink()
    path.write_bytes(b"half a store")
    page = client.get(urls.passage("q1", "q1-d00", item="q1/0"))
    assert page.status_code == 200
    assert "The answers cannot be read now" in page.text
    assert 'class="rating r' in page.text


def test_writers_never_wait_for_readers(track: Path, client: TestClient) -> None:
    """Readers run all the time; no transaction of a writer without patience is rejected."""
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            assert client.get(urls.passage("q1", "q1-d00")).status_code == 200

    reader = threading.Thread(target=read)
    reader.start()
    db = sqlite3.connect(track / ".trecexam" / "grades.sqlite", isolation_level=None, timeout=0)
    try:
        for number in range(200):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT OR IGNORE INTO item (digest) VALUES (?)", (b"%d" % number,))
            db.execute("COMMIT")
        busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        assert busy in (0, 1)
    finally:
        stop.set()
        reader.join()
        db.close()


def test_a_reader_process_that_dies_is_started_again(track: Path) -> None:
    with LiveTrack(track) as live:
        assert live.wait_for(lambda one: one.view is not None)
        first = live._link._process  # type: ignore[attr-defined]
        first.kill()
        assert live.wait_for(lambda one: bool(one.trouble))
        assert "is started again" in live.trouble
        assert live.view is not None
        assert live.wait_for(lambda one: one.trouble == "" and one.version > 1)
        assert live.call("rubric", queries).table["q1"]["passages"] == 12
        assert live._link._process is not first  # type: ignore[attr-defined]
