"""Which keys stood on which line before, in little memory: files of judgments have millions, by query."""

from __future__ import annotations

from array import array

#: After so many returns to an earlier query a file is not grouped by query, and packing only costs time.
_PATIENCE = 1000


class Seen:
    """The first line of each (query, key). Keys of queries that are over are packed as bytes.

    A file that comes back to its queries time and again is held unpacked.
    """

    def __init__(self) -> None:
        self._query: str | None = None
        self._current: dict[str, int] = {}
        self._packed: dict[str, tuple[bytes, array[int]]] = {}
        self._open: dict[str, dict[str, int]] = {}
        self._returns = 0

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self._packed) + len(self._open) + bool(self._current)

    def first(self, query_id: str, key: str, line: int) -> int:
        """The line on which the key first stood: `line` itself where it is new.

        Args:
            key: without line ends.
        """
        if query_id != self._query:
            self._turn_to(query_id)
        return self._current.setdefault(key, line)

    def _turn_to(self, query_id: str) -> None:
        if self._query is not None:
            if self._returns < _PATIENCE:
                text = "\n".join(self._current).encode("utf-8", "surrogatepass")
                self._packed[self._query] = text, array("Q", self._current.values())
            else:
                self._open[self._query] = self._current
        self._query = query_id
        if query_id in self._open:
            self._current = self._open.pop(query_id)
        elif query_id in self._packed:
            self._returns += 1
            text, lines = self._packed.pop(query_id)
            keys = text.decode("utf-8", "surrogatepass").split("\n")
            self._current = dict(zip(keys, lines, strict=True))
        else:
            self._current = {}
