"""Runs `trecexam serve`."""

from __future__ import annotations

import errno
import secrets
import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.plan import PLAN, read_plan
from trecexam.extensions.page.app import create_app
from trecexam.extensions.page.assessing import guidelines
from trecexam.extensions.page.front import Front, address_of
from trecexam.extensions.page.guard import plain_page
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.rendering import warm_up
from trecexam.extensions.page.urls import Urls, segment
from trecexam.extensions.page.users import TOKEN_BYTES, Users
from trecexam.folder import TrackFolder, refuse_code
from trecexam.inputs.track_graders import open_folder
from trecexam.results.terminal import printable
from trecexam.results.text import shorten_list

#: Minimum length of a chosen token, enough for 128 random bits.
SHORTEST_TOKEN = 22
#: Bytes of a request's head; requests at a time; seconds between two looks at the users file.
MAX_HEAD, REQUESTS, FOLLOW_SECONDS = 32 << 10, 200, 1


def serve(
    root: Path,
    host: str,
    port: int,
    token: str | None,
    *,
    grader: str | None = None,
    users_file: Path | None = None,
    front: Front | None = None,
    open_browser: bool = False,
) -> None:
    """Serve a track's page until a signal.

    Args:
        port: 0 for any that is free.
        token: None for none on this machine, and a new one beyond it.
        grader: whose page is opened first; None for the track's.
        users_file: file of users; then no token is needed.
        front: how people reach the page.

    Raises:
        TrecexamError: no such track, no such address, untrusted code, or an unreadable file of users.
    """
    front = front or Front()
    folder = open_folder(root, grader)
    refuse_code(folder.config.grader.metric, root, trusted=folder.trust_code)
    if token is not None and not token.strip():
        raise TrecexamError("the token is empty: leave --token and TRECEXAM_TOKEN out to have none")
    if token is not None and len(token.strip()) < SHORTEST_TOKEN:
        raise TrecexamError(
            f"the token has fewer than {SHORTEST_TOKEN} characters and could be guessed: use one from "
            f"`openssl rand -hex 16`"
        )
    users = None if users_file is None else Users(users_file, _log)
    if users is None and token is None and not is_loopback(host):
        token = secrets.token_urlsafe(TOKEN_BYTES)
    with ExitStack() as stack:
        listening = stack.enter_context(bound(host, port))
        live = stack.enter_context(LiveTrack(root))
        actual = listening.getsockname()[1]
        first = f"grader/{segment(grader)}" if grader is not None else ""
        page_url = address(host, actual, token, first)
        if front.url:
            behind, page_url = f"; its proxy finds it at {page_url}", front.url + first + _query(token)
        else:
            behind = ""
        print(f"{root} is at {page_url} (Ctrl-C ends it{behind})", file=sys.stderr, flush=True)
        if users is not None and not (front.is_secure or is_loopback(host)):
            _log("tokens go over the network unencrypted: put an https proxy in front, see --public-url")
        if users is not None:
            users.make_links(f"{front.url}login" if front.url else address(host, actual, None, "login"))
            if warning := unknown_assessors(folder, users):
                _log(warning)
        if missing := guidelines(folder)[1]:
            _log(f"assessors see no guidelines: {missing}")
        warm_up()
        server = Server(
            live,
            listening,
            token=token,
            hosts=(host,),
            front=front,
            users=users,
        )
        if open_browser:
            webbrowser.open(page_url)
        server.run()


def unknown_assessors(folder: TrackFolder, users: Users) -> str:
    """Return a warning about planned assessors who cannot log in and judge; "" if there are none."""
    try:
        plan = read_plan(folder)
    except TrecexamError as error:
        return str(error)
    entries = {name: users.get(name) for name in plan or ()}
    unknown = [
        f"'{name}'" + (f" (there is '{entry.name}')" if entry is not None and entry.name != name else "")
        for name, entry in entries.items()
        if entry is None or entry.name != name or entry.role == "reader"
    ]
    names = shorten_list(unknown, quote="")
    return f"{PLAN} has tasks for people who are not assessors here: {names}" if unknown else ""


def _log(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach this host."""
    at = address_of(host)
    return host == "localhost" or (at is not None and at.is_loopback)


def address(host: str, port: int, token: str | None, page: str = "") -> str:
    """Return the address to open in a browser."""
    name = socket.gethostname() if host in {"0.0.0.0", "::", ""} else host
    if ":" in name:
        name = f"[{name}]"
    return f"http://{name}:{port}/{page}" + _query(token)


def _query(token: str | None) -> str:
    return f"?token={quote(token, safe='')}" if token else ""


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a listening socket; port 0 selects a free one.

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
        """True if the server responds."""
        return self._server.started

    def run(self) -> None:
        """Serve until `stop` or a signal, which is raised again at the end."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Stop the server; thread-safe."""
        self._server.should_exit = True


def _at_most(app: Starlette) -> ASGIApp:
    """Limit an application to `REQUESTS` concurrent requests."""
    requests, urls = 0, Urls(app.state.front.prefix)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal requests
        if requests >= REQUESTS:
            busy = plain_page(urls, 503, "Too many requests at a time. Try again.", {"connection": "close"})
            await busy(scope, receive, send)
            return
        requests += 1
        try:
            await app(scope, receive, send)
        finally:
            requests -= 1

    return answer
