"""Runs `trecexam serve`."""

from __future__ import annotations

import secrets
import sys
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from trecexam.chosen import chosen_grader
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.guidelines import guidelines_warning
from trecexam.extensions.campaign.plan import PLAN, read_plan
from trecexam.extensions.page.front import Front, address_of
from trecexam.extensions.page.judging import JudgeNext
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.rendering import warm_up
from trecexam.extensions.page.server import Server, bound
from trecexam.extensions.page.urls import segment
from trecexam.extensions.page.users import TOKEN_BYTES, Users
from trecexam.line.track_graders import open_folder
from trecexam.tables.terminal import printable
from trecexam.tables.text import shorten_list
from trecexam.track import TrackFolder, refuse_code

#: The least characters of a token that somebody chooses: so many hold 128 random bits.
SHORTEST_TOKEN = 22


def serve(
    root: Path,
    host: str,
    port: int,
    token: str | None,
    *,
    users_file: Path | None = None,
    front: Front | None = None,
    open_browser: bool = False,
) -> None:
    """Serves a track's page until a signal.

    Args:
        port: 0 for any that is free.
        token: None for none on this machine, and a new one beyond it.
        users_file: who may log in; no token is needed then.
        front: how people reach the page.

    Raises:
        TrecexamError: there is no such track, or no such place to listen at; or it has code that is not
            trusted; or the file of users cannot be read.
    """
    front = front or Front()
    folder = open_folder(root)
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
        judging = stack.enter_context(JudgeNext(root))
        actual = listening.getsockname()[1]
        chosen = chosen_grader.get()
        first = f"grader/{segment(chosen)}" if chosen is not None else ""
        page_url = address(host, actual, token, first)
        if front.url:
            behind, page_url = f"; its proxy finds it at {page_url}", front.url + first + _query(token)
        else:
            behind = ""
        print(f"{root} is at {page_url} (Ctrl-C ends it{behind})", file=sys.stderr, flush=True)
        if users is not None and not (front.place.secure or is_loopback(host)):
            _log("tokens go over the network unencrypted: put an https proxy in front, see --public-url")
        if users is not None:
            users.make_links(f"{front.url}login" if front.url else address(host, actual, None, "login"))
            if warning := unknown_assessors(folder, users):
                _log(warning)
        if warning := guidelines_warning(folder):
            _log(warning)
        warm_up()
        server = Server(
            live,
            listening,
            judging=judging,
            token=token,
            hosts=(host,),
            front=front,
            users=users,
        )
        if open_browser:
            webbrowser.open(page_url)
        server.run()


def unknown_assessors(folder: TrackFolder, users: Users) -> str:
    """A warning about planned assessors who cannot log in and judge; "" if there are none."""
    try:
        plan = read_plan(folder)
    except TrecexamError as error:
        return str(error)
    entries = {name: users.get(name) for name in (plan.assessors if plan else ())}
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
    """Whether only this machine can reach this host."""
    at = address_of(host)
    return host == "localhost" or (at is not None and at.is_loopback)


def address(host: str, port: int, token: str | None, page: str = "") -> str:
    """The address to open in a browser."""
    import socket

    name = socket.gethostname() if host in {"0.0.0.0", "::", ""} else host
    if ":" in name:
        name = f"[{name}]"
    return f"http://{name}:{port}/{page}" + _query(token)


def _query(token: str | None) -> str:
    return f"?token={quote(token, safe='')}" if token else ""
