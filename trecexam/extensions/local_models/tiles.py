"""Batches of fixed shapes, so that the result for a prompt depends only on the prompt.

Kernels sum in another order where a batch has other dimensions, and bfloat16 keeps three digits: a prompt in
a batch of nine can get another rating than alone. So each prompt is padded to a length that its own length
gives, and goes through the model in a tile, a batch with a number of rows that this length gives; where there
are too few prompts, the tile is filled up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

#: Lengths are rounded up to steps of the first up to `COARSE_FROM` tokens, of the second above.
FINE, COARSE = 8, 16
COARSE_FROM = 256


class Tile(NamedTuple):
    """Rows that a model computes together.

    Attributes:
        places: of the prompts in what was given, one for each row; the last ones fill up and say nothing new.
        n_prompts: rows that are somebody's.
        length: columns; prompts are padded to it.
    """

    places: tuple[int, ...]
    n_prompts: int
    length: int


def padded_length(length: int, step: int | None = None) -> int:
    """The columns of the tile for a prompt of this length, a multiple of the step."""
    step = step or (FINE if length <= COARSE_FROM else COARSE)
    return -(-length // step) * step


def shared_length(tokens: Sequence[int], other_tokens: Sequence[int]) -> int:
    """The length of the prompts' common prefix, in whole steps, shorter than the first prompt."""
    length = 0
    for token, other in zip(tokens[:-1], other_tokens, strict=False):
        if token != other:
            break
        length += 1
    return length // COARSE * COARSE


def n_rows(length: int, tokens: int) -> int:
    """The rows of tiles of this length, from the tokens per tile."""
    return max(1, tokens // max(1, length))


def tiles(lengths: Sequence[int], rows_of: Callable[[int], int]) -> list[Tile]:
    """Cuts prompts into tiles, the longest first.

    Args:
        lengths: of the tiles that each prompt goes into, as `padded_length` gives them.
        rows_of: the rows of a tile of a length.

    Returns:
        Tiles in which each place stands once among the first `n_prompts`.
    """
    by_length: dict[int, list[int]] = {}
    for prompt_index, length in enumerate(lengths):
        by_length.setdefault(length, []).append(prompt_index)
    cut = []
    for length in sorted(by_length, reverse=True):
        prompt_indices, rows = by_length[length], rows_of(length)
        for start in range(0, len(prompt_indices), rows):
            part = prompt_indices[start : start + rows]
            cut.append(Tile((*part, *[part[-1]] * (rows - len(part))), len(part), length))
    return cut


def all_of(lengths: Sequence[int]) -> Tile:
    """All prompts as one tile, padded to the longest."""
    return Tile(tuple(range(len(lengths))), len(lengths), max(lengths))


def in_order(parts: Sequence[tuple[Tile, Tensor]]) -> Tensor:
    """The rows of tiles in the order of their prompts; shape (prompts, ...).

    Args:
        parts: tiles with their results, all of one shape but for the rows.
    """
    import torch

    rows = torch.cat([result[: tile.n_prompts] for tile, result in parts])
    prompt_indices = [prompt_index for tile, _ in parts for prompt_index in tile.places[: tile.n_prompts]]
    ordered = torch.empty_like(rows)
    ordered[torch.tensor(prompt_indices, device=rows.device)] = rows
    return ordered


def plan_tiles(
    lengths: Sequence[int], rows_of: Callable[[int], int], max_tokens: int
) -> tuple[list[list[int]], list[int]]:
    """Cuts prompts into batches of whole tiles, the longest first.

    Args:
        lengths: as for `tiles`.
        rows_of: as for `tiles`.
        max_tokens: of a batch; where a tile has more, its prompts are cut into several batches.

    Returns:
        Batches of places, and the places that fill no tile: more prompts may come that do.
    """
    batches: list[list[int]] = []
    left: list[int] = []
    size = max_tokens
    for tile in tiles(lengths, rows_of):
        rows = len(tile.places)
        if tile.n_prompts < rows:
            left += tile.places[: tile.n_prompts]
            continue
        part = min(rows, n_rows(tile.length, max_tokens))
        for start in range(0, rows, part):
            size += part * tile.length
            if size > max_tokens:
                batches.append([])
                size = part * tile.length
            batches[-1] += tile.places[start : start + part]
    return batches, left
