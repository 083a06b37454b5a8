"""Permitted answers as a tree of tokens, so that all of them are scored in one decoder pass.

The log-probability of an answer is the sum of those of its tokens, end token included:
log P(a | prompt) = sum_t log P(a_t | prompt, a_<t) + log P(end | prompt, a). Answers share the nodes of
their common beginnings. No length normalisation: these are probabilities of whole answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ChoiceTree:
    """The decoder's input for a set of answers, without the prompt.

    Attributes:
        tokens: the token of each node but the root, parents before children.
        parents: for each of them its parent's place in `tokens`, -1 for the root.
        depths: how many tokens are on the way from the root, the node's own counted.
        paths: for each answer, the (place whose output predicts, predicted token) pairs that make up its
            log-probability, the last without the end token; -1 is the root.
        leaves: for each answer, the place whose output must predict the end token.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    paths: tuple[tuple[tuple[int, int], ...], ...]
    leaves: tuple[int, ...]

    @classmethod
    def of(cls, answers: Sequence[Sequence[int]]) -> ChoiceTree:
        """The tree of answers given as token ids.

        Raises:
            ValueError: an answer is empty, or two answers have the same tokens.
        """
        tokens: list[int] = []
        parents: list[int] = []
        depths: list[int] = []
        node_indices: dict[tuple[int, int], int] = {}
        paths, leaves = [], []
        for answer in answers:
            if not answer:
                raise ValueError("an answer without tokens")
            at, path = -1, []
            for depth, token in enumerate(answer, 1):
                path.append((at, token))
                if (at, token) not in node_indices:
                    node_indices[at, token] = len(tokens)
                    tokens.append(token)
                    parents.append(at)
                    depths.append(depth)
                at = node_indices[at, token]
            if at in leaves:
                raise ValueError("two answers have the same tokens")
            paths.append(tuple(path))
            leaves.append(at)
        return cls(tuple(tokens), tuple(parents), tuple(depths), tuple(paths), tuple(leaves))

    def sees(self) -> list[list[bool]]:
        """The attention mask: each node sees itself and its ancestors; shape (nodes, nodes)."""
        rows = []
        for node in range(len(self.tokens)):
            row = [False] * len(self.tokens)
            at = node
            while at >= 0:
                row[at] = True
                at = self.parents[at]
            rows.append(row)
        return rows

    def distances(self) -> list[list[int]]:
        """Distances in tokens between nodes and their ancestors, root first; shape (nodes + 1, nodes + 1)."""
        depths = (0, *self.depths)
        return [[depths[row] - depths[column] for column in range(len(depths))] for row in range(len(depths))]
