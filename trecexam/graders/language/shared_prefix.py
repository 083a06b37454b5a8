"""Scoring with a decoder-only model that reads what prompts begin with in common only once.

The common tokens of a passage's prompts go through the model as one row; what they left in the key-value
cache serves each of the prompts, and all answers follow as one tree of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from trecexam.graders.language.backend import Job
from trecexam.graders.language.choices import ChoiceTree

if TYPE_CHECKING:
    from torch import Tensor

#: Models (by `model_type`) that attend to whatever a 4-dimensional mask lets them see, at the positions
#: given. The tests compare each with a plain forward pass.
SHARING = frozenset(
    ("codegen", "cohere2", "falcon", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "gpt_oss", "gptj",
     "llama", "mistral", "mixtral", "olmo2", "opt", "phi3", "qwen2", "qwen3", "smollm3", "stablelm")
)  # fmt: skip


def can_share(config: Any, length: int) -> bool:
    """Whether prompts of up to `length` tokens, answers included, can share a prefix in this model.

    Not so where the model looks back no further than a window and the prompt is longer, or where
    positions are made of the padding mask (ALiBi).
    """
    if config.model_type not in SHARING or getattr(config, "alibi", False):
        return False
    window = getattr(config, "sliding_window", None)
    return window is None or getattr(config, "use_sliding_window", None) is False or length <= window


def tree_logits(model: Any, jobs: Sequence[Job], tree: ChoiceTree, pad: int) -> Tensor:
    """Logits at the end of each prompt and at each node of the tree.

    Returns:
        Shape (jobs, 1 + nodes, vocabulary).
    """
    from transformers import DynamicCache

    device = model.device
    rows, prefixes = _shared(jobs)
    cache = DynamicCache()
    prefix_tokens, prefix_mask = left_padded(prefixes, pad, device)
    if prefix_tokens.shape[1]:
        model(
            input_ids=prefix_tokens,
            attention_mask=prefix_mask.long(),
            position_ids=_positions(prefix_mask),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache.batch_select_indices(torch.tensor(rows, device=device))
    lengths = [len(prefixes[row]) for row in rows]
    suffixes = [list(job.tokens[length:]) for job, length in zip(jobs, lengths, strict=True)]
    tokens, mask = left_padded(suffixes, pad, device)
    nodes = torch.tensor(tree.tokens, device=device).expand(len(jobs), -1)
    before = torch.tensor(lengths, device=device)[:, None]
    after = torch.tensor([job.length for job in jobs], device=device)[:, None]
    depths = torch.tensor(tree.depths, device=device)
    logits: Tensor = model(
        input_ids=torch.cat([tokens, nodes], dim=1),
        attention_mask=_additive(_sees(prefix_mask[rows], mask, tree), model.dtype),
        position_ids=torch.cat([before + _positions(mask), after + depths[None] - 1], dim=1),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=len(tree.tokens) + 1,
    ).logits
    return logits


def left_padded(rows: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[Tensor, Tensor]:
    """Tokens padded at the beginning, and True where there is a token; shape (rows, longest)."""
    longest = max(map(len, rows))
    padded = [[*[pad] * (longest - len(row)), *row] for row in rows]
    mask = [[*[False] * (longest - len(row)), *[True] * len(row)] for row in rows]
    return (
        torch.tensor(padded, dtype=torch.long, device=device),
        torch.tensor(mask, dtype=torch.bool, device=device),
    )


def _positions(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def _sees(prefix: Tensor, suffix: Tensor, tree: ChoiceTree) -> Tensor:
    """Which token of suffix and tree sees which of prefix, suffix and tree; shape (jobs, seeing, seen)."""
    jobs, length = suffix.shape
    nodes = len(tree.tokens)
    valid = torch.cat([prefix, suffix, suffix.new_ones(jobs, nodes)], dim=1)
    order = torch.zeros(length + nodes, valid.shape[1], dtype=torch.bool, device=suffix.device)
    order[:, : prefix.shape[1]] = True
    own = order[:, prefix.shape[1] :]
    own[:length, :length] = torch.ones(length, length, device=suffix.device).tril().bool()
    own[length:, :length] = True
    own[length:, length:] = torch.tensor(tree.sees(), device=suffix.device)
    return order[None] & valid[:, None]


def _additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    mask = torch.zeros(sees.shape, dtype=dtype, device=sees.device)
    return mask.masked_fill(~sees, torch.finfo(dtype).min)[:, None]


def _shared(jobs: Sequence[Job]) -> tuple[list[int], list[Sequence[int]]]:
    """The prefix that each job reads from the cache.

    Returns:
        For each job the row of its prefix, and the prefixes: what all jobs of a group begin with, less
        than any of them whole.
    """
    rows_of: dict[int, int] = {}
    prefixes: list[Sequence[int]] = []
    for job in jobs:
        if job.group not in rows_of:
            rows_of[job.group] = len(prefixes)
            prefixes.append(job.tokens[:-1])
            continue
        row = rows_of[job.group]
        prefixes[row] = _common(prefixes[row], job.tokens[:-1])
    return [rows_of[job.group] for job in jobs], prefixes


def _common(first: Sequence[int], second: Sequence[int]) -> Sequence[int]:
    length = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        length += 1
    return first[:length]
