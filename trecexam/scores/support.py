"""Support: how far the passages that a response cites say what its sentences say.

The definitions are those of TREC RAG 2024 (Thakur et al., "Support Evaluation for the TREC 2024 RAG
Track", arXiv:2504.15205): full support weighs 1, partial support 0.5, none 0. With
one citation a sentence they are the track's; two things are ours, as it names none of them:

- Where all citations are looked at, each is one of precision's, and of recall's a sentence has its best one.
- A citation without a label (out of range, of a passage without a text, not graded or not read) weighs 0, as
  trec_eval takes what is not judged: made-up citations gain nothing.

Importing this module registers the measures' names with `ir_measures.parse_measure`. They have no provider,
since no qrels have them: `trecexam.line.support` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ir_measures import Measure, measures

#: What the ratings 0, 1 and 2 (none, partial, full) weigh.
WEIGHTS = (0.0, 0.5, 1.0)


class _SupportMeasure(Measure):
    SUPPORTED_PARAMS: dict[str, Any] = {}  # noqa: RUF012


class _SupportP(_SupportMeasure):
    """Weighted precision of citations, see `support_scores`."""

    __name__ = "SupportP"
    NAME = "SupportP"
    PRETTY_NAME = "Weighted precision of support"
    SHORT_DESC = "The mean weight of the citations of a response."


class _SupportR(_SupportMeasure):
    """Weighted recall of sentences, see `support_scores`."""

    __name__ = "SupportR"
    NAME = "SupportR"
    PRETTY_NAME = "Weighted recall of support"
    SHORT_DESC = "The mean weight of the sentences of a response, 0 where one cites nothing."


class _SupportF1(_SupportMeasure):
    """Harmonic mean of the two, see `support_scores`."""

    __name__ = "SupportF1"
    NAME = "SupportF1"
    PRETTY_NAME = "F1 of support"
    SHORT_DESC = "The harmonic mean of SupportP and SupportR."


SupportP, SupportR, SupportF1 = (measure() for measure in (_SupportP, _SupportR, _SupportF1))
#: The names of the measures, in the order of `SupportScores`.
SUPPORT = ("SupportP", "SupportR", "SupportF1")
for _measure in (SupportP, SupportR, SupportF1):
    measures.registry[_measure.NAME] = _measure


class SupportScores(NamedTuple):
    """Of one response, 0..1 each; 0 where there is nothing to average."""

    precision: float
    recall: float
    f1: float


def support_scores(sentences: Sequence[Sequence[float]]) -> SupportScores:
    """Weighted precision and recall of a response, and their harmonic mean.

    Args:
        sentences: of each sentence the weights of its citations that are looked at; empty where it has none.
    """
    citations = [weight for weights in sentences for weight in weights]
    precision = math.fsum(citations) / len(citations) if citations else 0.0
    recall = (
        math.fsum(max(weights, default=0.0) for weights in sentences) / len(sentences) if sentences else 0.0
    )
    both = precision + recall
    return SupportScores(precision, recall, 2 * precision * recall / both if both else 0.0)
