"""How quickly cells are graded."""

from __future__ import annotations

import time
from collections import deque

#: Seconds that are looked back.
PACE_SECONDS = 300.0


class Pace:
    """How quickly cells are graded, by what was seen in the last minutes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=1_000)

    def note(self, graded: int, now: float | None = None) -> None:
        """Takes in how many cells are graded; fewer than before begin a new count."""
        now = time.monotonic() if now is None else now
        if self._seen and graded < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, graded))
        while self._seen[0][0] < now - PACE_SECONDS:
            self._seen.popleft()

    def cells_a_second(self, now: float | None = None) -> float | None:
        """Graded cells a second over the last minutes; None where nothing was graded in them."""
        now = time.monotonic() if now is None else now
        recent = [(at, graded) for at, graded in self._seen if at >= now - PACE_SECONDS]
        if len(recent) < 2 or recent[-1][1] == recent[0][1]:
            return None
        return (recent[-1][1] - recent[0][1]) / (now - recent[0][0])
