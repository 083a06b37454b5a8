"""Log-probabilities of answers from a decoder-only model.

There are three methods. A model uses the first method that reproduces its plain forward passes:

- "tree": a prompt and all answers are one sequence; a mask shows each answer the prompt and itself.
- "cache": the prompt is read once, and each answer continues a copy of its cache. For models without such
  masks (recurrent ones, attention by distance).
- "rows": a prompt is read again with each answer.

The first two read the common prefix of a passage's prompts once. Rows are padded at the left, so
that all prompts end in the same column; a prompt's cached beginning is cut so that no padding comes after it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job, on_device
from trecexam.extensions.local_models.batching import plan
from trecexam.extensions.local_models.choices import ChoiceTree

Way = Literal["tree", "cache", "rows"]
#: A cache of prompt prefixes, and the row of each group.
_Prefixes = tuple[Any, dict[Any, int]]
#: Tolerance, in nats, for differences from plain forward passes.
TOLERANCE, TOLERANCE_IN_HALF = 1e-3, 0.2
EXACT = (torch.float32, torch.float64)
#: Maximum tokens of a prompt for masks over all pairs of tokens.
LONGEST_TREE = 8_192
#: Model settings that limit the attention window.
OTHER_WINDOWS = ("window_size", "attention_chunk_size")
#: Tokens of the test prompts; the first two have a common prefix.
CHECKED, CHECKED_PREFIX = (150, 141, 40), 100


class Decoder:
    """Scorer of answers with a decoder-only model of transformers.

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
        # Attention window of each kind of layer; None is unlimited.
        self._windows = {
            kind: getattr(layer, "sliding_window", None) for kind, layer in zip(kinds, layers, strict=False)
        }
        # The tree's masks have transformers' sliding windows, no others.
        settings = self._config.to_dict()
        windows = [settings.get(name) for name in OTHER_WINDOWS]
        self._longest_tree = min([LONGEST_TREE, *(size for size in windows if isinstance(size, int))])

    def method_for(self, length: int) -> Way:
        """Return the method for prompts of up to `length` tokens, answers included."""
        if length <= self._longest_tree and self.works("tree"):
            return "tree"
        return "cache" if self.works("cache") else "rows"

    @property
    def shares(self) -> bool:
        """True if a common prefix of prompts is read once."""
        return self.cuts_caches and self.method_for(0) != "rows"

    def works(self, name: Way) -> bool:
        """Return True if the method reproduces plain forward passes; tested once."""
        if name not in self._works:
            with loading.out_of_memory():
                self._works[name] = self._cache_name is not None and self.difference(name) <= self._tolerance
        return self._works[name]

    @torch.inference_mode()
    def difference(self, method: Way) -> float:
        """Return the difference in nats from plain forward passes; infinite if the model fails.

        The result is the largest of six differences, in half precision their mean, since logits there are
        coarse.
        """
        numbers = np.random.default_rng(1).integers(0, self._config.vocab_size, (3, max(CHECKED)))
        numbers[1, :CHECKED_PREFIX] = numbers[0, :CHECKED_PREFIX]
        jobs = [Job(None, numbers[i, :length].tolist(), i // 2) for i, length in enumerate(CHECKED)]
        jobs[:2] = [job._replace(prefix=CHECKED_PREFIX) for job in jobs[:2]]
        try:
            first = int(self._forward(self._tensor([jobs[0].tokens]), 1)[0, -1].argmax())
            tree = ChoiceTree([[first], [first - 1 if first else 1, first]], self.ends, self.device)
            expected = self._scored("rows", jobs, tree, 1)
            scores = self._scored(method, jobs, tree, 10**6)
        except Exception as error:
            # A model without support for the mask, cache or length can raise any error.
            if loading.is_out_of_memory(error):
                raise
            return float("inf")
        differences = (scores - expected).abs().nan_to_num(nan=float("inf"))
        return float(differences.max() if self.model.dtype in EXACT else differences.mean())

    @torch.inference_mode()
    def scores(self, jobs: Sequence[Job[Any]], tree: ChoiceTree, max_tokens: int) -> Tensor:
        """Return log P(answer, end | prompt), shape (prompts, answers)."""
        method = self.method_for(max(job.length for job in jobs) + tree.longest)
        return self._scored(method, jobs, tree, max_tokens)

    def continued(self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return log P(continuation | prompt), without an end token."""
        tree = ChoiceTree(continuations, [], self.device)
        scores: list[float] = self.scores([Job(None, prompt)], tree, 1)[0].tolist()
        return scores

    def _scored(self, method: Way, jobs: Sequence[Job[Any]], tree: ChoiceTree, max_tokens: int) -> Tensor:
        if method == "rows" or not self.cuts_caches:
            jobs = [job._replace(prefix=0) for job in jobs]
        prefixes = self._read_prefixes(jobs)
        after = [job.length - job.prefix for job in jobs]
        longest = max(job.length for job in jobs)
        parts = plan(after, max(1, max_tokens * max(after) // longest))
        scores = []
        for part in parts:
            batch = [jobs[index] for index in part]
            if method == "rows":
                logits = _at_nodes(tree, partial(self._in_rows, batch))
            else:
                logits = self._read(method, batch, prefixes, tree)
            scores.append(tree.scores(logits))
        order = [index for part in parts for index in part]
        return torch.cat(scores)[self._tensor(np.argsort(order).tolist())]

    def _read_prefixes(self, jobs: Sequence[Job[Any]]) -> _Prefixes:
        """Read the common prefix of each group's prompts; no token attends to padding on the right."""
        rows = {job.group: job.tokens[: job.prefix] for job in jobs if job.prefix}
        cache = DynamicCache()
        if rows:
            self._forward(self._tensor([*rows.values()]), 1, cache)
        return cache, {group: index for index, group in enumerate(rows)}

    def _read(
        self, name: Literal["tree", "cache"], jobs: Sequence[Job[Any]], prefixes: _Prefixes, tree: ChoiceTree
    ) -> Tensor:
        """Read prompts after their cached prefixes; return the logits at each node."""
        longest = max(job.length for job in jobs)
        width = max(job.length - job.prefix for job in jobs)
        before = longest - width
        inputs = self._tensor([job.tokens[-width:] for job in jobs], left=True)
        lengths = self._tensor([job.length for job in jobs])[:, None]
        positions = torch.arange(longest, device=self.device)[None] - (longest - lengths)
        cache = None
        if before:
            index = self._tensor([prefixes[1].get(job.group, 0) for job in jobs])
            cache = self._cut(prefixes[0], index, positions[:, :before])
        if name == "tree":
            inputs = torch.cat([inputs, tree.tokens.expand(len(jobs), -1)], dim=1)
            positions = torch.cat([positions, lengths + tree.depths[1:] - 1], dim=1)
            masks = self._tree_masks(positions, before, tree)
            return self._forward(inputs, len(tree.depths), cache, masks, positions[:, before:].clamp(min=0))
        cache = self._new_cache() if cache is None else cache
        mask = (positions >= 0).long()
        logits = self._forward(inputs, 1, cache, mask, positions[:, before:].clamp(min=0))

        def go_on(answer: Sequence[int]) -> Tensor:
            copied, seen, parts = copy.deepcopy(cache), mask, [logits]
            # Recurrent layers continue from a state by only one token.
            step = len(answer) if self.cuts_caches else 1
            for start in range(0, len(answer), step):
                tokens = self._tensor([answer[start : start + step]]).expand(len(jobs), -1)
                seen = torch.nn.functional.pad(seen, (0, step), value=1)
                positions = lengths + torch.arange(start, start + step, device=self.device)
                parts.append(self._forward(tokens, step, copied, seen if self._attends else None, positions))
            return torch.cat(parts, dim=1)

        return _at_nodes(tree, go_on)

    def _tree_masks(self, positions: Tensor, before: int, tree: ChoiceTree) -> Any:
        """Return the attention mask of prompts and nodes, or a mask per kind of layer if these differ."""
        columns, nodes = positions.shape[1], len(tree.sees)
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

    def _in_rows(self, jobs: Sequence[Job[Any]], answer: Sequence[int]) -> Tensor:
        """Return the logits at the end of prompts and after each token of an answer, without a mask."""
        first = min(job.length for job in jobs) - 1
        inputs = self._tensor([[*job.tokens, *answer] for job in jobs])
        logits = self._forward(inputs, inputs.shape[1] - first)
        starts = self._tensor([job.length - 1 - first for job in jobs])[:, None]
        columns = starts + torch.arange(1 + len(answer), device=self.device)
        return logits.take_along_dim(columns[:, :, None], dim=1)

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
        # Without the configuration, layers keep tokens outside of their window, so the cache can be cut.
        return DynamicCache() if self.cuts_caches else DynamicCache(config=self._config)

    def _cut(self, prefixes: Any, index: Tensor, positions: Tensor) -> Any:
        """Return a cache with each row's prefix up to the last position, padded at the left."""
        cache = self._new_cache()
        columns = positions.clamp(min=0)
        for number, layer in enumerate(prefixes.layers):
            if layer.keys is not None:
                both = layer.keys, layer.values
                keys, values = (states.transpose(1, 2)[index[:, None], columns] for states in both)
                cache.update(keys.transpose(1, 2), values.transpose(1, 2), number)
        return cache

    def _tensor(self, rows: Sequence[Any], *, left: bool = False) -> Tensor:
        return on_device(rows, self.device, self.pad, left=left)


def _at_nodes(tree: ChoiceTree, logits_of: Callable[[Sequence[int]], Tensor]) -> Tensor:
    """Return the logits at each node.

    Args:
        logits_of: an answer -> the logits at the root and at each of its tokens.
    """
    parts: list[Tensor] = []
    for shared, answer in tree.branches:
        parts.append(logits_of(answer)[:, 1 + shared if parts else 0 :])
    return torch.cat(parts, dim=1)
