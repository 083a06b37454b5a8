"""What was computed or read stays in memory until what it was made from changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from converters.errors import ConversionError
from trecexam.files.stamps import Stamp, stamp

T = TypeVar("T")


class Cache:
    """Values by name, each with a token of what it was made from: a digest, a stamp, arguments."""

    def __init__(self) -> None:
        self._values: dict[Hashable, dict[Hashable, Any]] = {}

    def get(self, name: Hashable, token: Hashable, make: Callable[[], T], most: int = 1) -> T:
        """The value of this name and token; made where there is none.

        Args:
            most: values of this name that stay: those that were asked for last.
        """
        values = self._values.get(name, {})
        if token in values:
            value = values[token]
        else:
            # Before another one is made, so that no two are in memory.
            values = dict(islice(values.items(), max(0, len(values) - most + 1), None))
            self._values[name] = values
            value = make()
        self._values[name] = {**{key: values[key] for key in values if key != token}, token: value}
        result: T = value
        return result


class FileCache:
    """What was made of each file, for each kind of reading, with the file's stamp."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Path], tuple[Stamp | None, Any]] = {}

    def get(self, kind: str, path: Path, read: Callable[[Path], T], *, frozen: bool = False) -> T:
        """What `read` made of the file, or the error it raised, until the file's stamp changes.

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
        """Whether something is known of the file."""
        return (kind, path) in self._known

    def stamp_of(self, kind: str, path: Path) -> Stamp | None:
        """The stamp of the file when it was read; None where it was not there."""
        return self._known[kind, path][0]

    def forget(self, kind: str, unless: Callable[[Any], bool]) -> None:
        """Drops the results of a kind of reading, but for the values that `unless` keeps."""
        for key in [key for key, (_, value) in self._known.items() if key[0] == kind and not unless(value)]:
            del self._known[key]

    def forget_missing(self) -> None:
        """Drops facts about files that are gone."""
        for key in [key for key in self._known if not key[1].exists()]:
            del self._known[key]
