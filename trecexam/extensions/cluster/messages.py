"""What the daemon's side, the driver of the cluster and the workers tell each other.

Items and results travel as bytes that the driver does not open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Start(NamedTuple):
    """The first word to the driver: where the cluster is, and what its workers are to do.

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
    """The driver is a part of the cluster now."""


class Room(NamedTuple):
    """So many more batches may be sent."""

    batches: int


class Done(NamedTuple):
    """The results, pickled, of the items at these places of a batch, and the seconds they took a worker."""

    number: int
    places: Sequence[int]
    results: bytes
    seconds: float


class GivenUp(NamedTuple):
    """The item at this place of a batch ended every worker that had it alone."""

    number: int
    place: int
    deaths: int


class Ended(NamedTuple):
    """It cannot go on. `again`: later it may. `details` are for who looks for the cause."""

    reason: str
    again: bool
    details: str = ""


class DriverDone(NamedTuple):
    """All batches are done."""


class Worked(NamedTuple):
    """What a worker says of a batch."""

    results: bytes
    seconds: float


class WorkerFailed(NamedTuple):
    """What a worker says instead, where an exception stopped it."""

    reason: str
    details: str


class Placed(NamedTuple):
    """Where a worker is, and which trecexam it has."""

    host: str
    version: str
