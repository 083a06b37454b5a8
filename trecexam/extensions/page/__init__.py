"""The live page, `trecexam serve`: server-rendered HTML of a track's state, kept current."""

from __future__ import annotations

from importlib.util import find_spec

from trecexam.packages import install

#: What a user may be: see `users.Role`.
ROLES = ("assessor", "organizer", "reader")
#: What the extra `serve` brings.
PACKAGES = ("rapidfuzz", "starlette", "uvicorn")


def missing_packages() -> str | None:
    """What to install, in a line; None where all is there."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    return f"needs {', '.join(missing)}: {install('serve')}" if missing else None
