"""Many requests at once from a generator: a few in flight, results as they come, an end within a moment."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Seconds after which the caller hears something, be it that nothing has come.
BEAT = 0.25
#: Seconds that connections get to close.
_CLOSING = 2.0


class Background:
    """An event loop in a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._started: set[Future[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Starts work there; what is returned gives its result."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._started.add(future)
        future.add_done_callback(self._started.discard)
        return future

    def end(self) -> None:
        """Cancels all that was started, and waits until it has ended."""
        # Only what was started here: tasks below are ended by who started them, in the right order.
        for future in self._started.copy():
            future.cancel()
        asyncio.run_coroutine_threadsafe(_ended(), self._loop).result()


@contextmanager
def background(name: str) -> Iterator[Background]:
    """Runs an event loop; at the end all that still runs in it is cancelled."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    running = Background(loop)
    try:
        yield running
    finally:
        running.end()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _ended() -> None:
    """Waits for all other tasks, a moment at most."""
    until = time.monotonic() + _CLOSING
    while (tasks := asyncio.all_tasks() - {asyncio.current_task()}) and time.monotonic() < until:
        await asyncio.wait(tasks, timeout=until - time.monotonic())


def flow(
    loop: Background,
    work: Callable[[], Coroutine[Any, Any, Result] | None],
    at_once: int,
    *,
    gather: float = BEAT,
) -> Iterator[list[Result]]:
    """Results in lists, as they come, in any order. At least every `BEAT` seconds there is a list, if empty.

    Args:
        work: the next thing to do; None where nothing is to be started now. It is called again and again;
            where nothing runs and nothing is to be started, that is the end.
        at_once: how many run, or wait for a place, at a time.
        gather: seconds for which results may wait for others. 0: the caller has each result before anything
            else is started.

    Raises:
        whatever a piece of work raises, after the results of all that had ended by then.
    """
    running: set[Future[Result]] = set()
    ready: list[Result] = []
    last_yield = time.monotonic()
    while True:
        while len(running) < at_once and (job := work()) is not None:
            running.add(loop.start(job))
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
