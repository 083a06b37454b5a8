"""Permitted answers as a tree of tokens, to score all answers in one decoder pass.

The log-probability of an answer is the sum of those of its tokens, end token included:
log P(a | prompt) = sum_t log P(a_t | prompt, a_<t) + log P(end | prompt, a). Answers share the nodes of
their common beginnings. No length normalisation: these are probabilities of whole answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class ChoiceTree:
    """A set of answers as tensors on a device.

    The root, node 0, is the end of the prompt.

    Attributes:
        branches: for each answer, the length of its prefix shared with an earlier answer, and its tokens.
        tokens: the token of each node but the root, in the order of `branches`.
        depths: the number of tokens from the root to each node, the node's own included.
        sees: True if the column's node is the row's node or an ancestor; shape (nodes, nodes).

    Args:
        answers: as token ids.
        ends: tokens that end an answer; empty if text may follow an answer.

    Raises:
        ValueError: an answer is empty, or two answers have the same tokens.
    """

    def __init__(self, answers: Sequence[Sequence[int]], ends: Sequence[int], device: Any) -> None:
        nodes: dict[tuple[int, ...], int] = {(): 0}
        steps: list[tuple[int, int, int]] = []
        self.branches: list[tuple[int, Sequence[int]]] = []
        for number, answer in enumerate(answers):
            if not answer:
                raise ValueError("an answer without tokens")
            paths = [tuple(answer[:depth]) for depth in range(len(answer) + 1)]
            self.branches.append((sum(path in nodes for path in paths) - 1, answer))
            for path in paths:
                nodes.setdefault(path, len(nodes))
            steps += [(nodes[path], token, number) for path, token in zip(paths, answer, strict=False)]
        leaves = [nodes[tuple(answer)] for answer in answers]
        if len(set(leaves)) < len(leaves):
            raise ValueError("two answers have the same tokens")
        depths = [len(path) for path in nodes]
        sees = [[path[: len(other)] == other for other in nodes] for path in nodes]
        self.tokens = torch.tensor([path[-1] for path in nodes if path], device=device)
        self.depths = torch.tensor(depths, device=device)
        self.sees = torch.tensor(sees, device=device)
        self.longest = max(depths)
        self._steps = torch.tensor(steps, device=device)
        self._leaves = torch.tensor(leaves, device=device)
        self._ends = torch.tensor(ends, dtype=torch.long, device=device)

    def scores(self, logits: Tensor) -> Tensor:
        """Return log P(answer, end | prompt), float32 of shape (prompts, answers).

        Args:
            logits: logits at each node; shape (prompts, nodes, vocabulary).
        """
        # One node at a time: all logits in float32 may take gigabytes.
        total = torch.stack([torch.logsumexp(of.float(), dim=-1) for of in logits.unbind(1)], dim=1)
        nodes, tokens, answers = self._steps.unbind(1)
        values = logits[:, nodes, tokens].float() - total[:, nodes]
        scores = torch.zeros(len(logits), len(self._leaves), device=logits.device)
        scores.index_add_(1, answers, values)
        if not len(self._ends):
            return scores
        ends = logits[:, self._leaves[:, None], self._ends[None]].float()
        return scores + torch.logsumexp(ends, dim=-1) - total[:, self._leaves]
