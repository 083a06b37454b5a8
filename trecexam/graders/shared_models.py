"""Models of this process: graders and writers with the same model load it once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar
from weakref import WeakValueDictionary

M = TypeVar("M")


class SharedModels:
    """Models by what they are made of, as long as a grader or writer has them."""

    def __init__(self) -> None:
        self._made: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def get(self, of: Hashable, make: Callable[[], M]) -> M:
        """The model that was made of this, or a new one."""
        model: M | None = self._made.get(of)
        if model is None:
            model = self._made[of] = make()
        return model


@cache
def shared_models() -> SharedModels:
    """Return the models of this process."""
    return SharedModels()
