"""Activations whose last bits depend on no number of threads, and on no element's place in its batch.

torch parts a tensor's elements evenly among threads. What fills no vector register at the end of a part is
computed one by one, by another exponential function: with three threads, say, a prompt gets other bits in
another row of its tile. Here each part is a whole number of registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

#: Elements that torch leaves to one thread (at::internal::GRAIN_SIZE).
GRAIN = 2**15
#: A multiple of the elements that any processor takes at once.
VECTOR = 64


def evenly_parted(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same function of each element of a tensor, of any shape."""

    def function(x: Tensor) -> Tensor:
        size = _even_size(x.numel(), torch.get_num_threads())
        if x.device.type != "cpu" or (size == x.numel() and x.shape[-1] % VECTOR == 0):
            return activation(x)
        flat = functional.pad(x.reshape(-1), (0, size - x.numel()))
        return activation(flat)[: x.numel()].view(x.shape)

    return function


def _even_size(size: int, threads: int) -> int:
    """The least size from this one on that is parted in whole registers.

    Most kernels have a part for each `GRAIN` elements, at most one a thread; that of gelu has one a thread.
    """
    while True:
        parts = max(1, min(threads, -(-size // GRAIN)))
        excess = size % (step := VECTOR * math.lcm(threads, parts))
        if not excess:
            return size
        size += step - excess


class EvenlyParted(torch.nn.Module):
    """An activation of a model as `evenly_parted` has it."""

    def __init__(self, activation: torch.nn.Module) -> None:
        super().__init__()
        self._function = evenly_parted(activation)

    def forward(self, x: Tensor) -> Tensor:
        """As the activation."""
        return self._function(x)


def part_evenly(model: torch.nn.Module) -> None:
    """Replaces the activations of a model of transformers."""
    from transformers.activations import ACT2CLS

    kinds: Any = tuple(kind[0] if isinstance(kind, tuple) else kind for kind in ACT2CLS.values())
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, kinds):
                setattr(module, name, EvenlyParted(child))
