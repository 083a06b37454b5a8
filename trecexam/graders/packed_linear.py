"""Matrix products on a CPU by oneDNN, with weights that are laid out once.

In float32 torch gives them to MKL, which takes 2.3 times as long on an AMD EPYC; in bfloat16 it lays
weights out anew for each product. The operators are those that torch.compile uses; where a
torch or a processor has none, products are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch.nn import functional

#: Rows of a product that weights are laid out for; other numbers go as well.
ROWS = 256

Linear = Callable[[torch.Tensor], torch.Tensor]


def linear(
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    dtypes: Collection[torch.dtype] = (torch.float32,),
) -> Linear:
    """x -> x weight^T + bias, as fast as there is a way.

    Args:
        dtypes: of weights that are laid out.
    """
    weight = weight.detach()
    packed = None
    if weight.dtype in dtypes and weight.device.type == "cpu":
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
            torch.ops.mkldnn._linear_pointwise(weight[:1], packed, bias, "none", [], "")
        except (AttributeError, RuntimeError):
            packed = None
    if packed is None:
        return lambda x: functional.linear(x, weight, bias)

    def product(x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
        return made

    return product


class PackedLinear(torch.nn.Module):
    """A linear layer that is not trained any more."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self._linear = linear(layer.weight, layer.bias, (layer.weight.dtype,))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As the layer."""
        return self._linear(x)


def pack(module: torch.nn.Module, dtypes: Collection[torch.dtype] = (torch.float32,)) -> None:
    """Replaces the linear layers in a module on a CPU.

    Args:
        dtypes: of the layers that are replaced.
    """
    for name, child in module.named_children():
        if type(child) is not torch.nn.Linear:
            pack(child, dtypes)
        elif child.weight.dtype in dtypes and child.weight.device.type == "cpu":
            setattr(module, name, PackedLinear(child))
