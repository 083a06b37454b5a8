"""Servers that are down, slow, broken or hostile."""

from __future__ import annotations

import base64
import email.utils
import html
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import KEY, Exchange, serving
from support import ask, until

import trecexam
from trecexam import daemon as daemons
from trecexam.cli.main import run
from trecexam.daemon import Daemon
from trecexam.errors import GraderError, TrecexamError
from trecexam.graders import Answer, Cell, base
from trecexam.graders.server import exchange
from trecexam.graders.server.client import HIDDEN, Secret
from trecexam.graders.server.grader import ServerGrader

Make = Callable[..., ServerGrader]
MakeTrack = Callable[..., Path]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def graded(grader: ServerGrader, cells: list[Cell]) -> list[tuple[Cell, Answer]]:
    return [answer for batch in grader.grade(cells) for answer in batch]


def first_time(bad: Callable[[Exchange], None]) -> Callable[[Exchange], None]:
    """A script that fails the first time that a prompt is sent."""
    return lambda exchange: bad(exchange) if exchange.again == 1 else exchange.say()


BAD: dict[str, Callable[[Exchange], None]] = {
    "500": lambda exchange: exchange.fail(500),
    "503": lambda exchange: exchange.fail(503),
    "429": lambda exchange: exchange.fail(429, retry_after="0"),
    "cut": Exchange.cut,
    "html": lambda exchange: exchange.send(200, b"<!doctype html><h1>Sign in</h1>", "text/html"),
    "html error": lambda exchange: exchange.send(502, b"<h1>Bad gateway</h1>", "text/html"),
    "junk": lambda exchange: exchange.send(200, b"\x00\xff\xfe{"),
    "other json": lambda exchange: exchange.send(200, b'{"hello": [1]}'),
    "a list": lambda exchange: exchange.send(200, b"[1, 2]"),
    "no choices": lambda exchange: exchange.send(200, b'{"choices": []}'),
    "an odd choice": lambda exchange: exchange.send(200, b'{"choices": [7]}'),
    "no message": lambda exchange: exchange.send(200, b'{"choices": [{"message": "x"}]}'),
    "an error in 200": lambda exchange: exchange.send(200, b'{"error": {"message": "overloaded"}}'),
    "deep": lambda exchange: exchange.send(200, b"[" * 100_000),
    "half of utf-8": lambda exchange: exchange.send(200, b'{"choices": [{"message": {"content": "\xc3'),
    "bad gzip": lambda exchange: exchange.send(200, b"no gzip", content_encoding="gzip"),
    "endless": Exchange.stream,
    "a hang": Exchange.hang,
    "a trickle": lambda exchange: exchange.stream(0.05),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_transient_failures_are_retried_without_loss_or_duplicates(
    make: Make, cells: list[Cell], bad: Callable[[Exchange], None]
) -> None:
    some = cells[:8]
    with serving(first_time(bad)) as server:
        answers = graded(make(server.url, timeout=0.5), some)
    assert sorted(cell.item.item_id + cell.doc_id for cell, _ in answers) == sorted(
        cell.item.item_id + cell.doc_id for cell in some
    )
    assert all(answer.status == "ok" for _, answer in answers)
    assert set(server.seen.values()) == {2}


@pytest.mark.parametrize("name", ["500", "429", "html", "junk", "deep", "a hang"])
def test_permanent_failures_are_a_one_line_error_and_nothing_is_stored(
    track: MakeTrack,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(exchange, "PATIENCE", 0.3)
    with serving(BAD[name]) as server:
        root = track(server.url, timeout=0.3, retries=1, concurrency=2)
        assert run(["watch", str(root), "--once"]) == 2
    err = capsys.readouterr().err.strip()
    assert len(err.splitlines()) == 1
    assert err.startswith(f"trecexam: {server.url} ")
    with trecexam.open_track(root) as opened:
        assert list(opened.grades()) == []


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (401, {}, r"refuses the key in TEST_KEY \(HTTP 401\)$"),
        (403, {}, r"refuses the key in TEST_KEY \(HTTP 403\): it broke$"),
        (404, {}, "HTTP 404: it broke: see `base_url`, `api` and `model`"),
        (402, {}, "HTTP 402: it broke"),
        (301, {"location": "https://b/v1"}, "leads to https://b/v1 .* set `base_url`"),
        (418, {}, "HTTP 418"),
        # It is not waited for an hour, nor for money.
        (429, {"retry_after": "3600"}, "HTTP 429: it broke"),
        (429, {"code": "insufficient_quota"}, "HTTP 429: it broke"),
    ],
)
def test_a_server_that_rejects_everything_gets_no_more_requests(
    make: Make, cells: list[Cell], status: int, headers: dict[str, str], message: str
) -> None:
    with (
        serving(lambda exchange: exchange.fail(status, **headers)) as server,
        pytest.raises(GraderError, match=message),
    ):
        graded(make(server.url, concurrency=1), cells)
    assert len(server.bodies) <= 4


