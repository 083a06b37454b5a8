"""Cookies of the page: HttpOnly, SameSite, and only for its paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trecexam.extensions.page.urls import PLACE

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Scope


def keep(
    response: Response,
    name: str,
    value: str,
    *,
    seconds: int | None = None,
    samesite: Literal["strict", "lax"] = "strict",
) -> None:
    """Sets a cookie.

    Args:
        seconds: for so long; None until it is closed.
        samesite: with "lax" it is also sent where a link on another site leads here.
    """
    prefix, secure = PLACE.get()
    response.set_cookie(
        name, value, max_age=seconds, path=prefix or "/", secure=secure, httponly=True, samesite=samesite
    )


def drop(response: Response, name: str) -> None:
    """Deletes a cookie."""
    prefix, secure = PLACE.get()
    response.delete_cookie(name, path=prefix or "/", secure=secure, httponly=True, samesite="strict")


def sent(scope: Scope, name: str) -> list[str]:
    """The values of a request's cookies with this name; a browser may send several."""
    lines = [value.decode("latin-1") for header, value in scope["headers"] if header == b"cookie"]
    pairs = (pair.partition("=") for line in lines for pair in line.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name and value.strip()]
