"""Draws of what people would say of a query's passages, all at once: neighbours err together."""

from __future__ import annotations

import numpy as np

from trecexam.learning.arithmetic.features import Floats
from trecexam.learning.arithmetic.learning import Learned, QueryPassages, predict
from trecexam.learning.arithmetic.process import joint_posterior


def draw_judgments(learned: Learned, query: QueryPassages, n: int, rng: np.random.Generator) -> Floats:
    """Judgments of a query's passages, drawn from the posterior; shape (n, passages).

    A judged passage has its judgment in every draw. Others are not rounded to labels: their gain, with the
    noise of a judgment, held to the scale.
    """
    scale = learned.steps.scale
    gains = learned.steps.gains(query.features)
    known = ~np.isnan(query.judgments)
    drawn = np.empty((n, len(gains)))
    if learned.kernel is None:
        prediction = predict(learned, query)
        drawn[:] = prediction.gains + rng.standard_normal(drawn.shape) * prediction.deviations
    else:
        mean, covariance = joint_posterior(
            learned.kernel, query.vectors[known], query.judgments[known] - gains[known], query.vectors[~known]
        )
        root = np.linalg.cholesky(covariance)
        drawn[:, ~known] = gains[~known] + mean + rng.standard_normal((n, len(mean))) @ root.T
    drawn[:, known] = query.judgments[known]
    return np.clip(drawn, scale[0], scale[-1])
