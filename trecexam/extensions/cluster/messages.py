"""Messages between the daemon, the driver of the cluster and the workers.

Items and results travel as bytes that the driver does not open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Start(NamedTuple):
    """The first message to the driver: the cluster's address and the workers' task.

    Attributes:
        recipe: a pickled call without arguments that makes the object which does the work.
        method: of that object; takes a list of items and gives a list of as many results.
        workers: how many; None for as many as there is room for.
        gpus: of one worker; None for one where the cluster has any.
        cpus: of one worker.
        wait: seconds without any worker after which it gives up.
    """

    address: str
    recipe: bytes
    method: str
    workers: int | None
    gpus: float | None
    cpus: float
    wait: float


class Batch(NamedTuple):
    """Work for one worker: so many items, pickled as one list."""

    number: int
    size: int
    items: bytes


class Close(NamedTuple):
    """There are no more batches."""


class Connected(NamedTuple):
    """The driver joined the cluster."""


class Room(NamedTuple):
    """The number of batches that may be sent now."""

    batches: int


class Done(NamedTuple):
    """Pickled results of these items of a batch, and the seconds that they took."""

    number: int
    places: Sequence[int]
    results: bytes
    seconds: float


class GivenUp(NamedTuple):
    """This item of a batch ended every worker that processed only it."""

    number: int
    place: int
    deaths: int


class Ended(NamedTuple):
    """The driver stops. `again`: a later try may succeed. `details` help to find the cause."""

    reason: str
    again: bool
    details: str = ""


class DriverDone(NamedTuple):
    """All batches are done."""


class Worked(NamedTuple):
    """A worker's results of a batch."""

    results: bytes
    seconds: float


class WorkerFailed(NamedTuple):
    """An exception in a worker."""

    reason: str
    details: str


class Placed(NamedTuple):
    """A worker's node and version of trecexam."""

    host: str
    version: str
