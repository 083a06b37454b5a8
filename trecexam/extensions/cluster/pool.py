"""The daemon's interface to a cluster: groups of items in, results out, without Ray.

The store stays here: workers see items and give results.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import IO, Any, Generic, TypeVar

from trecexam.errors import GraderError
from trecexam.extensions.cluster import missing_for_cluster
from trecexam.extensions.cluster.messages import (
    Batch,
    Close,
    Connected,
    Done,
    DriverDone,
    Ended,
    GivenUp,
    Room,
    Start,
)
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.base import UngradedError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Seconds between lists of results, which may be empty.
BEAT = 0.25
#: Seconds that it may take to join the cluster, and to leave it.
JOINING, LEAVING = 30.0, 5.0
#: Items of the first batches, before it is known how long they take, and the most of one batch.
FIRST, MOST = 64, 8192
#: The maximum growth factor of batch sizes.
GROWTH = 4


class RemoteError(Exception):
    """The cause of an error, as text from a worker or the driver."""


@dataclass(frozen=True)
class Lost:
    """Replaces the result of an item that ended several workers that processed only it."""

    deaths: int


class Pool(Generic[Item, Result]):
    """Workers on a cluster, all of the same kind.

    Args:
        cluster: where it is, and what a worker gets.
        recipe: makes the object that does the work, in each worker; it is pickled, so what it is made of
            must be importable there.
        method: the name of the object's method: a list of items -> a list of as many results.
    """

    def __init__(self, cluster: RaySection, recipe: Callable[[], object], method: str) -> None:
        self.cluster = cluster
        self.recipe = recipe
        self.method = method

    def run(self, groups: Iterable[Sequence[Item]]) -> Iterator[list[tuple[Item, Result | Lost]]]:
        """Yields lists of results as they arrive, in any order; an empty one if `BEAT` seconds bring none.

        Workers are hired when it starts and dismissed when it ends, however it ends.

        Args:
            groups: items of a group go to a worker together, as long as none ends of them.

        Raises:
            UngradedError: the cluster is not there, or is lost; what is not done can be done later.
            GraderError: it cannot be done at all; the message says what to do.
        """
        missing = missing_for_cluster()
        if missing:
            raise GraderError(f"`address` in [ray] is set, but a cluster cannot be used here: {missing}")
        address = self.cluster.address
        assert address is not None
        sizes = _Sizes(self.cluster.batch_seconds)
        batches: _Batches[Item, Result] = _Batches(packed(groups, sizes.items))
        with _driver(address) as link:
            link.send(self._start(address))
            joined_by: float | None = time.monotonic() + JOINING
            while True:
                message = link.receive(BEAT)
                if isinstance(message, DriverDone):
                    return
                if isinstance(message, Ended):
                    raise _error(address, message)
                if isinstance(message, Connected):
                    joined_by = None
                elif isinstance(message, Room):
                    batches.send(link, message.batches)
                elif isinstance(message, Done):
                    sizes.learn(len(message.places), message.seconds)
                    yield batches.results(message)
                elif isinstance(message, GivenUp):
                    yield batches.given_up(message)
                elif joined_by is not None and time.monotonic() > joined_by:
                    raise UngradedError(f"no Ray cluster answered at '{address}' within {JOINING:g} s")
                else:
                    yield []

    def _start(self, address: str) -> Start:
        cluster = self.cluster
        return Start(
            address,
            pickle.dumps(self.recipe),
            self.method,
            cluster.workers,
            cluster.gpus_per_worker,
            cluster.cpus_per_worker,
            cluster.wait,
        )


def packed(groups: Iterable[Sequence[Item]], size: Callable[[], int]) -> Iterator[list[Item]]:
    """Batches of whole groups, in order; each ends with the group that brings it to `size` items or more."""
    batch: list[Item] = []
    for group in groups:
        batch += group
        if len(batch) >= size():
            yield batch
            batch = []
    if batch:
        yield batch


class _Batches(Generic[Item, Result]):
    """Batches to send and sent batches; made lazily, since a track can have millions."""

    def __init__(self, batches: Iterable[list[Item]]) -> None:
        self._unsent = enumerate(batches)
        self._sent: dict[int, list[Item]] = {}
        self._left: dict[int, int] = {}

    def send(self, link: _Link, count: int) -> None:
        """Sends up to this many batches, and `Close` after the last one."""
        for _ in range(count):
            number, batch = next(self._unsent, (-1, None))
            if batch is None:
                link.send(Close())
                return
            self._sent[number], self._left[number] = batch, len(batch)
            link.send(Batch(number, len(batch), pickle.dumps(batch)))

    def results(self, message: Done) -> list[tuple[Item, Result | Lost]]:
        """The finished items with their results."""
        items = self._sent[message.number]
        results = pickle.loads(message.results)
        self._forget(message.number, len(message.places))
        return [(items[at], result) for at, result in zip(message.places, results, strict=True)]

    def given_up(self, message: GivenUp) -> list[tuple[Item, Result | Lost]]:
        """The item that is given up."""
        item = self._sent[message.number][message.place]
        self._forget(message.number, 1)
        return [(item, Lost(message.deaths))]

    def _forget(self, number: int, items: int) -> None:
        self._left[number] -= items
        if not self._left[number]:
            del self._sent[number], self._left[number]


class _Sizes:
    """Chooses batch sizes that take a worker about `seconds`, from measured times."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._items = FIRST

    def items(self) -> int:
        return self._items

    def learn(self, items: int, seconds: float) -> None:
        # The rest, or a cut batch, is slow for its size, and says nothing of a whole batch.
        if 2 * items >= self._items:
            ideal = items / max(seconds, 1e-9) * self._seconds
            self._items = max(1, int(min(ideal, MOST, GROWTH * items)))


def _error(address: str, ended: Ended) -> GraderError:
    kind = UngradedError if ended.again else GraderError
    error = kind(f"Ray cluster '{address}': {ended.reason}")
    if ended.details:
        error.__cause__ = RemoteError(ended.details)
    return error


class _Link:
    """The connection to the driver."""

    def __init__(self, address: str, connection: Connection, log: IO[bytes]) -> None:
        self._address = address
        self._connection = connection
        self._log = log

    def send(self, message: Any) -> None:
        # The last messages of a driver that ended can still be read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send(message)

    def receive(self, seconds: float) -> Any:
        """The driver's next message; None after a timeout.

        Raises:
            UngradedError: it is gone.
        """
        try:
            return self._connection.recv() if self._connection.poll(seconds) else None
        except (EOFError, ConnectionResetError):
            self._log.seek(0)
            last_words = self._log.read().decode(errors="replace").strip()
            raise UngradedError(f"Ray cluster '{self._address}': lost the connection to it") from RemoteError(
                last_words
            )


@contextlib.contextmanager
def _driver(address: str) -> Iterator[_Link]:
    """Starts the driver; at the end it stops the workers, leaves the cluster and exits."""
    ours, theirs = multiprocessing.Pipe()
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from trecexam.extensions.cluster.driver import main; main({theirs.fileno()})"
    )
    with tempfile.TemporaryFile() as log:
        # In its own session, so that Ctrl-C reaches only the daemon.
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        theirs.close()
        try:
            yield _Link(address, ours, log)
        finally:
            ours.close()
            try:
                process.wait(LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
