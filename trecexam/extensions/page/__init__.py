"""The live page, `trecexam serve`: server-rendered HTML of a track's current state."""

from __future__ import annotations

from importlib.util import find_spec

from trecexam.extension import Command, Extension
from trecexam.packages import install

#: What the extra `serve` brings.
PACKAGES = ("starlette", "uvicorn")


def missing_packages() -> str | None:
    """Return a line on packages to install; None if all are installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    return f"needs {', '.join(missing)}: {install('serve')}" if missing else None


EXTENSION = Extension(
    "page",
    commands={
        "serve": Command(f"{__name__}.cli.serve:serve", "Serve a live page of the track, for people."),
    },
)
