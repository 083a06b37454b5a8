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
from trecexam.extensions.cluster.messages import Batch, Died, Done, Ended, Start, Window
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.base import UngradedError

Item = TypeVar("Item")

#: Seconds between results, which may be none.
BEAT = 0.25
#: Seconds that it may take to join the cluster, and to leave it.
JOINING, LEAVING = 30.0, 5.0
#: Items of the first batches, before it is known how long they take, and the most of one batch.
FIRST, MOST = 64, 8192
#: The maximum growth factor of batch sizes.
GROWTH = 4
#: Workers that a batch of several items may end before it is cut in two, and that a single item may end.
MOST_DEATHS, MOST_ALONE = 2, 3


@dataclass(frozen=True)
class Lost:
    """Replaces the result of a batch of one item that ended several workers."""

    deaths: int


class Batches(Generic[Item]):
    """Batches to send and sent batches; made lazily, since a track can have millions.

    Each new batch takes a worker about `seconds`, as measured times say.
    """

    def __init__(self, groups: Iterable[Sequence[Item]], seconds: float) -> None:
        self._seconds = seconds
        self._size = FIRST
        self._new = self._packed(groups)
        self._number = 0
        #: Batches of workers that ended, with the number of these workers.
        self._again: list[tuple[list[Item], int]] = []
        self._sent: dict[int, tuple[list[Item], int]] = {}

    def __len__(self) -> int:
        """The number of batches that are sent and not finished."""
        return len(self._sent)

    def _packed(self, groups: Iterable[Sequence[Item]]) -> Iterator[tuple[list[Item], int]]:
        """Yield batches of whole groups; each ends with the group that fills it."""
        batch: list[Item] = []
        for group in groups:
            batch += group
            if len(batch) >= self._size:
                yield batch, 0
                batch = []
        if batch:
            yield batch, 0

    def next(self) -> Batch | None:
        """Return the next batch to send; None after the last one."""
        batch = self._again.pop() if self._again else next(self._new, None)
        if batch is None:
            return None
        self._number += 1
        self._sent[self._number] = batch
        return Batch(self._number, pickle.dumps(batch[0]))

    def done(self, message: Done) -> tuple[list[Item], Any]:
        """Return the items of a batch and their results."""
        items, _ = self._sent.pop(message.number)
        # The rest, or half a batch, is slow for its size, and says nothing of a whole batch.
        if 2 * len(items) >= self._size:
            ideal = len(items) / max(message.seconds, 1e-9) * self._seconds
            self._size = max(1, int(min(ideal, MOST, GROWTH * len(items))))
        return items, pickle.loads(message.results)

    def died(self, message: Died) -> tuple[list[Item], Lost] | None:
        """Have a batch sent again, in halves if it ended several workers; return an item that is given up."""
        items, deaths = self._sent.pop(message.number)
        deaths += 1
        if len(items) == 1 and deaths >= MOST_ALONE:
            return items, Lost(deaths)
        if len(items) == 1 or deaths < MOST_DEATHS:
            self._again.append((items, deaths))
        else:
            # One more death in either half cuts that half again.
            half = len(items) // 2
            self._again += [(items[half:], MOST_DEATHS - 1), (items[:half], MOST_DEATHS - 1)]
        return None


class Pool(Generic[Item]):
    """Workers on a cluster, all of the same kind.

    Args:
        cluster: where it is, and what a worker gets.
        recipe: makes the object that does the work, in each worker; it is pickled, so what it is made of
            must be importable there.
        method: the name of the object's method, which takes a list of items.
    """

    def __init__(self, cluster: RaySection, recipe: Callable[[], object], method: str) -> None:
        self.cluster = cluster
        self.recipe = recipe
        self.method = method

    def run(self, groups: Iterable[Sequence[Item]]) -> Iterator[tuple[list[Item], Any]]:
        """Yield items with what the method returned for them, in any order.

        Workers are hired when it starts and dismissed when it ends, however it ends.

        Args:
            groups: items of a group go to a worker together, as long as none ends of them.

        Yields:
            A batch and its results; a batch of one item and `Lost`, if the item ended several workers; or no
            items and None, if `BEAT` seconds brought nothing.

        Raises:
            UngradedError: the cluster is not there, or is lost; what is not done can be done later.
            GraderError: it cannot be done at all; the message says what to do.
        """
        missing = missing_for_cluster()
        if missing:
            raise GraderError(f"`address` in [ray] is set, but a cluster cannot be used here: {missing}")
        cluster, address = self.cluster, self.cluster.address
        assert address is not None
        batches, window = Batches(groups, cluster.batch_seconds), 0
        joined_by = time.monotonic() + JOINING
        with _driver(address) as link:
            link.send(Start(cluster, pickle.dumps(self.recipe), self.method))
            while True:
                message, result = link.receive(BEAT), None
                if isinstance(message, Ended):
                    raise _error(address, message)
                if isinstance(message, Window):
                    window = message.batches
                elif isinstance(message, Done):
                    result = batches.done(message)
                elif isinstance(message, Died):
                    result = batches.died(message)
                elif not window and time.monotonic() > joined_by:
                    raise UngradedError(f"no Ray cluster answered at '{address}' within {JOINING:g} s")
                while len(batches) < window and (batch := batches.next()):
                    link.send(batch)
                yield result or ([], None)
                if window and not len(batches):
                    return


def _error(address: str, ended: Ended) -> GraderError:
    kind = UngradedError if ended.again else GraderError
    error = kind(f"Ray cluster '{address}': {ended.reason}")
    if ended.details:
        error.__cause__ = RuntimeError(ended.details)
    return error


class _Link:
    """The connection to the driver."""

    def __init__(self, address: str, connection: Connection, log: IO[bytes]) -> None:
        self._address = address
        self._connection = connection
        self._log = log

    def send(self, message: Start | Batch) -> None:
        # The last messages of a driver that ended can still be read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send(message)

    def receive(self, seconds: float) -> Any:
        """Return the driver's next message; None after a timeout.

        Raises:
            UngradedError: the driver is gone.
        """
        try:
            return self._connection.recv() if self._connection.poll(seconds) else None
        except (EOFError, ConnectionResetError):
            self._log.seek(0)
            last_words = self._log.read().decode(errors="replace").strip()
            ended = Ended("lost the connection to it", again=True, details=last_words)
            raise _error(self._address, ended) from None


@contextlib.contextmanager
def _driver(address: str) -> Iterator[_Link]:
    """Start the driver; at the end it stops the workers, leaves the cluster and exits."""
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
