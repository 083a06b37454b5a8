"""Scores prompts with a decoder-only model that reads their common prefix only once.

The common tokens of a passage's prompts go through the model as one row; what they left in the key-value
cache serves each of the prompts, and all answers follow as one tree of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import Plan
from trecexam.extensions.local_models.choices import ChoiceTree
from trecexam.extensions.local_models.tiles import COARSE, Tile, padded_length, tiles

if TYPE_CHECKING:
    from torch import Tensor

#: Tiles, what computes one -> each tile with its result.
OfEach = Callable[[Sequence[Tile], Callable[[Tile], Any]], list[tuple[Tile, Any]]]
#: Prefixes whose lengths are in the same step of so many tokens are seen together.
PREFIX_STEP = 64
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


def tiled_logits(
    model: Any,
    jobs: Sequence[Job],
    tree: ChoiceTree,
    pad: int,
    prefix_rows: Callable[[int], int],
    suffix_rows: Callable[[int], int],
    of_each: OfEach,
    read_off: Callable[[Tensor], Tensor],
) -> list[tuple[Tile, Tensor]]:
    """Values from the logits at the end of each prompt and at each node of the tree, in tiles.

    It depends on each prompt and its `prefix` alone.

    Prefixes go through the model unpadded; then what follows, of prefixes of like length together.

    Args:
        prefix_rows: the rows of a tile of prefixes of a length.
        suffix_rows: the rows of a tile of what follows.
        of_each: tiles, what computes one -> each tile with its result.
        read_off: of a tile's logits, of shape (rows, 1 + nodes, vocabulary), what is wanted.

    Returns:
        Tiles of jobs, each with what is read off.
    """
    from transformers import DynamicCache

    caches = _prefix_caches(model, {tuple(job.tokens[: job.prefix]) for job in jobs}, prefix_rows, of_each)
    by_width: dict[int, list[int]] = {}
    for job_index, job in enumerate(jobs):
        by_width.setdefault(padded_length(job.prefix, PREFIX_STEP), []).append(job_index)
    cut = []
    for job_indices in by_width.values():
        widths = [
            padded_length(jobs[job_index].length - jobs[job_index].prefix, COARSE)
            for job_index in job_indices
        ]
        cut += [
            part._replace(places=tuple(job_indices[each] for each in part.places))
            for part in tiles(widths, suffix_rows)
        ]

    def of_tile(tile: Tile) -> Tensor:
        members = [jobs[job_index] for job_index in tile.places]
        lengths = [job.prefix for job in members]
        width = padded_length(max(lengths), PREFIX_STEP)
        cache = DynamicCache()
        layers = [caches[tuple(job.tokens[: job.prefix])] for job in members] if width else []
        for number, states in enumerate(zip(*layers, strict=True)):
            cache.update(
                torch.stack([functional.pad(keys, (0, 0, width - keys.shape[1], 0)) for keys, _ in states]),
                torch.stack(
                    [functional.pad(values, (0, 0, width - values.shape[1], 0)) for _, values in states]
                ),
                number,
            )
        seen = (
            torch.arange(width, device=model.device)[None]
            >= width - torch.tensor(lengths, device=model.device)[:, None]
        )
        return read_off(_logits(model, cache, seen, members, lengths, tree, pad, tile.length))

    return of_each(cut, of_tile)


def plan_shared(jobs: Sequence[Job], max_tokens: int) -> Plan:
    """Plans batches for `tiled_logits`, with a passage's prompts and prefixes of equal length together.

    Args:
        max_tokens: of a batch; a prefix is counted once.
    """
    order = sorted(range(len(jobs)), key=lambda i: (-jobs[i].prefix, jobs[i].group, -jobs[i].length, i))
    batches: list[list[int]] = []
    size = max_tokens
    prefix: tuple[int, int] | None = None
    for job_index in order:
        job = jobs[job_index]
        begins = (job.prefix, job.group) != prefix
        prefix = job.prefix, job.group
        suffix_length = job.length - job.prefix
        size += suffix_length + (job.prefix if begins else 0)
        if size > max_tokens:
            batches.append([])
            size = job.length
        batches[-1].append(job_index)
    return Plan(batches, [])


def _prefix_caches(
    model: Any,
    prefixes: Collection[tuple[int, ...]],
    rows_of: Callable[[int], int],
    of_each: OfEach,
) -> dict[tuple[int, ...], list[tuple[Tensor, Tensor]]]:
    """Each prefix's keys and values per layer, shape (heads, length, width); none for an empty prefix."""
    from transformers import DynamicCache

    caches: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {(): []}
    ordered = sorted(filter(None, prefixes))

    def layers_of(tile: Tile) -> Any:
        cache = DynamicCache()
        tokens = torch.tensor([ordered[prefix_index] for prefix_index in tile.places], device=model.device)
        _read(model, cache, tokens, torch.ones_like(tokens, dtype=torch.bool))
        return cache.layers

    for tile, layers in of_each(tiles([len(prefix) for prefix in ordered], rows_of), layers_of):
        for row, prefix_index in enumerate(tile.places[: tile.n_prompts]):
            caches[ordered[prefix_index]] = [(layer.keys[row], layer.values[row]) for layer in layers]
    return caches


