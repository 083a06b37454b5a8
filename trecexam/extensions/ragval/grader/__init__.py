"""The `ragval` grader: a judge, who sees the knowledge block, scores answers' truthfulness and relevance."""

from trecexam.extensions.ragval.grader.judge import FACTORY, Judge
from trecexam.extensions.ragval.grader.reading import Scores, read_scores

__all__ = ["FACTORY", "Judge", "Scores", "read_scores"]
