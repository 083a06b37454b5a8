"""The judgments that each browser was shown, for next, back and undo; only in memory."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

from trecexam.extensions.page.judging import Key

#: Browsers that are remembered, and how many judgments of each.
BROWSERS, LONGEST = 200, 5000


@dataclass
class Trail:
    """The history of a browser.

    Attributes:
        seen: what it was shown, in order, each once.
        rated: what was rated there, the last one last.
        why: the reason that was given last.
    """

    seen: dict[Key, None] = field(default_factory=dict)
    rated: list[Key] = field(default_factory=list)
    why: str = ""

    def visit(self, key: Key) -> None:
        """Records a shown judgment."""
        self.seen.setdefault(key)
        while len(self.seen) > LONGEST:
            del self.seen[next(iter(self.seen))]

    def after(self, key: Key) -> Key | None:
        """The judgment shown after this one; None if it was the last or was never shown."""
        return self._neighbour(key, 1)

    def before(self, key: Key) -> Key | None:
        """The judgment shown before this one."""
        if key not in self.seen:
            return next(reversed(self.seen), None)
        return self._neighbour(key, -1)

    def rate(self, key: Key, why: str) -> None:
        """Records a rating."""
        self.forget(key)
        self.rated.append(key)
        del self.rated[:-LONGEST]
        self.why = why

    def forget(self, key: Key) -> None:
        """Removes an undone rating."""
        if key in self.rated:
            self.rated.remove(key)

    def _neighbour(self, key: Key, step: int) -> Key | None:
        if key not in self.seen:
            return None
        order = list(self.seen)
        at = order.index(key) + step
        return order[at] if 0 <= at < len(order) else None


class Trails:
    """The trails of all browsers, by cookie, login and grader."""

    def __init__(self) -> None:
        self._trails: OrderedDict[tuple[str, object], defaultdict[str, Trail]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, cookie: str, who: object = None, grader: str = "") -> tuple[str, Trail]:
        """The trail of a cookie and a person, and the cookie, which is new if unknown."""
        with self._lock:
            if (cookie, who) not in self._trails:
                cookie = secrets.token_hex(16)
                self._trails[cookie, who] = defaultdict(Trail)
            self._trails.move_to_end((cookie, who))
            while len(self._trails) > BROWSERS:
                self._trails.popitem(last=False)
            return cookie, self._trails[cookie, who][grader]
