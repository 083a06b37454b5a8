"""Rules from automatic labels to the scale of the official judgments, and probabilities of labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.expected import best_at_least, with_probabilities
from trecexam.scores.labels import LabelRule, labels
from trecexam.scores.ratings import MAX_RATING, QueryRatings

Ints = NDArray[np.int64]
RuleName = Literal["identity", "thresholds", "fitted"]

#: Maximum number of rules that a fit may try.
MOST_RULES = 200_000


@dataclass(frozen=True)
class ScaleMap:
    """A monotone rule from automatic to official labels.

    Attributes:
        rule: "identity", "thresholds" or "fitted".
        lowest: the official label of automatic labels below every cut.
        cuts: (lowest automatic label, official label) pairs, both rising. Empty for "identity".
        n_both: number of passages in the fit; 0 without a fit.
        kappa: quadratic-weighted kappa on these passages, -1..1.
    """

    rule: str
    lowest: int = 0
    cuts: tuple[tuple[int, int], ...] = ()
    n_both: int = 0
    kappa: float = float("nan")

    def __call__(self, label: int) -> int:
        """Return the official label for an automatic one."""
        if self.rule == "identity":
            return label
        return max((to for least, to in self.cuts if label >= least), default=self.lowest)

    def __str__(self) -> str:
        """Return the rule in words, for a report or a sidecar."""
        if self.rule == "identity":
            return "identity: the automatic label, unchanged"
        parts = [f"below {self.cuts[0][0]}: {self.lowest}"] if self.cuts else [f"always {self.lowest}"]
        parts += [f"from {least}: {to}" for least, to in self.cuts]
        fit = f" on {self.n_both:,} passages (weighted kappa {self.kappa:.2f})" if self.n_both else ""
        return f"{self.rule}{fit}: {', '.join(parts)}"


IDENTITY = ScaleMap("identity")


def thresholds(cuts: Mapping[int, int]) -> ScaleMap:
    """Return the rule with these cuts: lowest automatic label -> official label.

    Raises:
        ValueError: no cuts, or the rule is not monotone.
    """
    ordered = tuple(sorted(cuts.items()))
    if not ordered:
        raise ValueError("give at least one LABEL=OFFICIAL")
    for (label, official), (next_label, next_official) in pairwise((("lower labels", 0), *ordered)):
        if next_official < official:
            raise ValueError(
                f"official labels must not fall as labels rise: {label}={official} and then "
                f"{next_label}={next_official}"
            )
    return ScaleMap("thresholds", 0, ordered)


def fitted(labels: Sequence[int], judgments: Sequence[int]) -> ScaleMap:
    """Return the rule that agrees best with human judgments of the same passages.

    The result is the monotone rule with the greatest quadratic-weighted kappa (Cohen, "Weighted kappa:
    nominal scale agreement provision for scaled disagreement or partial credit", Psychological Bulletin 70,
    1968); ties go to the rule with smaller labels. A rule with most exact matches could give every passage
    the most frequent judgment; this rule does not. Official labels are the labels in `judgments`.

    Args:
        labels, judgments: one value per passage.

    Raises:
        ValueError: no passages, a negative judgment, a single official or automatic label, or too many labels
            to try all rules.
    """
    automatic, human = np.asarray(labels, np.int64), np.asarray(judgments, np.int64)
    if not len(human):
        raise ValueError("no passage has both an automatic and an official label")
    if human.min() < 0:
        raise ValueError(f"{human.min()} is not a judgment")
    levels, column = np.unique(human, return_inverse=True)
    seen, row = np.unique(automatic, return_inverse=True)
    if len(levels) < 2 or len(seen) < 2:
        which, only = ("official", levels) if len(levels) < 2 else ("automatic", seen)
        raise ValueError(f"the {len(human):,} passages with both have no {which} label but {only[0]}")
    table = np.zeros((len(seen), len(levels)), np.int64)
    np.add.at(table, (row, column), 1)
    # `starts[i]` is the row from which level i + 1 is given; len(seen) is never.
    steps = range(len(seen), -1, -1)
    n_rules = math.comb(len(seen) + len(levels) - 1, len(levels) - 1)
    if n_rules > MOST_RULES:
        raise ValueError(f"{len(seen)} automatic and {len(levels)} official labels are too many to fit")
    best, best_starts = -np.inf, (len(seen),) * (len(levels) - 1)
    for falling in itertools.combinations_with_replacement(steps, len(levels) - 1):
        kappa = _weighted_kappa(table, falling[::-1], levels)
        if kappa > best + 1e-12:
            best, best_starts = kappa, falling[::-1]
    cuts: dict[int, int] = {}
    for start, level in zip(best_starts, levels[1:].tolist(), strict=True):
        if start < len(seen):
            cuts[int(seen[start])] = level
    lowest = cuts.pop(int(seen[0]), int(levels[0]))
    return ScaleMap("fitted", lowest, tuple(sorted(cuts.items())), len(human), float(best))


def _weighted_kappa(table: Ints, starts: Sequence[int], levels: Ints) -> float:
    """Return kappa of the rule with level i + 1 from row starts[i] on."""
    level_of_row = np.add.reduce([np.arange(len(table)) >= start for start in starts])
    merged = np.zeros((len(levels), len(levels)))
    np.add.at(merged, level_of_row, table)
    weights = (levels[:, None] - levels[None, :]) ** 2.0
    expected = np.outer(merged.sum(axis=1), merged.sum(axis=0)) / merged.sum()
    chance = float((weights * expected).sum())
    return 1 - float((weights * merged).sum()) / chance if chance else 0.0


def label_confidences(
    q: QueryRatings,
    distributions: NDArray[np.float64],
    rule: LabelRule = "max",
    min_rating: int = 4,
    min_answers: int = 1,
) -> dict[str, float]:
    """Return each passage's label probability, with each rating drawn from its distribution.

    Cells are taken as independent. With N(r), the number of items rated r or better (Poisson-binomial),
    m = min_answers and t = min_rating:

        "max":    P(label = r) = P(N(r) >= m) - P(N(r + 1) >= m),  where P(N(0) >= m) counts as 1
        "count":  P(label = c) = P(N(t) = c) for c >= m,  P(label = 0) = P(N(t) < m)

    A cell without a rating reaches nothing, as in the label itself. Items that ask alike are not independent:
    use the figures to order the lines, not as a rate of errors.

    Args:
        distributions: float64 of shape (n_docs, n_items, 6), probabilities of the ratings 0..5; NaN where
            the grader gave none.
        rule, min_rating, min_answers: as in `trecexam.scores.labels.labels`.

    Returns:
        doc_id -> probability, 0..1; only passages with a distribution for each of their ratings, and that
        nobody rated as a whole.

    Raises:
        ValueError: as `labels`; or a shape that does not fit.
    """
    label_of = labels(q, rule, min_rating, min_answers)
    shape = (*q.ratings.shape, MAX_RATING + 1)
    if distributions.shape != shape:
        raise ValueError(f"distributions of shape {distributions.shape} and not {shape}")
    rated = q.ratings >= 0
    whole = distributions.sum(axis=2)
    has_probabilities = (~rated | (np.isfinite(whole) & (whole > 0))).all(axis=1) & rated.any(axis=1)
    reached = with_probabilities(q, distributions).at_least
    assert reached is not None
    # Column n: the probability of a label of n or more.
    best = max(label_of.values(), default=0) if rule == "count" else MAX_RATING
    at_least = np.ones((len(q.doc_ids), best + 2))
    if rule == "count":
        for n in range(1, best + 2):
            at_least[:, n] = best_at_least(reached[:, :, [min_rating - 1]], max(n, min_answers))[:, 0]
    else:
        at_least[:, 1:-1], at_least[:, -1] = best_at_least(reached, min_answers), 0
    chances = (at_least[:, :-1] - at_least[:, 1:]).clip(0, 1)
    return {
        doc_id: float(of_doc[label_of[doc_id]])
        for doc_id, of_doc, is_complete in zip(q.doc_ids, chances, has_probabilities.tolist(), strict=True)
        if is_complete and doc_id in label_of and doc_id not in q.human
    }
