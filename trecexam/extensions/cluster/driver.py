"""The driver of the cluster: a process that sends batches to Ray actors and returns results.

Ray stays out of the daemon's process: it writes to stdout, takes over signal handlers, and ends the
process that it is in when its cluster is lost.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from trecexam.extensions.cluster.messages import (
    Batch,
    Close,
    Connected,
    Done,
    DriverDone,
    Ended,
    GivenUp,
    Placed,
    Room,
    Start,
    WorkerFailed,
)
from trecexam.extensions.cluster.schedule import AT_ONCE, Piece, Schedule
from trecexam.extensions.cluster.worker import Worker
from trecexam.version import __version__

#: Seconds between checks of messages, and of the cluster's resources.
BEAT, LOOK = 0.05, 1.0
#: Seconds for leaving the cluster.
LEAVING = 4.0
#: Seconds before a new worker after one that ended before it was ready.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
#: Workers that may end in a row before they are ready, and in total, before it gives up.
MOST_UNREADY, MOST_IN_A_ROW = 3, 12


class _GaveUpError(Exception):
    """The driver must stop; holds its last message."""

    def __init__(self, reason: str, *, again: bool, details: str = "") -> None:
        super().__init__(reason)
        self.ended = Ended(reason, again, details)


@dataclass(eq=False)
class _Hired:
    """An actor: its node (None: not placed yet), whether it is ready, and its requests."""

    actor: Any
    placing: Any
    placed: Placed | None = None
    loading: Any = None
    ready: bool = False
    asked: dict[Any, Piece] = field(default_factory=dict)

    @property
    def waits_for(self) -> list[Any]:
        if self.placed is None:
            return [self.placing]
        return list(self.asked) if self.ready else [self.loading]


class Driver:
    """Runs batches on the actors of the cluster that this process joined."""

    def __init__(self, link: Connection, start: Start, inbox: queue.SimpleQueue[Any]) -> None:
        self._link, self._start, self._inbox = link, start, inbox
        self._schedule: Schedule[_Hired] = Schedule()
        self._batches: dict[int, Any] = {}
        self._left: dict[int, int] = {}
        self._hired: list[_Hired] = []
        self._asked_for = 0
        self._closed = False
        self._n_wanted, self._gpus, self._looked = 0, 0.0, 0.0
        self._alone_since = time.monotonic()
        self._had_workers = False
        self._unready = self._in_a_row = 0
        self._pause, self._hire_again = FIRST_PAUSE, 0.0
        self._cause = ""

    def run(self) -> None:
        """Runs until all batches are done, or the connection is closed.

        Raises:
            _GaveUpError: it cannot go on.
        """
        while self._read():
            self._look()
            self._hire()
            self._give()
            self._ask_for_more()
            if self._closed and not len(self._schedule):
                self._link.send(DriverDone())
                return
            for worker, reference in self._news():
                self._hear(worker, reference)
            self._check_alone()

    def _read(self) -> bool:
        """Reads received messages; False if the connection is closed."""
        with contextlib.suppress(queue.Empty):
            while True:
                message = self._inbox.get_nowait()
                if message is None:
                    return False
                if isinstance(message, Close):
                    self._closed, self._asked_for = True, 0
                else:
                    self._asked_for -= 1
                    self._batches[message.number] = ray.put(message.items)
                    self._left[message.number] = message.size
                    self._schedule.add(Piece(message.number, range(message.size)))
        return True

    def _look(self) -> None:
        """Updates how many workers fit on the cluster."""
        if time.monotonic() < self._looked + LOOK:
            return
        has = ray.cluster_resources()
        gpus, cpus = has.get("GPU", 0.0), has.get("CPU", 0.0)
        start = self._start
        if start.gpus is not None:
            self._gpus = start.gpus
        elif not self._had_workers:
            self._gpus = 1.0 if gpus else 0.0
        rooms = [have / need for have, need in ((gpus, self._gpus), (cpus, start.cpus)) if need]
        self._n_wanted = start.workers or int(min(rooms, default=1))
        self._looked = time.monotonic()

    def _hire(self) -> None:
        n_workers = min(self._n_wanted, max(1, len(self._schedule)))
        n_excess = max(0, len(self._hired) - n_workers)
        for worker in [worker for worker in self._hired if worker.placed is None][:n_excess]:
            self._dismiss(worker)
        while len(self._hired) < n_workers and time.monotonic() >= self._hire_again:
            actor = ray.remote(Worker).options(
                num_cpus=self._start.cpus, num_gpus=self._gpus, scheduling_strategy="SPREAD"
            )
            made = actor.remote()
            self._hired.append(_Hired(made, made.place.remote()))

    def _dismiss(self, worker: _Hired) -> None:
        self._hired.remove(worker)
        with contextlib.suppress(RayError):
            ray.kill(worker.actor)

    def _give(self) -> None:
        # Each worker gets one batch before any gets a second, so that the last ones run in parallel.
        for _ in range(AT_ONCE):
            for worker in self._hired:
                piece = self._schedule.take(worker) if worker.ready else None
                if piece is not None:
                    reference = worker.actor.work.remote(self._batches[piece.number], piece.places)
                    worker.asked[reference] = piece

    def _ask_for_more(self) -> None:
        room = AT_ONCE * max(1, self._n_wanted) + 1 - len(self._schedule) - self._asked_for
        if room > 0 and not self._closed:
            self._asked_for += room
            self._link.send(Room(room))

    def _news(self) -> Iterator[tuple[_Hired, Any]]:
        """Workers with their results, each worker's in the order of its requests."""
        waited = {reference: worker for worker in self._hired for reference in worker.waits_for}
        if not waited:
            time.sleep(BEAT)
            return
        ray.wait(list(waited), num_returns=1, timeout=BEAT, fetch_local=False)
        ready = set(ray.wait(list(waited), num_returns=len(waited), timeout=0, fetch_local=False)[0])
        for reference, worker in waited.items():
            # One that ended with the answer before is gone by now.
            if reference in ready and worker in self._hired:
                yield worker, reference

    def _hear(self, worker: _Hired, reference: Any) -> None:
        try:
            message = ray.get(reference, timeout=LOOK)
        except GetTimeoutError:
            return
        except RayError as error:
            self._mourn(worker, error)
            return
        if isinstance(message, WorkerFailed):
            raise _GaveUpError(f"a worker {message.reason}", again=False, details=message.details)
        if worker.placed is None:
            self._greet(worker, message)
        elif not worker.ready:
            worker.ready, self._unready = True, 0
        else:
            piece = worker.asked.pop(reference)
            self._schedule.done(worker, piece)
            self._in_a_row = 0
            self._link.send(Done(piece.number, piece.places, message.results, message.seconds))
            self._forget(piece)

    def _greet(self, worker: _Hired, placed: Placed) -> None:
        if placed.version != __version__:
            raise _GaveUpError(
                f"{placed.host} in the cluster has trecexam {placed.version}, here it is {__version__}: "
                "install the same on all machines",
                again=False,
            )
        worker.placed = placed
        worker.loading = worker.actor.load.remote(self._start.recipe, self._start.method)
        self._had_workers = True

    def _forget(self, piece: Piece) -> None:
        self._left[piece.number] -= len(piece.places)
        if not self._left[piece.number]:
            del self._left[piece.number], self._batches[piece.number]

    def _mourn(self, worker: _Hired, error: RayError) -> None:
        """Gives the batches of a worker that ended to other workers."""
        reason = str(error)
        if "No module named" in reason:
            line = next(line.strip() for line in reversed(reason.splitlines()) if "No module named" in line)
            raise _GaveUpError(
                f"a machine of the cluster lacks a package ({line}): install trecexam there with the same "
                "extras as here",
                again=False,
                details=reason,
            )
        if "all references to the actor were removed" in reason:
            # We have a token, but Ray rejects a cluster that does not use tokens.
            raise _GaveUpError(
                "this machine expects a Ray token, and the cluster does not use one: set "
                "RAY_AUTH_MODE=disabled here, or start the cluster with RAY_AUTH_MODE=token",
                again=False,
                details=reason,
            )
        lost_machine = "node has died" in reason or getattr(error, "preempted", False)
        self._cause = f"on {worker.placed.host}: {_detail(reason)}" if worker.placed else _detail(reason)
        self._in_a_row += not lost_machine
        if not worker.ready and not lost_machine:
            # A machine on which no worker can live is tried less and less often.
            self._unready += 1
            self._hire_again = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._dismiss(worker)
        given_up = self._schedule.ended(worker, blame=not lost_machine)
        if given_up is not None:
            self._link.send(GivenUp(given_up.number, given_up.places[0], given_up.deaths))
            self._forget(given_up)
        if self._unready >= MOST_UNREADY or self._in_a_row >= MOST_IN_A_ROW:
            when = " while they loaded the model" if self._unready >= MOST_UNREADY else ""
            raise _GaveUpError(
                f"all workers ended one after the other{when}; the last {self._cause}", again=True
            )

    def _check_alone(self) -> None:
        now = time.monotonic()
        if any(worker.placed for worker in self._hired):
            self._alone_since = now
        elif now > self._alone_since + self._start.wait:
            what = (
                "its last worker ended, and no other started"
                if self._had_workers
                else "no worker could be placed"
            )
            need = f"each needs {self._gpus:g} GPU and {self._start.cpus:g} CPU"
            raise _GaveUpError(f"{what} within {self._start.wait:g} s ({need})", again=True)

    def dismiss_all(self) -> None:
        for worker in list(self._hired):
            self._dismiss(worker)


