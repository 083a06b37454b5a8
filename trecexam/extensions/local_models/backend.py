"""Input and output of a local language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Request = TypeVar("Request")


class Job(NamedTuple, Generic[Request]):
    """A request's prompt as tokens; jobs of a `group` begin with `prefix` equal tokens."""

    request: Request
    tokens: Sequence[int]
    group: Any = None
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
    rows: Sequence[Any], device: Any, pad: int = 0, width: int = 0, *, left: bool = False
) -> Tensor:
    """Return numbers, or padded rows of them, as a tensor on a device; nothing waits for the copy.

    Args:
        width: the least width of the tensor.
        left: pad at the left.
    """
    import numpy as np
    import torch

    if isinstance(rows[0], int | np.integer):
        array = np.array(rows)
    else:
        width = max(width, *map(len, rows))
        array = np.full((len(rows), width), pad)
        for index, row in enumerate(rows):
            start = width - len(row) if left else 0
            array[index, start : start + len(row)] = row
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
