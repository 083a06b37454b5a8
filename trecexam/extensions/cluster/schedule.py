"""Assigns batches to workers, and reassigns those of workers that ended. Pure functions without Ray.

A batch that was in a worker's hands when it ended goes to another. When that one ends too, the batch is
cut in two, and so on, until the item that ends workers is alone; in the end it is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

Worker = TypeVar("Worker")

#: Batches per worker: one running and one waiting, so that it is never idle.
AT_ONCE = 2
#: Workers that a batch of several items may end before it is cut in two, and that a single item may end.
MOST_DEATHS, MOST_ALONE = 2, 3


class Piece(NamedTuple):
    """Some items of a batch, and the number of workers that ended while processing them."""

    number: int
    places: Sequence[int]
    deaths: int = 0


class Schedule(Generic[Worker]):
    """Waiting pieces, and the pieces of each worker in order of assignment."""

    def __init__(self) -> None:
        self._waiting: deque[Piece] = deque()
        self._hands: dict[Worker, deque[Piece]] = {}

    def __len__(self) -> int:
        """The number of unfinished pieces."""
        return len(self._waiting) + sum(map(len, self._hands.values()))

    def add(self, piece: Piece) -> None:
        """Adds a piece for any worker."""
        self._waiting.append(piece)

    def take(self, worker: Worker) -> Piece | None:
        """The next piece for this worker; None if none is left or it has enough."""
        hands = self._hands.setdefault(worker, deque())
        # A piece that ended a worker goes alone: what is beside it would have to be done again.
        if len(hands) >= AT_ONCE or not self._waiting or any(piece.deaths for piece in hands):
            return None
        if hands and self._waiting[0].deaths:
            return None
        hands.append(self._waiting.popleft())
        return hands[-1]

    def done(self, worker: Worker, piece: Piece) -> None:
        """Marks this worker's piece as done."""
        self._hands[worker].remove(piece)

    def ended(self, worker: Worker, *, blame: bool) -> Piece | None:
        """Removes this worker and returns its pieces to the queue.

        Args:
            blame: it may have ended because of what it had in hand; False where its machine is gone.

        Returns:
            A piece of one item that is given up; None if missing.
        """
        hands = self._hands.pop(worker, deque())
        suspect = hands.popleft() if hands and blame else None
        self._waiting.extendleft(reversed(hands))
        if suspect is None:
            return None
        suspect = suspect._replace(deaths=suspect.deaths + 1)
        if len(suspect.places) == 1:
            if suspect.deaths >= MOST_ALONE:
                return suspect
            self._waiting.append(suspect)
        elif suspect.deaths < MOST_DEATHS:
            self._waiting.append(suspect)
        else:
            # One more death in either half cuts that half again.
            half = len(suspect.places) // 2
            self._waiting.append(suspect._replace(places=suspect.places[:half], deaths=MOST_DEATHS - 1))
            self._waiting.append(suspect._replace(places=suspect.places[half:], deaths=MOST_DEATHS - 1))
        return None
