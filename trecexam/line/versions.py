"""Versions of what scores come from."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from trecexam.version import __version__

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
