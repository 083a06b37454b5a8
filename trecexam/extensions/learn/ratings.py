"""A grader's ratings of a query's cells, as features."""

from __future__ import annotations

import numpy as np

from trecexam.config import UnparsedPolicy
from trecexam.extensions.learn.arithmetic.passages import Floats
from trecexam.line.sheets import Sheet
from trecexam.line.stored_grades import StoredGrades
from trecexam.scores.ratings import MAX_RATING


def cell_ratings(sheet: Sheet, grades: StoredGrades, unparsed: UnparsedPolicy) -> tuple[Floats, int]:
    """The grader's ratings without people's, shape (passages, items); -1 without one.

    Where the grader gave probabilities, it is the expected rating: the sum of rating times probability. For
    how many something else is stored comes with them, see `Distributions`.
    """
    ratings = sheet.ratings(unparsed, human=False).ratings.astype(np.float64)
    if not grades.has_probabilities:
        return ratings, 0
    distributions = grades.distributions(sheet, read=True)
    expected = distributions.values @ np.arange(MAX_RATING + 1)
    return np.where((ratings >= 0) & ~np.isnan(expected), expected, ratings), distributions.unusable


def mean_ratings(ratings: Floats) -> Floats:
    """The mean rating of each passage; NaN without one.

    Args:
        ratings: see `cell_ratings`.
    """
    n = (ratings >= 0).sum(axis=1)
    return np.where(n, np.maximum(ratings, 0).sum(axis=1) / np.maximum(n, 1), np.nan)
