"""Scores from ratings: labels, Rubric-Cover, evaluation, leaderboards, correlation.

Knows no grader, no store and no file format. `Cover`, `nCover` and `ECover` are measures of `ir_measures`:

    >>> import ir_measures
    >>> from ir_measures import nDCG
    >>> from trecexam.scores import Cover
    >>> ir_measures.calc_aggregate([nDCG@10, Cover(rel=4)@20], qrels, run)  # doctest: +SKIP
"""

from trecexam.scores.columns import Cover, ECover, nCover
from trecexam.scores.correlation import Correlation
from trecexam.scores.labels import RubricQrel
from trecexam.scores.leaderboard import Leaderboard

__all__ = ["Correlation", "Cover", "ECover", "Leaderboard", "RubricQrel", "nCover"]
