"""Fit the embedding grader's cut points, and its soft ones, on a track's official judgments.

python tests/benchmarks/cut_points.py TRACK

Prints `cut_points` for [grader] of trecexam.toml, and what `SOFT_POINTS` and `SOFT_WIDTH` would be.

The cut points are found by equipercentile linking (Kolen & Brennan, Test Equating, ch. 2) of each judged
passage's best cosine over its query's items with its human judgment: a share s of the passages is judged
at least j, so the cosine that a share s of them reach means j. On the 0..3 scale of TREC Deep Learning,
judgment 1 (related) is linked to rating 2, 2 (highly relevant) to 4, and 3 (perfectly relevant) to 5; the
cuts for 3 and for 1 lie halfway between and as far below. Only shares are matched, no correlation is
optimised.

The soft points, and the width of the logistic around them, are what makes the judgments most likely where a
passage is judged at least as its best rating says and items are independent (noisy or),
P(judgment >= j) = 1 - prod over items of (1 - P(rating >= r_j)), with judgments linked to ratings as above.
So expected labels and ECover, which take items and passages as independent, are calibrated.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import converters
from trecexam.bank import Bank
from trecexam.bank.model import item_by_query
from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder
from trecexam.graders.embedding import EmbeddingGrader


def cut_points(folder: TrackFolder) -> dict[str, object]:
    """Return the settings of [grader], fitted on the track's passages, bank and official judgments.

    Raises:
        TrecexamError: passages or judgments are no files, or a judgment of 1, 2 or 3 never occurs.
        ConversionError: one of these cannot be read.
    """
    passages, qrels = folder.passages(), folder.qrels()
    if passages is None or qrels is None:
        raise TrecexamError("cut points need passages and official judgments as files", path=folder.root)
    everything = [item for path in folder.bank() for item in converters.read(path, "bank")]
    bank = Bank.from_items(map(item_by_query, everything) if folder.config.track.facets else everything)
    judged: dict[str, dict[str, int]] = {}
    for qrel in converters.read(qrels, "qrels"):
        judged.setdefault(qrel.query_id, {})[qrel.doc_id] = qrel.relevance
    judged_docs = {doc_id for labels in judged.values() for doc_id in labels}
    texts = {p.doc_id: p.text for p in converters.read(passages, "passages") if p.doc_id in judged_docs}
    embed = EmbeddingGrader.create(folder.config.grader, folder.root).embed
    cosines: list[NDArray[np.float64]] = []
    labels: list[int] = []
    for query_id, items in bank.items.items():
        docs = [doc_id for doc_id in judged.get(query_id, {}) if doc_id in texts]
        if docs:
            cosines += [*(embed([texts[d] for d in docs]) @ embed([item.text for item in items]).T)]
            labels += [judged[query_id][d] for d in docs]
    try:
        cuts = link([float(of_passage.max()) for of_passage in cosines], labels)
        points, width = soft_link(cosines, labels)
    except ValueError as error:
        raise TrecexamError(str(error), path=qrels) from None
    return {"cut_points": list(cuts), "# SOFT_POINTS": points, "# SOFT_WIDTH": width}


def soft_link(
    cosines: Sequence[NDArray[np.float64]], judgments: Sequence[int]
) -> tuple[tuple[float, ...], float]:
    """Maximum likelihood points and width, rounded to two digits; deterministic.

    Args:
        cosines: of each judged passage with its query's items.
        judgments: its human judgment on the 0..3 scale.

    Raises:
        ValueError: a judgment of 1, 2 or 3 never occurs.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    padded = np.full((len(cosines), max(map(len, cosines), default=0)), -np.inf)
    for row, of_passage in enumerate(cosines):
        padded[row, : len(of_passage)] = of_passage
    labels = np.asarray(judgments)
    start = link(padded.max(axis=1, initial=-1.0).tolist(), judgments)
    rows = np.arange(len(labels))

    def surprise(theta: NDArray[np.float64]) -> float:
        points = np.cumsum([theta[0], *np.exp(theta[1:3])])
        one_or_more = 1 - (1 - expit((padded[..., None] - points) / np.exp(theta[3]))).prod(axis=1)
        at_least = np.column_stack([np.ones(len(rows)), one_or_more, np.zeros(len(rows))])
        likely = at_least[rows, labels] - at_least[rows, labels + 1]
        return float(-np.log(np.maximum(likely, 1e-300)).mean())

    two, four, five = start[1], start[3], start[4]
    first = np.array([two, *np.log([max(four - two, 0.01), max(five - four, 0.01)]), np.log(0.05)])
    theta = minimize(surprise, first, method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-9}).x
    two, four, five = np.cumsum([theta[0], *np.exp(theta[1:3])]).tolist()
    points = (two - (four - two) / 2, two, (two + four) / 2, four, five)
    return tuple(round(point, 2) for point in points), round(float(np.exp(theta[3])), 2)


def link(best_cosines: Sequence[float], judgments: Sequence[int]) -> tuple[float, ...]:
    """Cut points for the ratings 1..5 from judged passages, two digits each.

    Args:
        best_cosines: each judged passage's highest cosine over its query's items.
        judgments: its human judgment on the 0..3 scale.

    Raises:
        ValueError: a judgment of 1, 2 or 3 never occurs.
    """
    labels = np.asarray(judgments)
    shares = []
    for judgment in (1, 2, 3):
        if not (labels == judgment).any():
            raise ValueError(
                f"no passage has the judgment {judgment}; fitting needs each of the judgments 0..3"
            )
        shares.append(float(np.quantile(best_cosines, 1 - (labels >= judgment).mean())))
    two, four, five = shares
    three = (two + four) / 2
    return tuple(round(cut, 2) for cut in (two - (three - two), two, three, four, five))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    try:
        for name, value in cut_points(TrackFolder.open(sys.argv[1])).items():
            print(f"{name} = {value}")
    except TrecexamError as error:
        raise SystemExit(f"cut_points: {error}") from None
