"""What readers of a model's free text have in common."""

from __future__ import annotations

from typing import NamedTuple

from trecexam.graders.base import MOST_READ


class Unread(NamedTuple):
    """In place of what should be in an answer: why it is not, in words that can be counted."""

    reason: str


def without_thoughts(answer: str) -> str | None:
    """What follows the model's thoughts, `MOST_READ` characters at most; None where these have no end."""
    if "</think>" in answer:
        return answer.rpartition("</think>")[2][:MOST_READ]
    return None if answer.lstrip().startswith("<think>") else answer[:MOST_READ]
