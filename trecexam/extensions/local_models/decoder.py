"""Log-probabilities of answers from a decoder-only model.

There are three ways. Each model takes the first that gives what its plain forward passes give:

- "tree": a prompt and all answers are one sequence; a mask shows each answer the prompt and itself.
- "cache": the prompt is read once, and each answer continues a copy of its cache. Models without such masks
  (recurrent ones, attention by distance) go this way.
- "rows": each answer is a row of its own, behind its prompt.

In the first two, what the prompts of a passage have in common is read once. Rows are padded at the left, so
that all prompts end in the same column; a prompt's cached beginning is cut so that no padding comes after it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import on_device
from trecexam.extensions.local_models.batching import plan
from trecexam.extensions.local_models.choices import ChoiceTree

Way = Literal["tree", "cache", "rows"]
Tokens = Sequence[int]
#: How far, in nats, log-probabilities may be from those of plain forward passes.
TOLERANCE, TOLERANCE_IN_HALF = 1e-3, 0.2
EXACT = (torch.float32, torch.float64)
#: Tokens up to which masks are laid out for all pairs of a prompt's tokens.
LONGEST_TREE = 8_192
#: Settings of models that limit how far a token sees.
OTHER_WINDOWS = ("window_size", "attention_chunk_size")
#: Tokens of the prompts that are compared; the first two begin alike.
CHECKED, CHECKED_PREFIX = (150, 141, 40), 100


class Scored(NamedTuple):
    """A prompt of a batch: its tokens, and how many of them other prompts of its group begin with."""

    tokens: Tokens
    group: Any = None
    prefix: int = 0


class _Prefixes(NamedTuple):
    """Keys and values of beginnings of prompts, by layer: shape (prefixes, heads, length, width)."""

    layers: list[tuple[Tensor, Tensor] | None]
    rows: dict[Any, int]


class _Read(NamedTuple):
    """Prompts that were read. `logits`: at their ends, shape (prompts, 1, vocabulary)."""

    logits: Tensor
    cache: Any
    mask: Tensor
    lengths: Tensor


class Decoder:
    """Scores answers with a model of transformers.

    Args:
        pad: the padding token.
        ends: the tokens that end an answer.
    """

    def __init__(self, model: Any, pad: int, ends: Sequence[int]) -> None:
        self.model, self.pad, self.ends = model, pad, ends
        self.device = model.device
        self._accepted = inspect.signature(model.forward).parameters
        names = [name for name in ("past_key_values", "cache_params") if name in self._accepted]
        self._cache_name = names[0] if names and "attention_mask" in self._accepted else None
        self._config = model.config.get_text_config()
        self._tolerance = TOLERANCE if model.dtype in EXACT else TOLERANCE_IN_HALF
        self._works: dict[Way, bool] = {"rows": True}
        layers = DynamicCache(config=self._config).layers
        self.cuts_caches = not any(hasattr(layer, "conv_states") for layer in layers)
        self._attends = any(hasattr(layer, "keys") for layer in layers)
        kinds = getattr(self._config, "layer_types", None) or [""] * len(layers)
        # How far each kind of layer looks back; None: without limit.
        self._windows = {
            kind: getattr(layer, "sliding_window", None) for kind, layer in zip(kinds, layers, strict=False)
        }
        # The tree's masks have transformers' sliding windows, no others.
        settings = self._config.to_dict()
        others = [settings.get(name) for name in OTHER_WINDOWS]
        self._longest_tree = min([LONGEST_TREE, *(size for size in others if isinstance(size, int))])

    def way(self, length: int) -> Way:
        """Return the way for prompts of up to `length` tokens, answers included."""
        if length <= self._longest_tree and self.works("tree"):
            return "tree"
        return "cache" if self.works("cache") else "rows"

    @property
    def shares(self) -> bool:
        """Whether a common beginning of prompts is read once."""
        return self.cuts_caches and self.way(0) != "rows"

    def works(self, way: Way) -> bool:
        """Return True if the way gives what plain forward passes give; compared once."""
        if way not in self._works:
            with loading.out_of_memory():
                self._works[way] = self._cache_name is not None and self.difference(way) <= self._tolerance
        return self._works[way]

    @torch.inference_mode()
    def difference(self, way: Way) -> float:
        """Return the difference in nats from plain forward passes; infinite if the model fails.

        It is the largest of six, in half precision their mean: logits there are up to an eighth apart.
        """
        numbers = np.random.default_rng(1).integers(0, self._config.vocab_size, (3, max(CHECKED)))
        numbers[1, :CHECKED_PREFIX] = numbers[0, :CHECKED_PREFIX]
        rows = [Scored(numbers[i, :length].tolist(), i // 2) for i, length in enumerate(CHECKED)]
        if self.cuts_caches:
            rows[:2] = [row._replace(prefix=CHECKED_PREFIX) for row in rows[:2]]
        try:
            first = int(self._forward(self._tensor([rows[0].tokens]), 1)[0, -1].argmax())
            answers = [[first], [first - 1 if first else 1, first]]
            tree = ChoiceTree(answers, self.ends, self.device)
            expected = self._score("rows", rows, tree, 1)
            found = self._score(way, rows, tree, 10**6)
        except Exception as error:
            # A model that does not take such a mask, cache or length can fail in any way.
            if loading.is_out_of_memory(error):
                raise
            return float("inf")
        differences = (found - expected).abs().nan_to_num(nan=float("inf"))
        return float(differences.max() if self.model.dtype in EXACT else differences.mean())

    @torch.inference_mode()
    def scores(self, rows: Sequence[Scored], tree: ChoiceTree, max_tokens: int) -> Tensor:
        """Return log P(answer, end | prompt), shape (prompts, answers)."""
        way = self.way(max(len(row.tokens) for row in rows) + tree.longest)
        return self._score(way, rows, tree, max_tokens)

    @torch.inference_mode()
    def continued(
        self, prompts: Sequence[Tokens], continuations: Sequence[Sequence[Tokens]], max_tokens: int
    ) -> Tensor:
        """Return log P(continuation | prompt) without an end, prompt after prompt."""
        if not self.works("cache"):
            return self._in_rows(prompts, continuations, max_tokens)
        read = self._read([Scored(prompt) for prompt in prompts], None)
        return self._from_cache(read, continuations, max_tokens)

    def _score(self, way: Way, rows: Sequence[Scored], tree: ChoiceTree, max_tokens: int) -> Tensor:
        if way == "rows":
            prompts = [row.tokens for row in rows]
            flat = self._in_rows(prompts, [tree.answers] * len(rows), max_tokens, ends=True)
            return flat.view(len(rows), -1)
        several = _several(rows) if self.cuts_caches else {}
        prefixes = self._read_prefixes([rows[index] for index in several.values()]) if several else None
        order: list[int] = []
        scores: list[Tensor] = []
        for shares in (True, False):
            members = [index for index, row in enumerate(rows) if (row.group in several) == shares]
            if not members:
                continue
            after = [len(rows[index].tokens) - rows[index].prefix * shares for index in members]
            longest = max(len(rows[index].tokens) for index in members)
            for part in plan(after, max(1, max_tokens * max(after) // longest)):
                indices = [members[place] for place in part]
                width = max(after[place] for place in part)
                batch = [rows[index] for index in indices]
                if way == "tree":
                    read = self._read(batch, prefixes if shares else None, width, tree)
                    scores.append(tree.scores(read.logits))
                else:
                    read = self._read(batch, prefixes if shares else None, width)
                    answers = [tree.answers] * len(batch)
                    flat = self._from_cache(read, answers, max_tokens, ends=True)
                    scores.append(flat.view(len(batch), -1))
                order += indices
        return torch.cat(scores)[self._tensor(np.argsort(order).tolist())]

    def _read_prefixes(self, rows: Sequence[Scored]) -> _Prefixes:
        """Read the beginning of each row, padded at the right: no token sees what comes after it."""
        cache = DynamicCache()
        self._forward(self._tensor([row.tokens[: row.prefix] for row in rows]), 1, cache)
        layers = [None if layer.keys is None else (layer.keys, layer.values) for layer in cache.layers]
        return _Prefixes(layers, {row.group: index for index, row in enumerate(rows)})

    def _read(
        self,
        rows: Sequence[Scored],
        prefixes: _Prefixes | None,
        width: int | None = None,
        tree: ChoiceTree | None = None,
    ) -> _Read:
        """Read the last `width` tokens of prompts behind their cached beginnings, and a tree after them."""
        longest = max(len(row.tokens) for row in rows)
        width = width or longest
        before = longest - width
        inputs = self._tensor([row.tokens for row in rows], width, left=True)
        lengths = self._tensor([len(row.tokens) for row in rows])[:, None]
        positions = torch.arange(longest, device=self.device)[None] - (longest - lengths)
        cache = None
        if prefixes is not None and before:
            index = self._tensor([prefixes.rows[row.group] for row in rows])
            cache = self._cut(prefixes, index, positions[:, :before])
        elif tree is None:
            cache = self._new_cache()
        mask, keep = positions >= 0, 1
        masks: Any = mask.long()
        if tree is not None:
            inputs = torch.cat([inputs, tree.tokens.expand(len(rows), -1)], dim=1)
            positions = torch.cat([positions, lengths + tree.depths - 1], dim=1)
            masks, keep = self._tree_masks(positions, before, tree), 1 + len(tree.tokens)
        logits = self._forward(inputs, keep, cache, masks, positions[:, before:].clamp(min=0))
        return _Read(logits, cache, mask, lengths)

    def _tree_masks(self, positions: Tensor, before: int, tree: ChoiceTree) -> Any:
        """Return the attention mask of prompts and nodes; one for each kind of layer if these differ."""
        columns, nodes = positions.shape[1], len(tree.tokens)
        sees = torch.ones(columns - before, columns, dtype=torch.bool, device=self.device).tril(before)
        sees[-nodes:, -nodes:] = tree.sees
        allowed = sees[None] & (positions >= 0)[:, None]
        masks = {}
        for kind, window in self._windows.items():
            seen = allowed
            if window is not None and window < columns:
                seen = allowed & (positions[:, before:, None] - positions[:, None] < window)
            additive = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
            masks[kind] = additive.masked_fill_(~seen, torch.finfo(additive.dtype).min)[:, None]
        return masks if len(set(self._windows.values())) > 1 else next(iter(masks.values()))

    def _from_cache(
        self, read: _Read, continuations: Sequence[Sequence[Tokens]], max_tokens: int, *, ends: bool = False
    ) -> Tensor:
        """Return the log-probabilities of each prompt's continuations, prompt after prompt."""
        pairs = [(row, tokens) for row, of_row in enumerate(continuations) for tokens in of_row]
        longest = max(len(tokens) for _, tokens in pairs)
        width = longest if ends else longest - 1
        at_once = max(1, max_tokens // (read.mask.shape[1] + width))
        scores = []
        for start in range(0, len(pairs), at_once):
            part = pairs[start : start + at_once]
            rows = self._tensor([row for row, _ in part])
            logits = read.logits[rows]
            if width:
                inputs = self._tensor([tokens for _, tokens in part], width)
                mask = torch.nn.functional.pad(read.mask[rows], (0, width), value=True).long()
                positions = read.lengths[rows] + torch.arange(width, device=self.device)
                cache = _selected(read.cache, rows)
                # Recurrent layers go on with a state by one token only.
                step = width if self.cuts_caches else 1
                for place in range(0, width, step):
                    end = place + step
                    seen = mask[:, : mask.shape[1] - width + end] if self._attends else None
                    after = self._forward(inputs[:, place:end], step, cache, seen, positions[:, place:end])
                    logits = torch.cat([logits, after], dim=1)
            scores.append(self._summed(logits, [0] * len(part), [tokens for _, tokens in part], ends=ends))
        return torch.cat(scores)

    def _in_rows(
        self,
        prompts: Sequence[Tokens],
        continuations: Sequence[Sequence[Tokens]],
        max_tokens: int,
        *,
        ends: bool = False,
    ) -> Tensor:
        """Return the same by rows of a prompt and a continuation, padded at the right."""
        pairs = [(prompt, answer) for prompt, of in zip(prompts, continuations, strict=True) for answer in of]
        scores = []
        parts = plan([len(prompt) + len(answer) for prompt, answer in pairs], max_tokens)
        for part in parts:
            batch = [pairs[index] for index in part]
            first = min(len(prompt) for prompt, _ in batch) - 1
            inputs = self._tensor([[*prompt, *answer] for prompt, answer in batch])
            logits = self._forward(inputs, inputs.shape[1] - first)
            starts = [len(prompt) - 1 - first for prompt, _ in batch]
            scores.append(self._summed(logits, starts, [answer for _, answer in batch], ends=ends))
        order = [index for part in parts for index in part]
        return torch.cat(scores)[self._tensor(np.argsort(order).tolist())]

    def _summed(
        self, logits: Tensor, starts: Sequence[int], continuations: Sequence[Tokens], *, ends: bool
    ) -> Tensor:
        """Return the log-probability of each row's continuation, and of an end after it.

        Args:
            starts: the column of `logits` that predicts the first token.
        """
        width = max(map(len, continuations)) + ends
        tokens = self._tensor(continuations, width)
        steps = torch.arange(width, device=self.device)
        columns = (self._tensor(starts)[:, None] + steps).clamp(max=logits.shape[1] - 1)
        predicted = logits.take_along_dim(columns[:, :, None], dim=1).float()
        total = torch.logsumexp(predicted, dim=-1)
        values = predicted.gather(2, tokens[:, :, None])[:, :, 0] - total
        lengths = self._tensor([len(continuation) for continuation in continuations])[:, None]
        scores = values.masked_fill(steps >= lengths, 0.0)
        if ends:
            end = torch.logsumexp(predicted[:, :, list(self.ends)], dim=-1) - total
            scores = scores + end.masked_fill(steps != lengths, 0.0)
        return scores.sum(dim=1)

    def _forward(
        self,
        tokens: Tensor,
        keep: int,
        cache: Any = None,
        mask: Any = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return the logits of the last `keep` columns."""
        inputs: dict[str, Any] = {"input_ids": tokens, "use_cache": cache is not None}
        if cache is not None:
            inputs[str(self._cache_name)] = cache
        further = {"attention_mask": mask, "position_ids": positions, "logits_to_keep": keep}
        inputs |= {k: value for k, value in further.items() if value is not None and k in self._accepted}
        logits: Tensor = self.model(**inputs).logits
        return logits[:, -keep:]

    def _new_cache(self) -> Any:
        # Without the configuration, no layer drops what is out of its window: a cache can be cut anywhere.
        return DynamicCache() if self.cuts_caches else DynamicCache(config=self._config)

    def _cut(self, prefixes: _Prefixes, index: Tensor, positions: Tensor) -> Any:
        """Return a cache with each row's prefix up to the last position, padded at the left."""
        cache = self._new_cache()
        columns = positions.clamp(min=0)
        for number, layer in enumerate(prefixes.layers):
            if layer is not None:
                keys, values = (states.transpose(1, 2)[index[:, None], columns] for states in layer)
                cache.update(keys.transpose(1, 2), values.transpose(1, 2), number)
        return cache

    def _tensor(self, rows: Sequence[Any], width: int | None = None, *, left: bool = False) -> Tensor:
        return on_device(rows, self.device, self.pad, width, left=left)


def _several(rows: Sequence[Scored]) -> dict[Any, int]:
    """Return the groups of which several rows share a beginning, each with the place of its first row."""
    first: dict[Any, int] = {}
    several: dict[Any, int] = {}
    for index, row in enumerate(rows):
        if row.prefix and first.setdefault(row.group, index) != index:
            several[row.group] = first[row.group]
    return several


def _selected(cache: Any, rows: Tensor) -> Any:
    """Return a cache of these rows; the other cache stays as it is."""
    selected = copy.copy(cache)
    selected.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in selected.layers:
        vars(layer).update({name: dict(of) for name, of in vars(layer).items() if isinstance(of, dict)})
    selected.reorder_cache(rows)
    return selected
