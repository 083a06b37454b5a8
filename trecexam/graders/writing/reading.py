"""What readers of a model's free text have in common."""

from __future__ import annotations

from typing import NamedTuple


class Unread(NamedTuple):
    """In place of what should be in an answer: why it is not, in words that can be counted."""

    reason: str


#: Why an answer that was cut off, or is a thought without its end, is not used.
ENDED_EARLY = Unread("ends early: raise `max_new_tokens`")
