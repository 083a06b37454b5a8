"""The `ragval` grader: a judge that scores answers for truthfulness and relevance, seeing the knowledge block."""

from trecexam.graders.ragval.judge import FACTORY, Judge
from trecexam.graders.ragval.reading import Scores, read_scores

__all__ = ["FACTORY", "Judge", "Scores", "read_scores"]
