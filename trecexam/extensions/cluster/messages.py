"""Messages between the daemon and the driver of the cluster.

Items and results travel as bytes that the driver does not open.
"""

from __future__ import annotations

from typing import NamedTuple

from trecexam.extensions.cluster.settings import RaySection


class Start(NamedTuple):
    """The first message to the driver.

    Attributes:
        cluster: where it is, and what a worker gets.
        recipe: a pickled call without arguments that makes the object which does the work.
        method: of that object; takes a list of items.
    """

    cluster: RaySection
    recipe: bytes
    method: str


class Batch(NamedTuple):
    """Work for one worker: a pickled list of items."""

    number: int
    items: bytes


class Window(NamedTuple):
    """The number of batches that the driver can hold. The first one says that it joined the cluster."""

    batches: int


class Done(NamedTuple):
    """Pickled results of a batch, and the seconds that they took."""

    number: int
    results: bytes
    seconds: float


class Died(NamedTuple):
    """The worker that processed this batch ended."""

    number: int


class Ended(NamedTuple):
    """The driver stops. `again`: a later try may succeed. `details` help to find the cause."""

    reason: str
    again: bool
    details: str = ""
