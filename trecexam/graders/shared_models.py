"""Models that several graders of one track have in common: each is loaded once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakValueDictionary

M = TypeVar("M")


class SharedModels:
    """Models by what they are made of, as long as a grader has them."""

    def __init__(self) -> None:
        self._made: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def get(self, of: Hashable, make: Callable[[], M]) -> M:
        """The model that was made of this, or a new one."""
        model: M | None = self._made.get(of)
        if model is None:
            model = self._made[of] = make()
        return model


_CURRENT: ContextVar[SharedModels | None] = ContextVar("shared_models", default=None)


@contextmanager
def sharing(models: SharedModels) -> Iterator[None]:
    """Graders that are made here have these models in common."""
    token = _CURRENT.set(models)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def shared_models() -> SharedModels:
    """Those that the grader that is made now has in common with others; new ones where it stands alone."""
    return _CURRENT.get() or SharedModels()
