"""Which worker gets which batch, and what becomes of a batch whose worker ended. Pure; knows no Ray.

A batch that was in a worker's hands when it ended goes to another. When that one ends too, the batch is
cut in two, and so on, until the item that ends workers is alone; in the end it is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

Worker = TypeVar("Worker")

#: Batches that a worker has at a time: one in hand, one beside it, so that it never waits for the next.
AT_ONCE = 2
#: Workers that a batch of several items may end before it is cut in two, and that a single item may end.
MOST_DEATHS, MOST_ALONE = 2, 3


class Piece(NamedTuple):
    """The items at some places of a batch, and how many workers ended with them in hand."""

    number: int
    places: Sequence[int]
    deaths: int = 0


class Schedule(Generic[Worker]):
    """Pieces that wait, and those that workers have, in the order in which they got them."""

    def __init__(self) -> None:
        self._waiting: deque[Piece] = deque()
        self._hands: dict[Worker, deque[Piece]] = {}

    def __len__(self) -> int:
        """How many pieces are not done."""
        return len(self._waiting) + sum(map(len, self._hands.values()))

    def add(self, piece: Piece) -> None:
        """Takes a piece that anyone may do."""
        self._waiting.append(piece)

    def take(self, worker: Worker) -> Piece | None:
        """The next piece for this worker; None where there is none, or it has enough."""
        hands = self._hands.setdefault(worker, deque())
        # A piece that ended a worker goes alone: what is beside it would have to be done again.
        if len(hands) >= AT_ONCE or not self._waiting or any(piece.deaths for piece in hands):
            return None
        if hands and self._waiting[0].deaths:
            return None
        hands.append(self._waiting.popleft())
        return hands[-1]

    def done(self, worker: Worker, piece: Piece) -> None:
        """This worker has given the results of this piece."""
        self._hands[worker].remove(piece)

    def ended(self, worker: Worker, *, blame: bool) -> Piece | None:
        """This worker is gone; what it had goes to others.

        Args:
            blame: it may have ended because of what it had in hand; False where its machine is gone.

        Returns:
            A piece of one item that is given up; None where there is none.
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
