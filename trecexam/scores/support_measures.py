"""The names of the measures of support, as `ir_measures.parse_measure` reads them once this is imported.

They have no provider, since no qrels have what they are of: `trecexam.line.cited` computes them.
"""

from __future__ import annotations

from typing import Any

from ir_measures import Measure, measures


class _SupportMeasure(Measure):
    SUPPORTED_PARAMS: dict[str, Any] = {}  # noqa: RUF012


class _SupportP(_SupportMeasure):
    """Weighted precision of citations, see `trecexam.scores.support.support_scores`.

    .. cite.arxiv:: 2504.15205
    """

    __name__ = "SupportP"
    NAME = "SupportP"
    PRETTY_NAME = "Weighted precision of support"
    SHORT_DESC = "The mean weight of the citations of a response."


class _SupportR(_SupportMeasure):
    """Weighted recall of sentences, see `trecexam.scores.support.support_scores`.

    .. cite.arxiv:: 2504.15205
    """

    __name__ = "SupportR"
    NAME = "SupportR"
    PRETTY_NAME = "Weighted recall of support"
    SHORT_DESC = "The mean weight of the sentences of a response, 0 where one cites nothing."


class _SupportF1(_SupportMeasure):
    """Harmonic mean of the two, see `trecexam.scores.support.support_scores`.

    .. cite.arxiv:: 2504.15205
    """

    __name__ = "SupportF1"
    NAME = "SupportF1"
    PRETTY_NAME = "F1 of support"
    SHORT_DESC = "The harmonic mean of SupportP and SupportR."


SupportP, SupportR, SupportF1 = (measure() for measure in (_SupportP, _SupportR, _SupportF1))

for _measure in (SupportP, SupportR, SupportF1):
    measures.registry[_measure.NAME] = _measure