def test_an_unusable_proxy_is_a_one_line_error_without_its_password(
    make: Make, cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"nonsense://user:{KEY}@host")
    with pytest.raises(GraderError, match="proxies or certificates") as caught:
        graded(make("http://somewhere/v1"), cells)
    assert KEY not in str(caught.value)


def test_fill_reports_that_a_server_gave_no_answer(
    track: MakeTrack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(exchange: Exchange) -> None:
        exchange.fail(500) if "passage 2 about q1" in exchange.prompt else exchange.say()

    with serving(script) as server:
        root = track(server.url, retries=0)
        qrels = root / "qrels.txt"
        lines = qrels.read_text().splitlines(keepends=True)
        qrels.write_text("".join(line for line in lines if " q1-d02 " not in line))
        merged = tmp_path / "merged.txt"
        words = ["fill", str(root), "--qrels", str(qrels), "--map", "identity", "-o", str(merged)]
        assert run(words) == 2
    assert "gave no answer to 2 cells" in capsys.readouterr().err
    assert not merged.exists()


@pytest.mark.parametrize("date", [False, True])
def test_retry_after_is_honoured_by_all_requests(make: Make, cells: list[Cell], date: bool) -> None:
    refused: list[float] = []
    asked: list[float] = []

    def script(exchange: Exchange) -> None:
        asked.append(time.time())
        if not refused:
            refused.append(time.time())
            # A date is in whole seconds.
            when = email.utils.formatdate(time.time() + 2, usegmt=True) if date else "1"
            exchange.fail(429, retry_after=when)
        else:
            exchange.say()

    with serving(script) as server:
        assert len(graded(make(server.url, concurrency=1), cells[:6])) == 6
    assert len(asked) == 7
    assert asked[1] - refused[0] >= 0.95


def test_a_text_that_the_server_rejects_is_an_error_of_that_cell(make: Make, cells: list[Cell]) -> None:
    def script(exchange: Exchange) -> None:
        if "passage 3 " in exchange.prompt:
            exchange.fail(400, "odd bytes in the prompt")
        elif "passage 4 " in exchange.prompt:
            exchange.fail(400, "This model's maximum context length is 20 tokens")
        else:
            exchange.say()

    with serving(script) as server:
        answers = graded(make(server.url), cells)
    failed = {cell.doc_id: answer.raw for cell, answer in answers if answer.status == "error"}
    assert failed["d3"] == "was rejected by the server, which answers HTTP 400: odd bytes in the prompt"
    assert failed["d4"].endswith("`max_characters` in [grader] cuts passages")
    assert len(failed) == 2
    assert len(answers) == len(cells)


def test_a_single_rejected_text_is_told_from_a_server_that_rejects_all(make: Make) -> None:
    def script(exchange: Exchange) -> None:
        exchange.say() if exchange.is_probe else exchange.fail(422, "odd")

    with serving(script) as server:
        ((_, answer),) = graded(make(server.url), [ask("text", "q?")])
        assert answer.status == "error"
    with (
        serving(lambda exchange: exchange.fail(422, "temperature must be 1")) as server,
        pytest.raises(GraderError, match="temperature must be 1"),
    ):
        graded(make(server.url), [ask("text", "q?")])


@pytest.mark.parametrize("said", ["0", "Wed, 21 Oct 2015 07:28:00 GMT", "0.001"])
def test_repeated_retry_after_zero_does_not_cause_a_request_storm(
    make: Make, cells: list[Cell], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "FIRST_PAUSE", 0.3)
    monkeypatch.setattr(exchange, "LONGEST_PAUSE", 0.3)
    monkeypatch.setattr(exchange, "PATIENCE", 1.0)
    with (
        serving(lambda exchange: exchange.fail(429, retry_after=said)) as server,
        pytest.raises(GraderError, match="429"),
    ):
        graded(make(server.url, concurrency=1), cells[:1])
    assert len(server.bodies) < 40


def test_cells_that_failed_temporarily_are_retried_at_the_next_update_and_no_others(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = True

    def script(exchange: Exchange) -> None:
        if broken and "passage 2 about q1" in exchange.prompt:
            exchange.fail(500)
        else:
            exchange.say()

    with serving(script) as server:
        root = track(server.url, retries=1)
        assert run(["watch", str(root), "--once"]) == 1
        err = capsys.readouterr().err
        assert "ended early" in err
        assert "gave no answer to 2 cells, which are sent again: it answers HTTP 500: it broke" in err
        assert (root / "out" / "leaderboard.tsv").exists()
        before = dict(server.seen)
        broken = False
        assert run(["watch", str(root), "--once"]) == 0
    again = {prompt: count - before.get(prompt, 0) for prompt, count in server.seen.items()}
    assert sum(again.values()) == 2
    assert all("passage 2 about q1" in prompt for prompt, count in again.items() if count)


def test_errors_are_retried_only_on_request(track: MakeTrack, capsys: pytest.CaptureFixture[str]) -> None:
    strict = True

    def script(exchange: Exchange) -> None:
        if strict and "passage 2 about q1" in exchange.prompt:
            exchange.fail(400, "odd")
        else:
            exchange.say()

    with serving(script) as server:
        root = track(server.url)
        assert run(["watch", str(root), "--once"]) == 1
        strict = False
        before = dict(server.seen)
        assert run(["watch", str(root), "--once"]) == 1
        assert dict(server.seen) == before
        capsys.readouterr()
        for words, calls in ((["--json"], 0), (["--json", "--retry-errors"], 2)):
            assert run(["watch", str(root), *words]) == 0
            [estimated] = json.loads(capsys.readouterr().out)
            assert estimated["calls"] == calls
        assert run(["watch", str(root), "--once", "--retry-errors"]) == 0
    assert capsys.readouterr().err.startswith("2 answers forgotten; these will be asked for again\n")
    again = {prompt: count - before.get(prompt, 0) for prompt, count in server.seen.items()}
    assert sum(again.values()) == 2
    assert all("passage 2 about q1" in prompt for prompt, count in again.items() if count)
    with trecexam.open_track(root) as opened:
        assert (opened.grading.counts().error, opened.grading.counts().missing) == (0, 0)


def test_an_unreachable_server_is_reported_and_grading_resumes_when_it_is_back(
    track: MakeTrack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "RETRY", 0.3)
    port = free_port()
    # One at a time: others under way when the server comes back would be cancelled and asked again.
    root = track(f"http://127.0.0.1:{port}/v1", concurrency=1)
    lines: list[str] = []
    daemon = Daemon(root, poll=True, settle=0, log=lines.append)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        until(lambda: any("cannot be reached" in line for line in lines))
        time.sleep(0.7)
        assert sum("cannot be reached" in line for line in lines) == 1
        with serving(port=port) as server:
            until(lambda: daemon.updates == 1)
            assert set(server.seen.values()) == {1}
    finally:
        daemon.stop()
        thread.join(5)
    assert not thread.is_alive()
    assert (root / "out" / "leaderboard.tsv").exists()


def test_a_server_that_dies_halfway_loses_no_received_answer(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()

    def half(exchange: Exchange) -> None:
        exchange.say() if exchange.number <= 10 else exchange.cut()

    with serving(half, port) as server:
        root = track(server.url, retries=0, concurrency=1)
        assert run(["watch", str(root), "--once"]) == 2
        given = [prompt for prompt, _ in zip(server.seen, range(10), strict=False)]
    with trecexam.open_track(root) as opened:
        assert len(list(opened.grades())) == 10
    with serving(port=port) as server:
        assert run(["watch", str(root), "--once"]) == 0
    assert not set(given) & set(server.seen)
    assert set(server.seen.values()) == {1}


def test_pending_answers_are_stored_and_counted_before_stopping(track: MakeTrack) -> None:
    def slow(exchange: Exchange) -> None:
        time.sleep(0.4)
        exchange.say()

    with serving(slow) as server:
        root = track(server.url, concurrency=3)
        with trecexam.open_track(root) as opened:
            done = opened.update(stop=lambda: len(server.bodies) >= 5)
            stored = len(list(opened.grades()))
        assert not done.complete
        assert stored == done.graded == len(server.bodies) < done.counts.cells
        with trecexam.open_track(root) as opened:
            assert opened.status()["requests"] == stored
            assert opened.update().complete
    assert set(server.seen.values()) == {1}


def test_the_daemon_stops_soon_while_the_server_hangs(
    track: MakeTrack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "LAST_ANSWERS", 0.3)
    with serving(Exchange.hang) as server:
        root = track(server.url, timeout=10_000)
        daemon = Daemon(root, poll=True, settle=0, log=lambda line: None)
        thread = threading.Thread(target=daemon.run)
        thread.start()
        try:
            until(lambda: server.now > 0)
        finally:
            daemon.stop()
            thread.join(60)
        # The server still hangs.
        assert not thread.is_alive()


def echo(exchange: Exchange) -> None:
    """Sends the key back: as an answer, an error, a header, or a part of it."""
    key = str(exchange.headers["Authorization"])
    kind = exchange.number % 6
    if kind == 0:
        exchange.fail(500, f"I do not like {key}")
    elif kind == 1:
        exchange.fail(400, f"Incorrect key {key[:20]}****: odd", f"{key}")
    elif kind == 2:
        exchange.say("2", chat=key, refusal=f"You said {key}")
    else:
        exchange.say(f"Your key is {key}, so 4")


@pytest.mark.parametrize(
    "script",
    [
        echo,
        lambda exchange: exchange.fail(401, f"Incorrect key {KEY}"),
        lambda exchange: exchange.fail(404, f"no {KEY}"),
        lambda exchange: exchange.fail(500, f"no {KEY[:14]}****"),
        lambda exchange: exchange.fail(400, f"no {KEY}"),
        lambda exchange: exchange.fail(307, location=f"https://x/?key={KEY}"),
        Exchange.cut,
    ],
)
def test_no_key_reaches_a_log_an_error_a_manifest_or_the_store(
    track: MakeTrack,
    script: Callable[[Exchange], None],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    traces: list[str] = []
    with serving(script) as server, caplog.at_level("DEBUG"):
        root = track(server.url, retries=1)
        for words in (["watch", "--once"], ["--debug", "watch", "--once"], ["status"], ["export", "grades"]):
            words = [*words[:-1], words[-1], str(root)] if words[-1] != "--once" else [*words, str(root)]
            try:
                run(words)
            except TrecexamError:
                traces.append(traceback.format_exc())
        assert any(KEY in str(key) for key in server.keys)
    out, err = capfd.readouterr()
    for text in (out, err, caplog.text, *traces):
        assert KEY[:12] not in text
    files = [path for path in root.rglob("*") if path.is_file()]
    assert any(
        path.name == "grades.sqlite" or "sqlite" in path.suffix or path.suffix == ".db" for path in files
    )
    for path in files:
        assert KEY[:12].encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "line",
    [
        f'key_env = "{KEY}"',
        f'api_key = "{KEY}"',
        f'base_url = "https://user:{KEY}@host/v1"',
        f'base_url = "https://host/v1?key={KEY}"',
        f'extra = {{ api_key = "{KEY}" }}',
        f'headers = {{ Authorization = "Bearer {KEY}" }}',
        f'query = {{ subscription-key = "{KEY}" }}',
        f'extra = {{ headers = {{ Authorization = "{KEY}" }} }}',
    ],
)
def test_a_key_in_the_settings_is_rejected_and_not_repeated(
    track: MakeTrack, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = track("http://127.0.0.1:1/v1")
    name = line.split(" ")[0]
    kept = [old for old in (root / "trecexam.toml").read_text().splitlines() if not old.startswith(name)]
    (root / "trecexam.toml").write_text("\n".join(kept).replace("[grader]", f"[grader]\n{line}"))
    assert run(["watch", str(root), "--once"]) == 2
    err = capsys.readouterr().err
    assert KEY[:8] not in err
    assert name in err


def test_a_secret_is_not_shown_by_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    secret: Any = Secret.from_environment("TEST_KEY")
    assert KEY not in f"{secret} {secret!r} {[secret]}"
    assert secret.hidden(f"a {KEY} b {KEY[:9]}*** c") == f"a {HIDDEN} b {HIDDEN} c"
    assert Secret().hidden("text") == "text"
    monkeypatch.setenv("TEST_KEY", "short")
    assert Secret.from_environment("TEST_KEY").hidden("a short key, shortly") == f"a {HIDDEN} key, shortly"


@pytest.mark.parametrize(
    "form",
    [
        str,
        quote,
        lambda key: quote(key, safe=""),
        json.dumps,
        html.escape,
        lambda key: base64.b64encode(key.encode()).decode(),
    ],
)
@pytest.mark.parametrize("key", ['sk+a/b=c"d\\e$^.*(f[g&h<', "a.*b$(c]"])
def test_a_key_of_unusual_characters_is_hidden_in_every_encoding(
    form: Callable[[str], str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", key)
    secret = Secret.from_environment("TEST_KEY")
    assert secret.hidden(f"key={form(key)} ").replace('"', "") == f"key={HIDDEN} "


@given(st.text(st.sampled_from("abcXYZ019-_.+/=$"), min_size=8, max_size=60), st.data())
def test_the_last_eight_characters_of_a_key_are_never_shown_in_any_case(
    key: str, data: st.DataObject
) -> None:
    secret = Secret(key)
    tail = key[-data.draw(st.integers(8, len(key))) :]
    for shown in (tail, tail.upper(), tail.lower(), tail.swapcase()):
        hidden = secret.hidden(f"bad key ****{shown} ")
        assert hidden == f"bad key ****{HIDDEN} " or shown.lower() not in hidden.lower()
        assert secret.hidden(f"<{shown}>").startswith(f"<{HIDDEN}")


def test_words_that_resemble_a_key_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-proj-0123456789")
    hidden = Secret.from_environment("TEST_KEY").hidden
    assert hidden("4: a risk-profile, a desk-product") == "4: a risk-profile, a desk-product"
    assert hidden("Incorrect key: sk-proj-****89.") == f"Incorrect key: {HIDDEN}"
    assert hidden("nsk-proj-0123****") == f"n{HIDDEN}"
