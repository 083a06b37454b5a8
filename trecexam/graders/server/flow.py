"""Many requests at once from a generator: a few in flight, results as they come, an end within a moment."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

Result = TypeVar("Result")

#: Seconds after which the caller hears something, be it that nothing has come.
BEAT = 0.25


def flow(
    portal: BlockingPortal,
    work: Callable[[], Callable[[], Awaitable[Result]] | None],
    at_once: int,
    *,
    gather: float = BEAT,
) -> Generator[list[Result], None, None]:
    """Results in lists, as they come, in any order. At least every `BEAT` seconds there is a list, if empty.

    What still runs where it ends is cancelled.

    Args:
        portal: to the event loop in which work is done.
        work: gives the next thing to do; None where nothing is to be started now. It is called again and
            again; where nothing runs and nothing is to be started, that is the end.
        at_once: how many run, or wait for a place, at a time.
        gather: seconds for which results may wait for others. 0: the caller has each result before anything
            else is started.

    Raises:
        whatever a piece of work raises, after the results of all that had ended by then.
    """
    running: set[Future[Result]] = set()
    ready: list[Result] = []
    last_yield = time.monotonic()
    try:
        while True:
            while len(running) < at_once and (job := work()) is not None:
                running.add(portal.start_task_soon(job))
            if not running and ready:
                # What the caller does with these may let more be started.
                yield ready
                ready, last_yield = [], time.monotonic()
                continue
            if not running:
                return
            done, running = wait(running, timeout=BEAT, return_when=FIRST_COMPLETED)
            failed = [future for future in done if future.exception() is not None]
            ready += [future.result() for future in done if future.exception() is None]
            if failed:
                if ready:
                    yield ready
                failed[0].result()
            if time.monotonic() >= last_yield + gather:
                yield ready
                ready, last_yield = [], time.monotonic()
    finally:
        for future in running:
            future.cancel()
