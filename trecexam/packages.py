"""Packages that come with an extra, and may not be installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec


def install(extra: str) -> str:
    """Return how to install an extra; no package index has trecexam."""
    return f"pip install '.[{extra}]' in a clone of trecexam"


def missing_packages(modules: Iterable[str], install: str) -> str:
    """Name the modules that are not installed, and the command `install` that brings them; "" for none."""
    missing = [name.replace("_", "-") for name in modules if find_spec(name) is None]
    return f"{', '.join(missing)} not installed: {install}" if missing else ""


def missing_for_servers() -> str:
    """Name the packages that are not installed and that a server is asked with; "" for none."""
    return missing_packages(("anyio", "httpx2", "nltk"), install("openai"))
