"""Versions of what scores come from."""

from __future__ import annotations

from trecexam.version import __version__


def versions() -> dict[str, str | None]:
    """Package -> version, None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    versions_there: dict[str, str | None] = {"trecexam": __version__}
    for package in ("ir_measures", "pytrec_eval-terrier", "pyndeval", "scipy", "numpy"):
        try:
            versions_there[package] = version(package)
        except PackageNotFoundError:
            versions_there[package] = None
    return versions_there