def _detail(text: str) -> str:
    """The sentence of Ray's report that says how a worker ended."""
    detail = text.partition("Worker exit detail:")[2] or text.strip().rpartition("\n")[2]
    return detail.strip().partition(". ")[0][:200]


def main(descriptor: int) -> None:
    """Serves the process at the other end of this socket until it is closed."""
    link = Connection(descriptor)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    start: Start = link.recv()
    threading.Thread(target=_listen, args=(link, inbox), daemon=True).start()
    try:
        _join(start.address)
        link.send(Connected())
        driver = Driver(link, start, inbox)
        try:
            driver.run()
        finally:
            driver.dismiss_all()
            ray.shutdown()
    except (BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        last = Ended(f"{type(error).__name__}: {error}", again=True, details=traceback.format_exc())
        with contextlib.suppress(OSError):
            link.send(error.ended if isinstance(error, _GaveUpError) else last)


def _join(address: str) -> None:
    """Connects this process to the cluster as a driver.

    Raises:
        _GaveUpError: there is no cluster, or it is of another kind.
    """
    if address != "auto":
        # Ray itself would take two minutes to notice.
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except OSError as error:
            raise _GaveUpError(f"no answer from it ({error.strerror or error})", again=True) from None
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except ConnectionError as error:
        reason = (
            "this machine is not in a cluster: run `ray start --address=HOST:PORT` here"
            if address == "auto"
            else f"{_line(error)}; if the cluster uses a token, set RAY_AUTH_MODE=token here"
        )
        raise _GaveUpError(reason, again=True, details=str(error)) from error
    except (RuntimeError, ValueError) as error:
        # Another version of Ray or Python, or a machine that is not in the cluster.
        raise _GaveUpError(_line(error), again=False, details=str(error)) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _listen(link: Connection, inbox: queue.SimpleQueue[Any]) -> None:
    """Puts received messages into the inbox; None marks the end, shortly before this process exits."""
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            message: Batch | Close = link.recv()
            inbox.put(message)
    inbox.put(None)
    time.sleep(LEAVING)
    os._exit(1)
