"""Permitted answers as a tree of tokens, so that all of them are scored in one decoder pass.

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
    """A set of answers as tensors on a device; made once.

    Attributes:
        answers: the tokens of each answer.
        tokens: the token of each node but the root, parents before children.
        depths: the number of tokens from the root to each node, the node's own included.
        sees: True where a node sees another, which is itself or an ancestor; shape (nodes, nodes).

    Args:
        answers: as token ids.
        ends: the tokens that end an answer.

    Raises:
        ValueError: an answer is empty, or two answers have the same tokens.
    """

    def __init__(self, answers: Sequence[Sequence[int]], ends: Sequence[int], device: Any) -> None:
        self.answers = answers
        tokens: list[int] = []
        depths: list[int] = []
        ancestors: list[list[int]] = []
        nodes: dict[tuple[int, ...], int] = {}
        steps: list[tuple[int, int, int]] = []
        leaves: list[int] = []
        for answer_index, answer in enumerate(answers):
            if not answer:
                raise ValueError("an answer without tokens")
            node = -1
            for depth, token in enumerate(answer, 1):
                steps.append((node + 1, token, answer_index))
                parent, beginning = node, tuple(answer[:depth])
                node = nodes.setdefault(beginning, len(tokens))
                if node == len(tokens):
                    tokens.append(token)
                    depths.append(depth)
                    ancestors.append([*(ancestors[parent] if parent >= 0 else []), node])
            if node + 1 in leaves:
                raise ValueError("two answers have the same tokens")
            leaves.append(node + 1)
        sees = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
        for node, seen in enumerate(ancestors):
            sees[node, seen] = True
        self.tokens = torch.tensor(tokens, device=device)
        self.depths = torch.tensor(depths, device=device)
        self.sees = sees.to(device)
        self._steps = torch.tensor(steps, device=device)
        self._leaves = torch.tensor(leaves, device=device)
        self._ends = torch.tensor(ends, device=device)
        self.longest = max(depths)

    def scores(self, logits: Tensor) -> Tensor:
        """Return log P(answer, end | prompt), float32 of shape (prompts, answers).

        Args:
            logits: at the prompt's end and at each node; shape (prompts, 1 + nodes, vocabulary).
        """
        # One node after the other: all logits in float32 may take gigabytes.
        total = torch.stack([torch.logsumexp(of.float(), dim=-1) for of in logits.unbind(1)], dim=1)
        nodes, tokens, answers = self._steps.unbind(1)
        values = logits[:, nodes, tokens].float() - total[:, nodes]
        scores = torch.zeros(len(logits), len(self.answers), device=logits.device)
        scores.index_add_(1, answers, values)
        ends = logits[:, self._leaves[:, None], self._ends[None]].float()
        return scores + torch.logsumexp(ends, dim=-1) - total[:, self._leaves]
