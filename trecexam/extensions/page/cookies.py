"""Cookies of the page: HttpOnly, SameSite, and only for its paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Scope

    from trecexam.extensions.page.front import Front


def keep(
    front: Front,
    response: Response,
    name: str,
    value: str,
    *,
    seconds: int | None = None,
    samesite: Literal["strict", "lax"] = "strict",
) -> None:
    """Set a cookie.

    Args:
        seconds: for so long; None until the browser is closed, 0 to delete the cookie.
        samesite: with "lax" it is also sent where a link on another site leads here.
    """
    response.set_cookie(
        name, value, max_age=seconds, path=front.prefix or "/", secure=front.is_secure, httponly=True,
        samesite=samesite,
    )  # fmt: skip


def drop(front: Front, response: Response, name: str) -> None:
    """Delete a cookie."""
    keep(front, response, name, "", seconds=0)


def sent(scope: Scope, name: str) -> list[str]:
    """Return the values of a request's cookies with this name; a browser may send several."""
    lines = [value.decode("latin-1") for header, value in scope["headers"] if header == b"cookie"]
    pairs = (pair.partition("=") for line in lines for pair in line.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name and value.strip()]