def _read(model: Any, cache: Any, tokens: Tensor, mask: Tensor) -> None:
    """Runs the model on prefixes and returns their cache."""
    model(
        input_ids=tokens,
        attention_mask=mask.long(),
        position_ids=_positions(mask),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )


def _logits(
    model: Any,
    cache: Any,
    prefix_mask: Tensor,
    jobs: Sequence[Job],
    lengths: Sequence[int],
    tree: ChoiceTree,
    pad: int,
    width: int | None = None,
) -> Tensor:
    """Logits after prefixes in a cache, of `lengths` tokens; what follows is padded to `width`."""
    device = model.device
    suffixes = [list(job.tokens[length:]) for job, length in zip(jobs, lengths, strict=True)]
    tokens, mask = left_padded(suffixes, pad, device, width)
    nodes = torch.tensor(tree.tokens, device=device).expand(len(jobs), -1)
    before = torch.tensor(lengths, device=device)[:, None]
    after = torch.tensor([job.length for job in jobs], device=device)[:, None]
    depths = torch.tensor(tree.depths, device=device)
    logits: Tensor = model(
        input_ids=torch.cat([tokens, nodes], dim=1),
        attention_mask=_additive(_sees(prefix_mask, mask, tree), model.dtype),
        position_ids=torch.cat([before + _positions(mask), after + depths[None] - 1], dim=1),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=len(tree.tokens) + 1,
    ).logits
    return logits


def left_padded(
    rows: Sequence[Sequence[int]], pad: int, device: Any, length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Left-padded tokens and their mask; shape (rows, length or longest)."""
    longest = length or max(map(len, rows))
    padded = [[*[pad] * (longest - len(row)), *row] for row in rows]
    mask = [[*[False] * (longest - len(row)), *[True] * len(row)] for row in rows]
    return (
        torch.tensor(padded, dtype=torch.long, device=device),
        torch.tensor(mask, dtype=torch.bool, device=device),
    )


def _positions(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def _sees(prefix: Tensor, suffix: Tensor, tree: ChoiceTree) -> Tensor:
    """The attention mask of suffix and tree over prefix, suffix and tree; shape (jobs, queries, keys)."""
    jobs, length = suffix.shape
    nodes = len(tree.tokens)
    valid = torch.cat([prefix, suffix, suffix.new_ones(jobs, nodes)], dim=1)
    order = torch.zeros(length + nodes, valid.shape[1], dtype=torch.bool, device=suffix.device)
    order[:, : prefix.shape[1]] = True
    suffix_part = order[:, prefix.shape[1] :]
    suffix_part[:length, :length] = torch.ones(length, length, device=suffix.device).tril().bool()
    suffix_part[length:, :length] = True
    suffix_part[length:, length:] = torch.tensor(tree.sees(), device=suffix.device)
    return order[None] & valid[:, None]


def _additive(sees: Tensor, dtype: torch.dtype) -> Tensor:
    mask = torch.zeros(sees.shape, dtype=dtype, device=sees.device)
    return mask.masked_fill(~sees, torch.finfo(dtype).min)[:, None]
