"""Any grader's work on the workers of a Ray cluster; `driver.py` alone knows Ray."""

from __future__ import annotations

from importlib.util import find_spec


def missing_packages() -> str:
    """What must be installed before a cluster can be used; "" where nothing is missing."""
    return "" if find_spec("ray") else "ray not installed: pip install 'trecexam[ray]'"
