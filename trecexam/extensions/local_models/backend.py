"""Input and output of a grader's language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trecexam.graders.base import Cell
from trecexam.graders.prompts import Prompt


class Job(NamedTuple):
    """A tokenised prompt about one or several cells. Jobs of one `group` may share their first tokens.

    `prefix` of these are what every prompt about this passage begins with, whatever it asks; 0 where that is
    not known.
    """

    cells: tuple[Cell, ...]
    prompt: Prompt
    tokens: Sequence[int]
    group: int
    prefix: int = 0

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return len(self.tokens)


class ModelOutput(NamedTuple):
    """A model's answer: its text, or in `choices` the best answer and each answer's probability.

    Where it was asked for a list held to permitted labels, `listed` has an output for each of them. `cut`: it
    was stopped at the most tokens of an answer.
    """

    text: str
    probabilities: tuple[float, ...] | None = None
    listed: tuple[ModelOutput, ...] = ()
    cut: bool = False
