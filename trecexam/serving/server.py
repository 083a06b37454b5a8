"""Runs the page on a socket, with uvicorn."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trecexam.errors import TrecexamError
from trecexam.serving.app import create_app
from trecexam.serving.live import LiveTrack

#: Bytes of a request's head, seconds in which it must have come, connections at a time.
MAX_HEAD, HEAD_SECONDS, CONNECTIONS = 32 << 10, 15.0, 200


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there; port 0 is any that is free.

    Raises:
        TrecexamError: the port is taken, or there is no such address here.
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
            hint = "; another program has it: take another --port, or 0 for any that is free"
            why = hint if error.errno == errno.EADDRINUSE else ""
            raise TrecexamError(f"{host}:{port} cannot be listened at: {error.strerror}{why}") from None
        yield made


class Server:
    """The page of a track on a socket."""

    def __init__(self, live: LiveTrack, listening: socket.socket, **options: Any) -> None:
        """`options` are those of `create_app`."""
        port = listening.getsockname()[1]
        app = create_app(live, cookie=f"trecexam-{port}", **options)
        config = uvicorn.Config(
            app,
            http=Bounded,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_keep_alive=20,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._socket = listening

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started

    def run(self) -> None:
        """Answers until `stop`, or until a signal, which is raised again at the end."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Asks it to end; safe in another thread."""
        self._server.should_exit = True


class Bounded(H11Protocol):
    """Closes a connection on which the head of a request takes too long: uvicorn would wait for ever."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

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
