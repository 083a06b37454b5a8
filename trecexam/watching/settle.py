"""Tells when a file in the drop folder counts; time and folder state come in as arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from trecexam.files.stamps import Stamp


class Settler:
    """Tells finished files from those that are still being written.

    A file counts when it has looked the same for `settle` seconds, or when it was closed or moved in
    (a hint) and has not changed since. The first look takes files last modified `settle` seconds ago
    or earlier as finished.
    """

    def __init__(self, settle: float) -> None:
        self.settle = settle
        self._since: dict[Path, tuple[Stamp, float]] = {}
        self._done: dict[Path, Stamp] = {}

    def unsettled(
        self, stamps: Mapping[Path, Stamp], hints: Collection[Path], now: float, wall: float
    ) -> dict[Path, float]:
        """Return the files that are still being written.

        Args:
            stamps: every file that is there now.
            hints: files that were closed or moved in since the last call.
            now: a monotonic clock, in seconds.
            wall: the wall clock, in seconds since the epoch, as file times are.

        Returns:
            path -> seconds until it counts if it stays unchanged.
        """
        waiting = {}
        for path, value in stamps.items():
            if self._done.get(path) == value:
                continue
            last_change = self._since.get(path)
            if last_change is None or last_change[0] != value:
                # A time in the future (another machine's clock) must not make a file wait for long.
                age = max(0.0, wall - value.mtime_ns / 1e9) if last_change is None else 0.0
                last_change = self._since[path] = (value, now - min(age, self.settle))
            left = last_change[1] + self.settle - now
            if left <= 0 or path in hints:
                self._done[path] = value
                del self._since[path]
            else:
                waiting[path] = left
        for removed in self._done.keys() - stamps.keys():
            del self._done[removed]
        for removed in self._since.keys() - stamps.keys():
            del self._since[removed]
        return waiting
