"""Packages that come with an extra, and may not be installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec


def install(extra: str) -> str:
    """How to install what an extra brings; no package index has trecexam."""
    return f"pip install '.[{extra}]' in a clone of trecexam"


def missing_packages(modules: Iterable[str], install: str) -> str:
    """Which of these modules are not installed, and how to get them; "" where all are.

    Args:
        install: what brings them, as of `install`.
    """
    missing = [name.replace("_", "-") for name in modules if find_spec(name) is None]
    return f"{', '.join(missing)} not installed: {install}" if missing else ""


def missing_for_servers() -> str:
    """Which packages are not installed that a server is asked with; "" where all are."""
    return missing_packages(("anyio", "httpx2", "nltk"), install("openai"))
