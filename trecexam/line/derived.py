"""What is computed from a track's parts, and kept while these are the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class DerivedValues:
    """Values by name, each with a token of what it was computed from: the last one is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Hashable, Any]] = {}

    def get(self, name: str, token: Hashable, compute: Callable[[], T]) -> T:
        """The value of this name, computed where there is none for this token."""
        kept = self._kept.get(name)
        if kept is None or kept[0] != token:
            kept = self._kept[name] = (token, compute())
        value: T = kept[1]
        return value
