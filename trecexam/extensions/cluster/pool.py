"""The daemon's interface to a cluster: groups of items in, results out, without Ray.

The store stays here: workers see items and give results. A driver process gives batches to workers; items and
results travel through it as bytes that it does not open.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import IO, Any, NamedTuple, TypeVar

from trecexam.errors import GraderError
from trecexam.extensions.cluster import missing_for_cluster
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.base import UngradedError

Item = TypeVar("Item")

#: Seconds between results, which may be none.
BEAT = 0.25
#: Seconds that it may take to leave the cluster.
LEAVING = 5.0
#: Items of the first batches, before it is known how long they take, and the most of one batch.
FIRST, MOST = 64, 8192
#: The maximum growth factor of batch sizes.
GROWTH = 4
#: Workers that a single item may end.
MOST_ALONE = 3


class Batch(NamedTuple):
    """Work for one worker: a pickled list of items."""

    number: int
    items: bytes


class Done(NamedTuple):
    """Pickled results of a batch, and the seconds that they took; None if the worker ended."""

    number: int
    results: bytes | None
    seconds: float


class Lost:
    """Replaces the result of a batch of one item that ended `MOST_ALONE` workers."""


class Batches:
    """Batches to send and sent batches; made lazily, since a track can have millions.

    Each new batch takes a worker about `seconds`, as measured times say.
    """

    def __init__(self, groups: Iterable[Sequence[Any]], seconds: float) -> None:
        self._seconds = seconds
        self._size = FIRST
        self._new = self._packed(groups)
        self._number = 0
        #: Batches of workers that ended; with the number of these workers for a single item.
        self._again: list[tuple[list[Any], int]] = []
        self._sent: dict[int, tuple[list[Any], int]] = {}

    def __len__(self) -> int:
        """Return the number of batches that are sent and not finished."""
        return len(self._sent)

    def _packed(self, groups: Iterable[Sequence[Any]]) -> Iterator[tuple[list[Any], int]]:
        """Yield batches of whole groups; each ends with the group that fills it."""
        batch: list[Any] = []
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

    def finish(self, message: Done) -> tuple[list[Any], Any]:
        """Return the items of a batch and their results, or an item that is given up and `Lost`.

        A batch whose worker ended is sent again, in halves: no items and None.
        """
        items, deaths = self._sent.pop(message.number)
        if message.results is not None:
            # The rest, or half a batch, is slow for its size, and says nothing of a whole batch.
            if 2 * len(items) >= self._size:
                ideal = len(items) / max(message.seconds, 1e-9) * self._seconds
                self._size = max(1, int(min(ideal, MOST, GROWTH * len(items))))
            return items, pickle.loads(message.results)
        half = len(items) // 2
        if half:
            self._again += [(items[half:], 0), (items[:half], 0)]
        elif deaths + 1 < MOST_ALONE:
            self._again.append((items, deaths + 1))
        else:
            return items, Lost()
        return [], None


def run(
    cluster: RaySection, recipe: Callable[[], Callable[[list[Item]], Any]], groups: Iterable[Sequence[Item]]
) -> Iterator[tuple[list[Item], Any]]:
    """Yield items with what workers of a cluster return for them, in any order.

    Workers are hired when it starts and dismissed when it ends, however it ends.

    Args:
        cluster: where it is, and what a worker gets.
        recipe: makes the function that does the work, in each worker; it is pickled, so what it is made of
            must be importable there.
        groups: items of a group go to a worker together, as long as none ends of them.

    Yields:
        A batch and its results; a batch of one item and `Lost`, if the item ended several workers; or no
        items and None, if `BEAT` seconds brought nothing.

    Raises:
        UngradedError: the cluster is not there, or is lost; what is not done can be done later.
        GraderError: it cannot be done at all; the message says what to do. Notes of an error are its details.
    """
    if missing := missing_for_cluster():
        raise GraderError(f"`address` in [ray] is set, but a cluster cannot be used here: {missing}")
    batches, window = Batches(groups, cluster.batch_seconds), 0
    with _driver() as (link, log):
        link.send((cluster, pickle.dumps(recipe)))
        while True:
            result: tuple[list[Item], Any] = [], None
            try:
                message = link.recv() if link.poll(BEAT) else None
            except (EOFError, ConnectionResetError):
                log.seek(0)
                lost = UngradedError(f"Ray cluster '{cluster.address}': lost the connection to it")
                lost.add_note(log.read().decode(errors="replace"))
                raise lost from None
            if isinstance(message, GraderError):
                raise message
            if isinstance(message, int):
                # How many batches the driver, which joined the cluster, can hold.
                window = message
            elif isinstance(message, Done):
                result = batches.finish(message)
            # The last messages of a driver that ended can still be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                while len(batches) < window and (batch := batches.next()):
                    link.send(batch)
            yield result
            if window and not len(batches):
                return


@contextlib.contextmanager
def _driver() -> Iterator[tuple[Connection, IO[bytes]]]:
    """Start the driver; yield the connection to it, and what it prints. It leaves the cluster at the end."""
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
            yield ours, log
        finally:
            ours.close()
            try:
                process.wait(LEAVING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
