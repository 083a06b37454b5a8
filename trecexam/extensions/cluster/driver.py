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
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from trecexam.errors import GraderError, TrecexamError
from trecexam.extensions.cluster.pool import BEAT, Batch, Done
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.base import UngradedError
from trecexam.version import __version__

#: Batches per worker: one running and one waiting, so that the worker is never idle.
AT_ONCE = 2
#: Maximum number of consecutive failures of workers; a failure while loading the model counts as four.
MOST_IN_A_ROW, LOADING = 12, 4
#: Text in an error of Ray on a machine with a different setup -> what to do.
_SET_UP = {
    "No module named": "a machine of the cluster lacks a package ({}): install trecexam there with the same "
    "extras as here",
    # A token is set, but the cluster does not use tokens.
    "all references to the actor were removed": "this machine expects a Ray token, and the cluster does not "
    "use one: set RAY_AUTH_MODE=disabled here, or start the cluster with RAY_AUTH_MODE=token",
}


class Worker:
    """A Ray actor; starts empty, so that its placement is known at once."""

    _work: Any = None

    def place(self) -> tuple[str, str]:
        """Return the worker's machine name and version of trecexam."""
        return socket.gethostname(), __version__

    def load(self, recipe: bytes) -> None:
        """Create the work function."""
        self._work = pickle.loads(recipe)()

    def work(self, items: bytes) -> tuple[bytes, float]:
        """Return the pickled results of a batch, and the seconds that it took."""
        began = time.perf_counter()
        results = self._work(pickle.loads(items))
        return pickle.dumps(results), time.perf_counter() - began


@dataclass(eq=False)
class _Hired:
    """An actor: its set-up call (None once ready), its machine, and its batches by call."""

    actor: Any
    setup: Any
    host: str = ""
    batches: dict[Any, Batch] = field(default_factory=dict)


