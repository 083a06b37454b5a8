"""The daemon's interface to a cluster: groups of items in, results out, without Ray.

The store stays here: workers see items and give results. A driver process gives batches to workers; items and
results pass through it as opaque bytes.
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

#: Maximum seconds between yields; a yield may have no results.
BEAT = 0.25
#: Maximum seconds for leaving the cluster.
LEAVING = 5.0
#: Items of the first batches, before times are measured, and maximum items of a batch.
FIRST, MOST = 64, 8192
#: The maximum growth factor of batch sizes.
GROWTH = 4
#: Maximum number of workers that a single item may end.
MOST_ALONE = 3


class Batch(NamedTuple):
    """Work for one worker: a pickled list of items."""

    number: int
    items: bytes


class Done(NamedTuple):
    """Pickled results of a batch, and the seconds that it took; None if the worker ended."""

    number: int
    results: bytes | None
    seconds: float


class Lost:
    """Result of a single item that ended `MOST_ALONE` workers."""


class Batches:
    """Batches to send and sent batches; created lazily, since a track can have millions.

    Batch sizes aim at `seconds` per batch, by measured times.
    """

    def __init__(self, groups: Iterable[Sequence[Any]], seconds: float) -> None:
        self._seconds = seconds
        self._size = FIRST
        self._new = self._packed(groups)
        self._number = 0
        #: Batches of ended workers; for a single item with the number of these workers.
        self._again: list[tuple[list[Any], int]] = []
        self._sent: dict[int, tuple[list[Any], int]] = {}

    def __len__(self) -> int:
        """Return the number of batches that are sent and not finished."""
        return len(self._sent)

    def _packed(self, groups: Iterable[Sequence[Any]]) -> Iterator[tuple[list[Any], int]]:
        """Yield batches of whole groups; a batch ends with the group that fills the size."""
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
        """Return the items of a batch and their results, or an abandoned item and `Lost`.

        A batch whose worker ended is sent again in halves; the return value is then no items and None.
        """
        items, deaths = self._sent.pop(message.number)
        if message.results is not None:
            # The time of a last or half batch says nothing about a whole batch.
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
    """Yield items with the results of a cluster's workers, in any order.

    Workers start with the first item and end with the generator.

    Args:
        cluster: address of the cluster, and resources of a worker.
        recipe: creates the work function in each worker; pickled, so its parts must be importable there.
        groups: items of a group go to a worker together, unless they end a worker.

    Yields:
        A batch and its results; a batch of one item and `Lost`, if the item ended several workers; or no
        items and None, if `BEAT` seconds brought nothing.

    Raises:
        UngradedError: the cluster is unreachable or lost; the rest can be done later.
        GraderError: a permanent failure; the message says what to do, notes of the error have details.
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
                # The number of batches that the driver can hold.
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
    """Start the driver; yield the connection and its printed output. The driver leaves the cluster last."""
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
