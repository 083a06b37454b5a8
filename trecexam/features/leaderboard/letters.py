"""A compact letter display: runs that share a letter do not differ significantly, and all others do."""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray

_LETTERS = string.ascii_lowercase + string.ascii_uppercase


def group_letters(different: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return each run's letters: two runs share a letter exactly if they do not differ.

    The groups are cliques of the graph of runs that do not differ, which cover all of its edges: Piepho, "An
    Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", Journal of Computational and
    Graphical Statistics 13, 2004. They are found greedily, as the fewest would take exponential time: Gramm
    et al., "Algorithms for Compact Letter Displays", Computational Statistics & Data Analysis 52, 2007.

    Args:
        different: symmetric, of shape (n_runs, n_runs), False on the diagonal; the best run, with "a", first.

    Returns:
        "a", "ab", "b" ...; after 52 groups a letter has a number: "a1".
    """
    groups = _groups(~different)
    texts = [""] * len(different)
    for number, members in enumerate(groups):
        cycle, letter_index = divmod(number, len(_LETTERS))
        letter = _LETTERS[letter_index] + (str(cycle) if cycle else "")
        for run in members:
            texts[run] += letter
    return tuple(texts)


def _groups(alike: NDArray[np.bool_]) -> list[list[int]]:
    """Maximal cliques that cover all pairs, none made redundant by the others; by their first members."""
    open_pairs = alike.copy()
    groups = []
    for run in range(len(alike)):
        # All pairs with better runs are covered.
        while open_pairs[run].any():
            # The worst run first, then those with most pairs to cover.
            other = int(np.flatnonzero(open_pairs[run])[-1])
            members = sorted({run, other})
            candidates = alike[run] & alike[other]
            candidates[members] = False
            gain = open_pairs[members].sum(axis=0)
            while candidates.any():
                chosen = int(np.where(candidates, gain, -1).argmax())
                members.append(chosen)
                candidates &= alike[chosen]
                candidates[chosen] = False
                gain += open_pairs[chosen]
            open_pairs[np.ix_(members, members)] = False
            groups.append(sorted(members))
    times = np.zeros(alike.shape, np.int64)
    for members in groups:
        times[np.ix_(members, members)] += 1
    cliques = []
    for members in groups:
        pairs = np.ix_(members, members)
        if (times[pairs] > 1).all():
            times[pairs] -= 1
        else:
            cliques.append(members)
    return sorted(cliques)