class Driver:
    """Driver of batches on the actors of the cluster that this process joined."""

    def __init__(self, link: Connection, cluster: RaySection, recipe: bytes) -> None:
        self._link, self._cluster, self._recipe = link, cluster, recipe
        self._waiting: deque[Batch] = deque()
        self._hired: list[_Hired] = []
        self._n_wanted, self._gpus = -1, cluster.gpus_per_worker or 0.0
        self._alone_since, self._in_a_row = time.monotonic(), 0

    def run(self) -> None:
        """Run until the connection is closed.

        Raises:
            GraderError: the driver cannot continue; UngradedError if a later try may succeed.
        """
        try:
            while True:
                while self._link.poll():
                    self._waiting.append(self._link.recv())
                self._hire()
                self._give()
                self._hear()
                self._check_alone()
        finally:
            for worker in self._hired:
                ray.kill(worker.actor)

    def _hire(self) -> None:
        """Start a worker for each waiting batch, as many as fit on the cluster, but at least one."""
        has, cluster = ray.cluster_resources(), self._cluster
        if cluster.gpus_per_worker is None and has.get("GPU"):
            self._gpus = 1.0
        needs = {"GPU": self._gpus, "CPU": cluster.cpus_per_worker}
        rooms = [has.get(name, 0.0) / need for name, need in needs.items() if need]
        n_wanted = cluster.workers or int(min(rooms, default=1))
        if n_wanted != self._n_wanted:
            self._n_wanted = n_wanted
            self._link.send(AT_ONCE * max(1, n_wanted) + 1)
        n_batches = len(self._waiting) + sum(len(worker.batches) for worker in self._hired)
        while len(self._hired) < min(n_wanted, max(1, n_batches)):
            share = {"num_cpus": cluster.cpus_per_worker, "num_gpus": self._gpus}
            actor = ray.remote(Worker).options(**share, scheduling_strategy="SPREAD").remote()
            self._hired.append(_Hired(actor, actor.place.remote()))

    def _give(self) -> None:
        # Each worker gets one batch before any gets a second, so that the last ones run in parallel.
        for n_batches in range(AT_ONCE):
            for worker in self._hired:
                if worker.setup is None and len(worker.batches) <= n_batches and self._waiting:
                    batch = self._waiting.popleft()
                    worker.batches[worker.actor.work.remote(batch.items)] = batch

    def _hear(self) -> None:
        """Wait for the end of a worker's first call, and pass on the results."""
        calls = {
            call: worker
            for worker in self._hired
            for call in (worker.batches if worker.setup is None else [worker.setup])
        }
        if not calls:
            time.sleep(BEAT)
            return
        for call in ray.wait(list(calls), timeout=BEAT)[0]:
            worker = calls[call]
            try:
                answer = ray.get(call)
            except RayError as error:
                self._mourn(worker, error)
                return
            if not worker.host:
                worker.host, version = answer
                if version != __version__:
                    raise GraderError(
                        f"{worker.host} in the cluster has trecexam {version}, here it is {__version__}: "
                        "install the same on all machines"
                    )
                worker.setup = worker.actor.load.remote(self._recipe)
            elif worker.setup is not None:
                worker.setup = None
            else:
                self._in_a_row = 0
                self._link.send(Done(worker.batches.pop(call).number, *answer))

    def _mourn(self, worker: _Hired, error: RayError) -> None:
        """Give the waiting batches of an ended worker to other workers.

        Raises:
            GraderError: other workers would end, too.
        """
        reason, host = str(error), worker.host or "?"
        for words, advice in _SET_UP.items():
            if words in reason:
                line = next(line.strip() for line in reversed(reason.splitlines()) if words in line)
                raise GraderError(advice.format(line))
        if isinstance(error, RayTaskError):
            kind = "" if isinstance(error.cause, TrecexamError) else f"{type(error.cause).__name__}: "
            line = str(error.cause).strip().split("\n", 1)[0]
            raise GraderError(f"a worker on {host}: {kind}{line}")
        self._hired.remove(worker)
        ray.kill(worker.actor)
        batches = list(worker.batches.values())
        is_machine = "node has died" in reason or getattr(error, "preempted", False)
        if batches and not is_machine:
            self._link.send(Done(batches.pop(0).number, None, 0.0))
        self._waiting.extendleft(reversed(batches))
        self._in_a_row += 0 if is_machine else 1 if worker.setup is None else LOADING
        if self._in_a_row >= MOST_IN_A_ROW:
            when = "" if worker.setup is None else " while they loaded the model"
            # The sentence of Ray's report that says how the worker ended.
            detail = reason.partition("Worker exit detail:")[2] or reason.strip().rpartition("\n")[2]
            detail = detail.strip().partition(". ")[0][:200]
            raise UngradedError(f"all workers ended one after the other{when}; the last on {host}: {detail}")

    def _check_alone(self) -> None:
        now, wait = time.monotonic(), self._cluster.wait
        if any(worker.host for worker in self._hired):
            self._alone_since = now
        elif now > self._alone_since + wait:
            need = f"each needs {self._gpus:g} GPU and {self._cluster.cpus_per_worker:g} CPU"
            raise UngradedError(f"no worker could be placed within {wait:g} s ({need})")


def main(descriptor: int) -> None:
    """Serve the process at the other end of this socket until the socket closes."""
    link = Connection(descriptor)
    cluster, recipe = link.recv()
    try:
        _join(cluster.address)
        Driver(link, cluster, recipe).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        if not isinstance(error, GraderError):
            error = UngradedError(f"{type(error).__name__}: {error}")
        last = type(error)(f"Ray cluster '{cluster.address}': {error.reason}")
        last.add_note(traceback.format_exc())
        with contextlib.suppress(OSError):
            link.send(last)
    finally:
        ray.shutdown()


def _join(address: str) -> None:
    """Connect this process to the cluster as a driver.

    Raises:
        UngradedError: there is no cluster.
    """
    if address != "auto":
        # Ray itself would take two minutes to notice.
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except OSError as error:
            raise UngradedError(f"no answer from it ({error.strerror or error})") from None
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except ConnectionError as error:
        why = "this machine is not in a cluster: run `ray start --address=HOST:PORT` here"
        if address != "auto":
            why = f"{error}; if the cluster uses a token, set RAY_AUTH_MODE=token here"
        raise UngradedError(why) from error
