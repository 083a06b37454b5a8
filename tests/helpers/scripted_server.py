"""A scripted OpenAI-compatible server that can also misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support import hashed_rating

#: The key that tests send, which must not be found anywhere afterwards.
KEY = "sk-secret-0123456789abcdef"


class Exchange(BaseHTTPRequestHandler):
    """One request: its content, and ways to answer it."""

    protocol_version = "HTTP/1.1"
    server: Scripted

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.body: dict[str, Any] = json.loads(body)
        with self.server.lock:
            self.server.bodies.append(self.body)
            self.server.keys.append(self.headers.get("Authorization"))
            self.number = len(self.server.bodies)
            self.server.seen[self.prompt] += 1
            self.again = self.server.seen[self.prompt]
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
        try:
            self.server.script(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with self.server.lock:
                self.server.now -= 1

    @property
    def prompt(self) -> str:
        if "/chat/completions" in self.path:
            return str(self.body["messages"][-1]["content"])
        return str(self.body["prompt"])

    @property
    def is_probe(self) -> bool:
        return "capital of France" in self.prompt

    def log_message(self, *args: Any) -> None:
        pass

    def send(self, status: int, content: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def say(
        self, text: str | None = None, logprobs: Any = None, finish: str = "stop", **message: Any
    ) -> None:
        """A proper answer; without a text, a rating that depends on the prompt."""
        said = str(hashed_rating(self.prompt, "")) if text is None else text
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "logprobs": logprobs}
        if "/chat/completions" in self.path:
            choice["message"] = {"role": "assistant", "content": said, **message}
        else:
            choice["text"] = said
        usage = {"prompt_tokens": len(self.prompt.split()), "completion_tokens": 3}
        self.send(200, json.dumps({"object": "x", "choices": [choice], "usage": usage}).encode())

    def fail(self, status: int, message: str = "it broke", code: str | None = None, **headers: str) -> None:
        self.send(status, json.dumps({"error": {"message": message, "code": code}}).encode(), **headers)

    def cut(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices": [{"mess')
        self.close_connection = True

    def stream(self, pause: float = 0.0) -> None:
        """Endless bytes."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        while not self.server.over.wait(pause):
            self.wfile.write(b"data: {}\n\n" * (1 if pause else 10_000))

    def hang(self) -> None:
        self.server.over.wait()
        self.close_connection = True


class Scripted(ThreadingHTTPServer):
    """Attributes: requests so far (`bodies`, `keys`, `seen` by prompt), the most at a time."""

    daemon_threads = True

    def __init__(self, script: Callable[[Exchange], None], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Exchange)
        self.script = script
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.seen: Counter[str] = Counter()
        self.now = self.most = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client went away, as some tests want it to."""


@contextmanager
def serving(script: Callable[[Exchange], None] = Exchange.say, port: int = 0) -> Iterator[Scripted]:
    """A server while the block runs."""
    server = Scripted(script, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def slowly(seconds: float) -> Callable[[Exchange], None]:
    """A script that answers after a while."""

    def script(exchange: Exchange) -> None:
        time.sleep(seconds)
        exchange.say()

    return script
