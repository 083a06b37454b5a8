"""Attention in bfloat16 on a CPU: of some 80 tokens torch's own takes twice as long (CONTRIBUTING.md)."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask

#: What it is called among the implementations of transformers.
NAME = "trecexam_cpu"


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """softmax(query key^T scaling + attention_mask) value, as an implementation of transformers.

    Args:
        query, key, value: shape (texts, heads, tokens, head's dimension).
        attention_mask: what is added to the products, shape (texts, 1 or heads, tokens, tokens), or None.

    Returns:
        Shape (texts, tokens, heads, head's dimension), and no weights.
    """
    if query.shape != key.shape or options.get("position_bias") is not None or attention_mask is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
    texts, heads, tokens, size = query.shape
    rows = (texts * heads, tokens, size)
    products = torch.bmm(query.reshape(rows), key.reshape(rows).transpose(1, 2))
    masked = torch.add(
        attention_mask, products.view(texts, heads, tokens, tokens), alpha=scaling or size**-0.5
    )
    # In bfloat16 the softmax takes twice as long.
    weights = torch.softmax(masked, dim=-1, dtype=torch.float32).to(value.dtype)
    sums = torch.bmm(weights.view(products.shape), value.reshape(rows))
    return sums.view(query.shape).transpose(1, 2).contiguous(), None


def use_cpu_attention(module: torch.nn.Module) -> None:
    """Gives it to the language models in a module that are in bfloat16 on a CPU, and use torch's."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, eager_mask)
    for model in module.modules():
        if (
            isinstance(model, PreTrainedModel)
            and (model.device.type, model.dtype) == ("cpu", torch.bfloat16)
            and model._supports_attention_backend
            and model.config._attn_implementation == "sdpa"
            and torch.backends.cpu.get_cpu_capability() != "DEFAULT"
        ):
            model.set_attn_implementation(NAME)
