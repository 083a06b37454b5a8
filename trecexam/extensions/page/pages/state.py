"""The state that the page's script polls, and a health check."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from trecexam.extensions.page.rendering import live_of


async def state(request: Request) -> Response:
    """Return the state's version, whether it is being read, errors, and progress of grading."""
    live = live_of(request)
    work = live.work
    return JSONResponse(
        {
            "version": live.version,
            # Other sites cannot read this answer; a page that is older than the server can go on with it.
            "csrf": request.scope["csrf"],
            "loading": live.view is None,
            "trouble": live.trouble,
            "graded": None if work is None else work.graded,
            "cells": None if work is None else work.cells,
            "watched_by": None if work is None else work.watched_by,
        }
    )


async def healthz(request: Request) -> Response:
    """Return a health check: the server responds."""
    return PlainTextResponse("ok\n")


ROUTES = [Route("/state", state), Route("/healthz", healthz)]
