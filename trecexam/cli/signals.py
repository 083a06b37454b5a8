"""Long work of a command: the signals that end it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals(stop: Callable[[], object]) -> Iterator[list[int]]:
    """Calls `stop` on SIGINT and SIGTERM; a second SIGINT interrupts at once. Yields the signals caught."""
    caught: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        stop()
        if caught.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, previous in old.items():
            signal.signal(number, previous)


def exit_status(caught: Sequence[int], status: int) -> int:
    """The exit status of a command: as a shell has it of the first signal that stopped it, else `status`."""
    return 128 + caught[0] if caught else status
