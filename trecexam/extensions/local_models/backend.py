"""Input and output of a grader's language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.graders.base import Cell
from trecexam.graders.prompts import Prompt

if TYPE_CHECKING:
    from torch import Tensor


class Job(NamedTuple):
    """A tokenised prompt about one or several cells; jobs of a `group` begin with `prefix` equal tokens."""

    cells: tuple[Cell, ...]
    prompt: Prompt
    tokens: Sequence[int]
    group: Any
    prefix: int = 0

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return len(self.tokens)


class ModelOutput(NamedTuple):
    """A model's answer: its text, or in `choices` the best answer and each answer's probability.

    `listed`: an output for each label of a constrained list. `cut`: the limit of tokens ended the text.
    """

    text: str
    probabilities: tuple[float, ...] | None = None
    listed: tuple[ModelOutput, ...] = ()
    cut: bool = False


def on_device(
    rows: Sequence[Any], device: Any, pad: int = 0, width: int | None = None, *, left: bool = False
) -> Tensor:
    """Return numbers, or rows of them, as a tensor on a device; nothing waits for the copy.

    Args:
        pad: fills rows up to the width.
        width: of the tensor; longer rows are cut at their end, or with `left` at their beginning.
        left: pad at the left.
    """
    import numpy as np
    import torch

    if isinstance(rows[0], int | np.integer):
        array = np.array(rows)
    else:
        width = max(map(len, rows)) if width is None else width
        array = np.full((len(rows), width), pad)
        for index, row in enumerate(rows):
            if left:
                array[index, max(0, width - len(row)) :] = row[-width:]
            else:
                array[index, : len(row)] = row[:width]
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
