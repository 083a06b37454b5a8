"""Memos of immutable values, and what was read of files until these change."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar

from converters.errors import ConversionError
from trecexam.files.stamps import Stamp, stamp


class HasMemo(Protocol):
    """An immutable value whose `memo` has results by the function that computed them."""

    @property
    def memo(self) -> dict[Any, Any]: ...


T = TypeVar("T")
V = TypeVar("V", bound=HasMemo)


def memoized(compute: Callable[[V], T]) -> Callable[[V], T]:
    """Keep the result of a function in the `memo` of the immutable value that the function is given."""

    @wraps(compute)
    def kept(value: V) -> T:
        if compute not in value.memo:
            value.memo[compute] = compute(value)
        result: T = value.memo[compute]
        return result

    return kept


class FileCache:
    """Results of reading files, by kind of reading, with the stamps of the files."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Path], tuple[Stamp | None, Any]] = {}

    def get(self, kind: str, path: Path, read: Callable[[Path], T], *, frozen: bool = False) -> T:
        """Return what `read` made of the file, or raise its error, until the file's stamp changes.

        Args:
            frozen: the stored result counts, though the file changed.
        """
        now = stamp(path)
        cached = self._known.get((kind, path))
        if cached is None or (cached[0] != now and not frozen):
            try:
                value: Any = read(path)
            except ConversionError as error:
                value = error
            cached = self._known[(kind, path)] = (now, value)
        if isinstance(cached[1], ConversionError):
            raise cached[1]
        result: T = cached[1]
        return result

    def has(self, kind: str, path: Path) -> bool:
        """Return True where something is known of the file."""
        return (kind, path) in self._known

    def stamp_of(self, kind: str, path: Path) -> Stamp | None:
        """Return the stamp of the file when it was read; None where it was not there."""
        return self._known[kind, path][0]

    def forget(self, kind: str) -> None:
        """Drop the results of a kind of reading."""
        self._known = {key: known for key, known in self._known.items() if key[0] != kind}

    def forget_missing(self) -> None:
        """Drop facts about files that are gone."""
        self._known = {key: known for key, known in self._known.items() if key[1].exists()}
