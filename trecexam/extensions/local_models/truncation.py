"""Truncation of the passage, so that a prompt fits the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trecexam.extensions.local_models.tokens import PromptTokens


class NoRoomError(ValueError):
    """The prompt without a passage already fills the model's length."""


def fitted(
    render: Callable[[str], str], passage: str, tokeniser: PromptTokens, max_length: int
) -> tuple[list[int], str]:
    """Return the tokens of a prompt of at most `max_length` tokens, and the part of the passage in it.

    The passage is cut at its end, after the last whole token that fits.

    Args:
        render: the passage -> the prompt's text.

    Raises:
        NoRoomError: not even the first token of the passage fits.
    """
    tokens = tokeniser.encode([render(passage)])[0]
    if len(tokens) <= max_length:
        return tokens, passage
    ends = tokeniser.token_ends(passage)
    # Inside the prompt, a passage's tokens may differ by a few, so the count is a first guess.
    keep = max(1, len(ends) - (len(tokens) - max_length))
    while True:
        part = passage[: ends[keep - 1]] if ends else ""
        tokens = tokeniser.encode([render(part)])[0]
        over = len(tokens) - max_length
        if over <= 0 and ends:
            break
        if keep == 1:
            raise NoRoomError
        keep = max(1, keep - over)
    while keep < len(ends):
        longer = passage[: ends[keep]]
        more = tokeniser.encode([render(longer)])[0]
        if len(more) > max_length:
            break
        tokens, part, keep = more, longer, keep + 1
    return tokens, part
