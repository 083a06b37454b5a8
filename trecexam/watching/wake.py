"""What wakes a thread that waits, from other threads and from signal handlers."""

from __future__ import annotations

import queue


class Wake:
    """As `threading.Event`, whose `set` deadlocks in a signal handler that interrupts `wait` or `clear`."""

    def __init__(self) -> None:
        # Its `put` may interrupt its `get`, says the standard library.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        """Wakes who waits; who waits next, where nobody does."""
        self._calls.put(None)

    def clear(self) -> None:
        """Forgets what was set."""
        while not self._calls.empty():
            self._calls.get()

    def wait(self, seconds: float | None = None) -> None:
        """Waits until it is set, so many seconds at most."""
        try:
            self._calls.get(timeout=None if seconds is None else max(0.0, seconds))
        except queue.Empty:
            return
