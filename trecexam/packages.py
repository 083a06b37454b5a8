"""Packages that come with an extra, and may not be installed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from trecexam.version import __version__


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


_PACKAGES = ("ir_measures", "pytrec_eval-terrier", "pyndeval", "scipy", "numpy")


def versions() -> dict[str, str | None]:
    """Package -> version, None where it is not installed."""
    return {"trecexam": __version__, **{package: package_version(package) for package in _PACKAGES}}


@cache
def package_version(package: str) -> str | None:
    """What this process began with; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
