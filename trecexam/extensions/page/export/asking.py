"""Requests pages from the application without a server."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Scope

from trecexam.extensions.page.sessions import Visitor
from trecexam.extensions.page.users import User
from trecexam.extensions.page.view import View


class Answered(NamedTuple):
    """A response of the application."""

    status: int
    content: bytes


#: Who looks at a copy: somebody who may change nothing.
_READER = User("", "reader")


def ask(app: ASGIApp, address: str, view: View) -> Answered:
    """The response to a GET of a canonical address (see `naming`), in the role of a reader.

    Args:
        view: the state of the track that all pages of a copy are of.
    """
    path, *fields = address.split("?")
    pairs = (field.split("=", 1) for field in fields)
    query = "&".join(f"{key}={quote(value, safe='', errors='surrogateescape')}" for key, value in pairs)
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
        "trecexam.user": _READER,
        "view": view,
        "visitor": Visitor(_READER, "", by_proxy=True),
    }
    answered: dict[str, Any] = {"status": 500}
    content: list[bytes] = []

    messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not messages:
            # Nobody goes away.
            await asyncio.Event().wait()
        return messages.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered["status"] = message["status"]
        else:
            content.append(message.get("body", b""))

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return Answered(answered["status"], b"".join(content))
