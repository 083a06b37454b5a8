"""The live state behind the pages while files change, disappear and break."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from served import Served, serving
from starlette.testclient import TestClient
from support import ROOT, until, write_run
from worker_thread import live_track

from trecexam.cli.main import run
from trecexam.extensions.page import guard, running
from trecexam.extensions.page.gather import queries
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.running import address, is_loopback
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


# The running server: sockets, misbehaving clients, and the command line.


#: The beginning of a form request.
HEAD = "POST /override HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as made:
        yield made


def answer(made: socket.socket) -> bytes:
    """All bytes until the other side closes."""
    found = b""
    try:
        while part := made.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def test_a_huge_body_is_rejected_before_it_is_read(served: Served) -> None:
    with connected(served.url) as made:
        made.sendall(f"{HEAD}Content-Length: {10 << 30}\r\n\r\n".encode() + b"a=" + b"x" * 1000)
        assert answer(made).startswith(b"HTTP/1.1 413 ")


def test_of_an_endless_chunked_body_little_is_read(served: Served) -> None:
    with connected(served.url) as made:
        made.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        sent = 0
        try:
            while sent < 200 << 20:
                made.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 32 << 20


def test_huge_request_headers_are_rejected(served: Served) -> None:
    with connected(served.url) as made:
        try:
            made.sendall(
                b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * (4 * running.MAX_HEAD) + b"\r\n\r\n"
            )
        except (BrokenPipeError, ConnectionResetError):
            return
        found = answer(made)
        assert not found or found.startswith(b"HTTP/1.1 4")


def test_the_server_does_not_wait_for_a_missing_form_body(
    track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.3)
    with serving(track) as served, connected(served.url) as made:
        made.sendall(f"{HEAD}Content-Length: 100\r\n\r\ncsrf=".encode())
        assert made.recv(100).startswith(b"HTTP/1.1 408 ")


#: A client that keeps connections open.
IDLE: dict[str, Callable[[socket.socket], object]] = {
    "silent": lambda made: None,
    "in the middle of a head": lambda made: made.sendall(b"GET / HTTP/1.1\r\nHos"),
    "after an answer": lambda made: is_healthy(made),
}
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def is_healthy(made: socket.socket) -> bool:
    """Whether the page responds on this connection, which stays open."""
    made.sendall(HEALTH)
    found = b""
    while not found.endswith(b"ok\n") and (part := made.recv(4096)):
        found += part
    return found.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("idle", IDLE)
def test_idle_connections_do_not_block_readers(served: Served, idle: str) -> None:
    with ExitStack() as stack:
        for _ in range(250):
            IDLE[idle](stack.enter_context(connected(served.url)))
        for _ in range(5):
            with urllib.request.urlopen(served.url) as page:
                assert b"run0" in page.read()
        latest = stack.enter_context(connected(served.url))
        assert is_healthy(latest)
        # It is not closed for clients that only connect.
        for _ in range(100):
            stack.enter_context(connected(served.url))
        assert is_healthy(latest)


def test_a_running_request_is_not_aborted_for_later_clients(served: Served) -> None:
    with ExitStack() as stack, connected(served.url) as made:
        made.sendall(f"{HEAD}Content-Length: 7\r\n\r\ncsrf".encode())
        for _ in range(250):
            stack.enter_context(connected(served.url))
        assert b"run0" in urllib.request.urlopen(served.url).read()
        made.sendall(b"=xy")
        assert made.recv(4096).startswith(b"HTTP/1.1 403 ")


def test_of_too_many_concurrent_requests_as_many_as_possible_are_answered(
    track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "REQUESTS", 5)
    with serving(track) as served, ExitStack() as stack:
        waiting = [stack.enter_context(connected(served.url)) for _ in range(5)]
        for made in waiting:
            made.sendall(f"{HEAD}Content-Length: 7\r\n\r\ncsrf".encode())
        until_all_wait(served)
        with connected(served.url) as another:
            another.sendall(HEALTH)
            assert answer(another).startswith(b"HTTP/1.1 503 ")
        for made in waiting:
            made.sendall(b"=xy")
            assert made.recv(4096).startswith(b"HTTP/1.1 403 ")
        assert urllib.request.urlopen(f"{served.url}/healthz").read() == b"ok\n"


def until_all_wait(served: Served) -> None:
    """Returns when the page is full and tells new clients so."""

    def is_full() -> bool:
        with connected(served.url) as made:
            made.sendall(HEALTH)
            return made.recv(4096).startswith(b"HTTP/1.1 503 ")

    until(is_full)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _heed_control_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_exits_at_once_with_130_and_leaves_no_process_or_log(track: Path) -> None:
    command = [sys.executable, "-m", "trecexam", "serve", str(track), "--port", "0"]
    token = "s3cret-token-of-22-letters"
    command += ["--token", token]
    # A non-interactive shell makes background processes ignore Ctrl-C.
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(), preexec_fn=_heed_control_c
    ) as child:
        assert child.stderr is not None
        line = child.stderr.readline()
        url = next(word for word in line.split() if word.startswith("http://"))
        assert url.endswith(f"?token={token}")
        page = urllib.request.urlopen(url, timeout=60)
        # A browser keeps its connection.
        readers = children(child.pid)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        # The displayed token is in no log.
        assert child.stderr.read().strip() == ""
        page.close()
    assert not [pid for pid in readers if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_public_address_always_needs_a_token(
    track: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[str | None] = []

    class NoServer:
        def __init__(self, *args: object, token: str | None, **options: object) -> None:
            given.append(token)

        def run(self) -> None: ...

    monkeypatch.setattr("trecexam.extensions.page.running.Server", NoServer)
    monkeypatch.delenv("TRECEXAM_TOKEN", raising=False)
    for host in ("127.0.0.1", "0.0.0.0"):
        assert run(["serve", str(track), "--port", "0", "--host", host]) == 0
    monkeypatch.setenv("TRECEXAM_TOKEN", "mine-alone-of-22-letters")
    assert run(["serve", str(track), "--port", "0"]) == 0
    assert given[0] is None
    assert given[1]
    assert len(given[1]) >= 22
    assert given[2] == "mine-alone-of-22-letters"
    shown = capsys.readouterr().err.splitlines()
    assert given[1] in shown[1]
    assert "token" not in shown[0]


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("", False), ("192.168.0.7", False), ("localhost.example", False)],
)  # fmt: skip
def test_loopback_addresses_are_recognised(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone


def test_the_printed_address_can_be_opened() -> None:
    assert address("::1", 80, None) == "http://[::1]:80/"
    assert address("127.0.0.1", 80, "a&b") == "http://127.0.0.1:80/?token=a%26b"
    assert address("::1", 80, "t", "grader/mini") == "http://[::1]:80/grader/mini?token=t"
    assert "0.0.0.0" not in address("0.0.0.0", 80, "t")
