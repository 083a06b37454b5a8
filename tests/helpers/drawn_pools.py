"""Pools simulated from a known model, for tests of learning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trecexam.extensions.learn.arithmetic.features import fusion, unretrieved
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.process import Kernel, cosines

#: The noise of the ranking of each of four runs.
NOISE = (0.6, 1.0, 1.6, 2.5)


def unit(rng: np.random.Generator, n: int, dimension: int = 6) -> np.ndarray:
    """Vectors of length 1."""
    vectors = rng.normal(size=(n, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def drawn_query(
    rng: np.random.Generator,
    name: str,
    *,
    noise: tuple[float, ...] = NOISE,
    passages: int = 40,
    depth: int = 20,
    labels: int = 4,
) -> QueryPassages:
    """A query whose passages are all judged 0 to `labels` - 1, by a latent value.

    It is the sum of cosine, words, a Gaussian process over passages, the query and noise. Each run ranks by
    it with additional noise. Five passages are background.
    """
    vectors, signal = unit(rng, passages, 8), rng.normal(size=(passages + 5, 4))
    signal[passages:] -= 1
    process = np.linalg.cholesky(Kernel(0.1, 0.3, 0.05).judged(cosines(vectors, vectors))) @ rng.normal(
        size=passages
    )
    latent = signal[:passages] @ [0.8, 0.1, 0.5, 0.0] + 0.8 * process + 0.3 * rng.normal()
    latent += 0.5 * rng.normal(size=passages)
    judgments = np.digitize(latent, [0.6, 1.4, 2.4][: labels - 1]).astype(float)
    seen = latent + rng.normal(size=(len(noise), passages)) * np.array(noise)[:, None]
    ranks = np.argsort(-seen, axis=1)[:, :depth].astype(np.int32)
    votes = np.append(fusion(ranks, passages), np.full(5, unretrieved(passages)))
    features = np.column_stack([votes, signal])
    docs = tuple(f"{name}-{at:02}" for at in range(passages))
    return QueryPassages(
        name, docs, ranks, judgments, np.empty(0), features[:passages], features[passages:], vectors
    )


def drawn_track(seed: int, n: int = 8, known: float = 1.0, **options: int) -> list[QueryPassages]:
    """Queries with a random share of judged passages."""
    queries = [
        drawn_query(np.random.default_rng([seed, at]), f"q{at:02}", **options)  # type: ignore[arg-type]
        for at in range(n)
    ]
    rng = np.random.default_rng([seed, 99])
    return [query.hiding(rng.random(len(query.doc_ids)) >= known) for query in queries]


def without_background(query: QueryPassages) -> QueryPassages:
    """The same without background passages."""
    return replace(query, background=query.background[:0])
