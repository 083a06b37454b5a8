"""External data: files of the folder `shared` next to the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[3] / "shared"


def find_outside(name: str) -> Path | None:
    """The file or folder of this name, or the first that matches this pattern; None if there is none."""
    return min(_FOLDER.glob(name), default=None)


def outside(name: str) -> Path:
    """The same; if there is none, the test is skipped."""
    path = find_outside(name)
    if path is None:
        pytest.skip(f"../shared/{name} is not here")
    return path
