"""Signals that end the long work of a command."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

#: Seconds in which a second signal counts as a repetition: `timeout` sends two, to a process and its group.
SAME = 0.3


@contextlib.contextmanager
def signals(
    stop: Callable[[], object] = lambda: None, finishing: Callable[[], str] = lambda: "what is in hand"
) -> Iterator[list[int]]:
    """Yield the signals caught, SIGINT and SIGTERM; a second one ends all at once.

    Args:
        stop: called at each signal.
        finishing: the work to finish before the end, printed at the first signal; "" prints nothing.
    """
    caught: list[int] = []
    first = 0.0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first
        caught.append(number)
        if not first:
            first = time.monotonic()
            _say(finishing())
        stop()
        if caught.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt
        if len(caught) > 1 and time.monotonic() > first + SAME:
            raise SystemExit(128 + number)

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, previous in old.items():
            signal.signal(number, previous)


def _say(finishing: str) -> None:
    """Write past Python's buffers, which may be in use during a signal."""
    if finishing:
        start = "\n" if sys.stderr.isatty() else ""
        with contextlib.suppress(OSError):
            os.write(2, f"{start}stopping: finishing {finishing}; Ctrl-C again ends at once\n".encode())


def exit_status(caught: Sequence[int], status: int) -> int:
    """Return the exit status of a command: a shell's for the first signal that stopped it, else `status`."""
    return 128 + caught[0] if caught else status
