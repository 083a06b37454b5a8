"""Components of examinees: an ability is the sum of its components' abilities.

    theta_j = sum over the components k of u_k,level(j, k)

Adding a number to all levels of one component and taking it from another's changes no ability. So the levels
of each component are centred: their abilities sum to 0, and a general mean holds the rest,

    theta_j = mean + sum over k of (u_k,level(j, k) - mean of u_k).

If two components always go together (each model has its own retriever), responses do not identify their
shares: the estimates are then the smallest shares that give the abilities, without standard errors, and a
note names the levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.exams.irt.model import Floats


@dataclass(frozen=True, eq=False)
class Components:
    """The level of each component for each examinee.

    Attributes:
        names: names of the components.
        levels: levels of each component, in the order of their first examinee.
        codes: index of each examinee's level in its component; shape (n_examinees, n_components).
    """

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Components:
        """Return components from each examinee's levels, in the order of `names`."""
        levels = [
            tuple(dict.fromkeys(row[column_index] for row in rows)) for column_index in range(len(names))
        ]
        codes = [
            [levels[column_index].index(row[column_index]) for column_index in range(len(names))]
            for row in rows
        ]
        return cls(tuple(names), tuple(levels), np.array(codes, np.intp).reshape(len(rows), len(names)))

    @property
    def n_levels(self) -> int:
        """The number of levels of all components."""
        return sum(map(len, self.levels))

    @property
    def constant(self) -> tuple[str, ...]:
        """The components with the same level for all examinees, which have no estimate."""
        return tuple(name for name, levels in zip(self.names, self.levels, strict=True) if len(levels) < 2)

    def without(self, names: Sequence[str]) -> Components:
        """Return the components without those in `names`."""
        column_indices = [column_index for column_index, name in enumerate(self.names) if name not in names]
        return Components(
            tuple(self.names[column_index] for column_index in column_indices),
            tuple(self.levels[column_index] for column_index in column_indices),
            self.codes[:, column_indices],
        )

    def design(self) -> Floats:
        """Return the design matrix: 1 at each examinee's levels; shape (n_examinees, n_levels)."""
        design = np.zeros((len(self.codes), self.n_levels))
        start = 0
        for column_index, levels in enumerate(self.levels):
            design[np.arange(len(self.codes)), start + self.codes[:, column_index]] = 1
            start += len(levels)
        return design

    def centring(self) -> Floats:
        """Return the matrix that centres levels, shape (n_levels, n_levels), and the row of the mean."""
        blocks = np.zeros((self.n_levels + 1, self.n_levels))
        start = 0
        for levels in self.levels:
            stop = start + len(levels)
            blocks[start:stop, start:stop] = np.eye(len(levels)) - 1 / len(levels)
            blocks[-1, start:stop] = 1 / len(levels)
            start = stop
        return blocks

    def told_apart(self) -> NDArray[np.bool_]:
        """Return True if each centred level's ability is identified; shape (n_levels,)."""
        null = _null_space(self.design())
        return np.asarray(np.abs(self.centring()[:-1] @ null).max(axis=1, initial=0) < 1e-8, np.bool_)

    def smallest(self, levels: Floats) -> Floats:
        """Return the levels' abilities of least squares that give the same examinees' abilities."""
        null = _null_space(self.design())
        smallest: Floats = levels - null @ (null.T @ levels)
        return smallest


def _null_space(design: Floats) -> Floats:
    _, singular, vectors = np.linalg.svd(design, full_matrices=True)
    rank = int((singular > 1e-8 * singular.max(initial=1)).sum())
    null: Floats = vectors[rank:].T
    return null
