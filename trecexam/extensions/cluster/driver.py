"""The driver of the cluster: a process that gives batches to Ray actors and returns results.

Ray stays out of the daemon's process: it writes to stdout, takes over signal handlers, and ends the
process that it is in when its cluster is lost.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import time
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from trecexam.errors import TrecexamError
from trecexam.extensions.cluster.messages import Batch, Died, Done, Ended, Start, Window
from trecexam.version import __version__

#: Batches per worker: one running and one waiting, so that it is never idle.
AT_ONCE = 2
#: Seconds between checks of messages, and of the cluster's resources.
BEAT, LOOK = 0.05, 1.0
#: Workers that may end in a row before they are ready, and in total, before the driver gives up.
MOST_UNREADY, MOST_IN_A_ROW = 3, 12


class Worker:
    """A Ray actor. It starts empty, so that its placement is known at once."""

    def __init__(self) -> None:
        self._work: Any = None

    def place(self) -> tuple[str, str]:
        """Return the name of its machine, and the version of trecexam there."""
        return socket.gethostname(), __version__

    def load(self, recipe: bytes, method: str) -> None:
        """Create the object that does the work."""
        self._work = getattr(pickle.loads(recipe)(), method)

    def work(self, items: bytes) -> tuple[bytes, float]:
        """Return the results of a batch, pickled, and the seconds that they took."""
        began = time.perf_counter()
        results = self._work(pickle.loads(items))
        return pickle.dumps(results), time.perf_counter() - began


class _GaveUpError(Exception):
    """The driver must stop; holds its last message."""

    def __init__(self, reason: str, *, again: bool, details: str = "") -> None:
        super().__init__(reason)
        self.ended = Ended(reason, again, details)


@dataclass(eq=False)
class _Hired:
    """An actor: its machine ("" before it is placed), whether it is ready, and its batches."""

    actor: Any
    setup: Any
    host: str = ""
    is_ready: bool = False
    batches: dict[Any, Batch] = field(default_factory=dict)


class Driver:
    """Runs batches on the actors of the cluster that this process joined."""

    def __init__(self, link: Connection, start: Start) -> None:
        self._link, self._start, self._cluster = link, start, start.cluster
        self._waiting: deque[Batch] = deque()
        self._hired: list[_Hired] = []
        self._n_wanted, self._gpus, self._looked = 0, 0.0, 0.0
        self._alone_since = time.monotonic()
        self._had_workers = False
        self._unready = self._in_a_row = 0

    def run(self) -> None:
        """Run until the connection is closed.

        Raises:
            _GaveUpError: it cannot go on.
        """
        while True:
            while self._link.poll():
                self._waiting.append(self._link.recv())
            self._look()
            self._hire()
            self._give()
            for worker, reference in self._news():
                self._hear(worker, reference)
            self._check_alone()

    def _look(self) -> None:
        """Update how many workers fit on the cluster."""
        if time.monotonic() < self._looked + LOOK:
            return
        has = ray.cluster_resources()
        gpus, cpus = has.get("GPU", 0.0), has.get("CPU", 0.0)
        cluster = self._cluster
        if cluster.gpus_per_worker is not None:
            self._gpus = cluster.gpus_per_worker
        elif not self._had_workers:
            self._gpus = 1.0 if gpus else 0.0
        rooms = [have / need for have, need in ((gpus, self._gpus), (cpus, cluster.cpus_per_worker)) if need]
        self._n_wanted = cluster.workers or int(min(rooms, default=1))
        self._looked = time.monotonic()
        self._link.send(Window(AT_ONCE * max(1, self._n_wanted) + 1))

    def _hire(self) -> None:
        n_batches = len(self._waiting) + sum(len(worker.batches) for worker in self._hired)
        while len(self._hired) < min(self._n_wanted, max(1, n_batches)):
            actor = ray.remote(Worker).options(
                num_cpus=self._cluster.cpus_per_worker, num_gpus=self._gpus, scheduling_strategy="SPREAD"
            )
            made = actor.remote()
            self._hired.append(_Hired(made, made.place.remote()))

    def _give(self) -> None:
        # Each worker gets one batch before any gets a second, so that the last ones run in parallel.
        for n_batches in range(AT_ONCE):
            for worker in self._hired:
                if worker.is_ready and len(worker.batches) <= n_batches and self._waiting:
                    batch = self._waiting.popleft()
                    worker.batches[worker.actor.work.remote(batch.items)] = batch

    def _news(self) -> Iterator[tuple[_Hired, Any]]:
        """Yield workers with their results, each worker's in the order of its batches."""
        waited = {
            reference: worker
            for worker in self._hired
            for reference in (worker.batches if worker.is_ready else [worker.setup])
        }
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
            answer = ray.get(reference, timeout=LOOK)
        except GetTimeoutError:
            return
        except RayError as error:
            self._check_set_up(error)
            if isinstance(error, RayTaskError):
                cause = error.cause
                line = str(cause).strip().split("\n", 1)[0]
                reason = line if isinstance(cause, TrecexamError) else f"{type(cause).__name__}: {line}"
                where = f"a worker on {worker.host}: {reason}"
                raise _GaveUpError(where, again=False, details=str(error)) from None
            self._mourn(worker, error)
            return
        if not worker.host:
            worker.host, version = answer
            if version != __version__:
                raise _GaveUpError(
                    f"{worker.host} in the cluster has trecexam {version}, here it is {__version__}: "
                    "install the same on all machines",
                    again=False,
                )
            worker.setup = worker.actor.load.remote(self._start.recipe, self._start.method)
            self._had_workers = True
        elif not worker.is_ready:
            worker.is_ready, self._unready = True, 0
        else:
            self._in_a_row = 0
            self._link.send(Done(worker.batches.pop(reference).number, *answer))

    def _check_set_up(self, error: RayError) -> None:
        """Say what to do where machines of the cluster are set up otherwise than this one."""
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

    def _mourn(self, worker: _Hired, error: RayError) -> None:
        """Give the batches of a worker that ended to others, but for the one that it processed."""
        reason = str(error)
        self._dismiss(worker)
        batches = list(worker.batches.values())
        if "node has died" in reason or getattr(error, "preempted", False):
            self._waiting.extendleft(reversed(batches))
            return
        if batches:
            self._link.send(Died(batches[0].number))
        self._waiting.extendleft(reversed(batches[1:]))
        self._in_a_row += 1
        self._unready += not worker.is_ready
        if self._unready >= MOST_UNREADY or self._in_a_row >= MOST_IN_A_ROW:
            when = " while they loaded the model" if self._unready >= MOST_UNREADY else ""
            # The sentence of Ray's report that says how the worker ended.
            detail = reason.partition("Worker exit detail:")[2] or reason.strip().rpartition("\n")[2]
            detail = detail.strip().partition(". ")[0][:200]
            raise _GaveUpError(
                f"all workers ended one after the other{when}; the last on {worker.host or '?'}: {detail}",
                again=True,
            )

    def _dismiss(self, worker: _Hired) -> None:
        self._hired.remove(worker)
        with contextlib.suppress(RayError):
            ray.kill(worker.actor)

    def _check_alone(self) -> None:
        now = time.monotonic()
        if any(worker.host for worker in self._hired):
            self._alone_since = now
        elif now > self._alone_since + self._cluster.wait:
            what = (
                "its last worker ended, and no other started"
                if self._had_workers
                else "no worker could be placed"
            )
            need = f"each needs {self._gpus:g} GPU and {self._cluster.cpus_per_worker:g} CPU"
            raise _GaveUpError(f"{what} within {self._cluster.wait:g} s ({need})", again=True)

    def dismiss_all(self) -> None:
        for worker in list(self._hired):
            self._dismiss(worker)


def main(descriptor: int) -> None:
    """Serve the process at the other end of this socket until it is closed."""
    link = Connection(descriptor)
    start: Start = link.recv()
    try:
        _join(str(start.cluster.address))
        driver = Driver(link, start)
        try:
            driver.run()
        finally:
            driver.dismiss_all()
            ray.shutdown()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        last = Ended(f"{type(error).__name__}: {error}", again=True, details=traceback.format_exc())
        with contextlib.suppress(OSError):
            link.send(error.ended if isinstance(error, _GaveUpError) else last)


def _join(address: str) -> None:
    """Connect this process to the cluster as a driver.

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
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        no_cluster = isinstance(error, ConnectionError)
        if no_cluster and address == "auto":
            reason = "this machine is not in a cluster: run `ray start --address=HOST:PORT` here"
        elif no_cluster:
            reason += "; if the cluster uses a token, set RAY_AUTH_MODE=token here"
        # Else another version of Ray or Python, or a machine that is not in the cluster.
        raise _GaveUpError(reason, again=no_cluster, details=str(error)) from error
