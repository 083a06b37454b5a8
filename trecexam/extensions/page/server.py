"""Runs the page on a socket, with uvicorn."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trecexam.errors import TrecexamError
from trecexam.extensions.page.app import create_app
from trecexam.extensions.page.guard import plain_page
from trecexam.extensions.page.live import LiveTrack

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: Bytes of a request's head, seconds in which it must have come; connections, and requests, at a time.
MAX_HEAD, HEAD_SECONDS, CONNECTIONS = 32 << 10, 15.0, 200


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; port 0 selects a free one.

    Raises:
        TrecexamError: the port is in use, or there is no such address here.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise TrecexamError(f"--host {host}: {getattr(error, 'strerror', error)}") from None
    # Of a socket that does not say TCP, asyncio would not send the last part of an answer at once.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
            made.listen(128)
        except OSError as error:
            hint = "; another program uses it: give another --port, or 0 for any free one"
            why = hint if error.errno == errno.EADDRINUSE else ""
            raise TrecexamError(f"cannot listen at {host}:{port}: {error.strerror}{why}") from None
        yield made


class Server:
    """The page of a track on a socket."""

    def __init__(self, live: LiveTrack, listening: socket.socket, **options: Any) -> None:
        """`options` are those of `create_app`."""
        port = listening.getsockname()[1]
        app = create_app(live, cookie=f"trecexam-{port}", **options)
        config = uvicorn.Config(
            _at_most(app),
            http=Bounded,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_keep_alive=20,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._socket = listening

    @property
    def started(self) -> bool:
        """Whether the server responds."""
        return self._server.started

    def run(self) -> None:
        """Serves until `stop` or a signal, which is raised again at the end."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Stops the server; thread-safe."""
        self._server.should_exit = True


def _at_most(app: ASGIApp) -> ASGIApp:
    """Limits an application to `CONNECTIONS` concurrent requests."""
    requests = 0

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal requests
        if requests >= CONNECTIONS:
            busy = plain_page(503, "Too many requests at a time. Try again.", {"connection": "close"})
            await busy(scope, receive, send)
            return
        requests += 1
        try:
            await app(scope, receive, send)
        finally:
            requests -= 1

    return answer


class Bounded(H11Protocol):
    """Closes connections whose request head takes too long, for which uvicorn has no limit.

    Where there are more than `CONNECTIONS`, it closes those that wait for a request, the oldest first:
    uvicorn would refuse all requests as long as others keep idle connections.
    """

    _limit: asyncio.TimerHandle | None = None
    #: When it began to wait for a request.
    _idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._make_room()
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def _make_room(self) -> None:
        if len(self.connections) <= CONNECTIONS:
            return
        other_connections = [
            connection
            for connection in self.connections
            if isinstance(connection, Bounded) and connection is not self
        ]
        for oldest in sorted(other_connections, key=lambda connection: connection._idle_since):
            if oldest._is_idle():
                self.connections.discard(oldest)
                oldest.transport.close()
            if len(self.connections) <= CONNECTIONS:
                return

    def _is_idle(self) -> bool:
        """Whether the connection has no open request or response."""
        if self.transport.is_closing():
            return True
        if self.cycle is not None and not self.cycle.response_complete:
            return False
        if self.transport.get_write_buffer_size():
            return False
        waiting = select.poll()
        waiting.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not waiting.poll(0)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._limit is not None:
            self._limit.cancel()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self.conn.their_state is h11.IDLE:
            if self._limit is None:
                self._limit = self.loop.call_later(HEAD_SECONDS, self._give_up)
        elif self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._limit = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.abort()
