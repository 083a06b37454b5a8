"""The version of this package, and of those that scores come from."""

from __future__ import annotations

from converters.installed import version

__version__ = "0.1.0"
_PACKAGES = ("ir_measures", "pytrec_eval-terrier", "pyndeval", "scipy", "numpy")


def versions() -> dict[str, str | None]:
    """Return the version of each package, None where it is not installed."""
    return {"trecexam": __version__, **{package: version(package) for package in _PACKAGES}}
