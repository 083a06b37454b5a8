"""The first replies of a grader: where none of them can be read, asking on is a waste."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from trecexam.graders.base import Answer
from trecexam.graders.replies import RAISE_LIMIT
from trecexam.tables.terminal import cut

Call = TypeVar("Call", bound=Sequence[object])

#: Replies after which a grader of which none could be read is not asked any more.
FIRST = 20
#: Characters of a reply that a message quotes.
_QUOTED = 60


class FirstReplies:
    """Counts a grader's replies until one can be read.

    Args:
        read, unread: how many replies were read, and could not be read, before.
    """

    def __init__(self, read: int = 0, unread: int = 0) -> None:
        self._read, self._unread = read, unread
        self._sent = self._answered = 0

    @property
    def are_unread(self) -> bool:
        """Whether there are `FIRST` replies or more that cannot be read, and none that can."""
        return not self._read and self._unread >= FIRST

    def add(self, statuses: Iterable[str]) -> None:
        """Counts replies by their status; one without a reply has another status than "ok" and "unparsed"."""
        for status in statuses:
            self._read += status == "ok"
            self._unread += status == "unparsed"
            self._answered += 1

    def counting(self, calls: Iterable[Call]) -> Iterator[Call]:
        """The calls; how many cells they are of is counted as they are sent."""
        for call in calls:
            self._sent += len(call)
            yield call

    @property
    def are_due(self) -> bool:
        """Whether the first ones were sent, and are waited for before anything else is sent."""
        return not self._read and self._answered < FIRST <= self._sent


def unread_line(answer: Answer, section: str) -> str:
    """A reply that could not be read, and what to set.

    Args:
        answer: the reply.
        section: of trecexam.toml, with the grader's settings.
    """
    reply = cut(answer.raw, _QUOTED)
    said = f'such as "{reply}"' if reply else "they are empty"
    if answer.cut_at is not None:
        return f"{said}, which {RAISE_LIMIT} in [{section}]"
    return (
        f"{said}: set another `prompt` or `model` in [{section}]; raise `max_new_tokens` if replies end early"
    )
