"""Attention in bfloat16 on a CPU: torch's own takes twice as long (CONTRIBUTING.md)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask

#: What it is called among the implementations of transformers.
NAME = "trecexam_cpu"
#: Weights that are computed at once; more do not lie in a core's cache.
AT_ONCE = 2**19
_local = threading.local()


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
        attention_mask: what is added to products, shape (1 or texts, 1 or heads, tokens, tokens), or None.

    Returns:
        Shape (texts, tokens, heads, head's dimension), and no weights.
    """
    if query.shape != key.shape or options.get("position_bias") is not None or attention_mask is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
    texts, heads, tokens, size = query.shape
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    mask = attention_mask.expand(texts, heads, tokens, tokens)
    sums = torch.empty_like(value)
    for part in _parts(texts, heads, tokens):
        rows = query[part].shape[:2].numel(), tokens, size
        weights = _scratch("weights", query.dtype, (rows[0], tokens, tokens))
        exact = _scratch("exact", torch.float32, (rows[0], tokens, tokens))
        torch.bmm(query[part].view(rows), key[part].view(rows).transpose(1, 2), out=weights)
        masked = weights.view(mask[part].shape)
        torch.add(mask[part], masked, alpha=scaling or size**-0.5, out=masked)
        # In bfloat16 it takes twice as long.
        torch.softmax(weights, dim=-1, dtype=torch.float32, out=exact)
        weights.copy_(exact)
        torch.bmm(weights, value[part].view(rows), out=sums[part].view(rows))
    return sums.transpose(1, 2).contiguous(), None


def _parts(texts: int, heads: int, tokens: int) -> Iterator[tuple[slice, slice]]:
    """Some texts with all their heads, or some heads of a text: what is computed at once."""
    n_texts = max(1, AT_ONCE // (heads * tokens**2))
    n_heads = min(heads, max(1, AT_ONCE // tokens**2))
    for text in range(0, texts, n_texts):
        for head in range(0, heads, n_heads):
            yield slice(text, text + n_texts), slice(head, head + n_heads)


def _scratch(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Memory of this thread that is used again: new pages would cost more than what is computed."""
    number = torch.Size(shape).numel()
    memory: torch.Tensor | None = getattr(_local, name, None)
    if memory is None or memory.numel() < number or memory.dtype != dtype:
        # What is made in inference mode cannot be written to outside of it.
        with torch.inference_mode(False):
            memory = torch.empty(number, dtype=dtype)
        setattr(_local, name, memory)
    return memory[:number].view(shape)


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
