"""Pools of a model that is known, for what learning says of them."""

from __future__ import annotations

import numpy as np

from trecexam.extensions.learn.arithmetic.learning import QueryPassages
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.process import Kernel


def drawn_query(
    rng: np.random.Generator, name: str, noise: np.ndarray, *, passages: int = 90, depth: int = 20
) -> PooledQueryToLearn:
    """A query whose passages are all judged 0 to 3, by a latent value.

    Features, a Gaussian process over passages, the query and noise add up to it. Each run ranks by it with
    noise of its own.

    Args:
        noise: of each run, the standard deviation.
    """
    vectors = rng.normal(size=(passages, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    features = rng.normal(size=(passages, 4))
    process = np.linalg.cholesky(Kernel(0.1, 0.3, 0.05, 0.6).judged(vectors)) @ rng.normal(size=passages)
    latent = features @ [0.8, 0.5, 0.3, 0.0] + process + 0.3 * rng.normal() + 0.5 * rng.normal(size=passages)
    labels = np.digitize(latent, [0.6, 1.4, 2.4]).astype(float)
    seen = latent + rng.normal(size=(len(noise), passages)) * noise[:, None]
    ranks = np.argsort(-seen, axis=1)[:, :depth].astype(np.int32)
    docs = tuple(f"{name}-{at:02}" for at in range(passages))
    of_texts = QueryPassages(name, docs, vectors, features, labels)
    unrated = np.full(passages, np.nan)
    return PooledQueryToLearn(of_texts, docs, np.arange(passages), labels, ranks, np.empty(0), unrated)
