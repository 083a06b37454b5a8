"""Runs the page on a socket, with uvicorn."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from trecexam.errors import TrecexamError
from trecexam.extensions.page.app import create_app
from trecexam.extensions.page.guard import plain_page
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.users import Users

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: Bytes of a request's head; requests at a time; seconds between two looks at the users file.
MAX_HEAD, REQUESTS, FOLLOW_SECONDS = 32 << 10, 200, 1


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

    def __init__(
        self, live: LiveTrack, listening: socket.socket, *, users: Users | None = None, **options: Any
    ) -> None:
        """`users` and `options` are those of `create_app`."""
        port = listening.getsockname()[1]
        app = create_app(live, cookie=f"trecexam-{port}", users=users, **options)

        async def follow() -> None:
            assert users is not None
            users.refresh()

        config = uvicorn.Config(
            _at_most(app),
            http="h11",
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
            callback_notify=None if users is None else follow,
            timeout_notify=FOLLOW_SECONDS,
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
    """Limits an application to `REQUESTS` concurrent requests."""
    requests = 0

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal requests
        if requests >= REQUESTS:
            busy = plain_page(503, "Too many requests at a time. Try again.", {"connection": "close"})
            await busy(scope, receive, send)
            return
        requests += 1
        try:
            await app(scope, receive, send)
        finally:
            requests -= 1

    return answer
