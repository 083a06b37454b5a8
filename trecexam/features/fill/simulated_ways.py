"""Ways to treat dropped judgments beside the grader's: learned labels, one label, condensed lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.extensions.learn.verdict import LABEL, LEARNED
from trecexam.features.fill.ways import constant_label

if TYPE_CHECKING:
    from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
    from trecexam.extensions.learn.encoding import Encoded
    from trecexam.features.fill.arithmetic.simulation import Filler, Labels
    from trecexam.line.assessment import Assessment
    from trecexam.line.official import Official

CONDENSED = "condensed"


def other_ways(
    track: Assessment, official: Official, ways: Sequence[str], encoding: Encoded | None = None
) -> dict[str, Filler]:
    """What fills dropped judgments, by the way's name.

    Args:
        ways: "learned", "condensed", "label:N", and "label" for each label above 0 that people gave.
        encoding: called with how many passages are encoded, and of how many.

    Raises:
        TrecexamError: a way that is none; of "learned", as `learn_pool`.
    """
    given = sorted({label for judged in official.judged.values() for label in judged.values() if label > 0})
    names = [
        name for way in ways for name in ([f"{LABEL}{label}" for label in given] if way == "label" else [way])
    ]
    fillers: dict[str, Filler] = {}
    for name in names:
        constant = constant_label(name)
        if constant is not None:
            fillers[name] = _Constant(constant)
        elif name == LEARNED:
            fillers[name] = Learner(gather_data(track, official=official, progress=encoding).queries)
        elif name == CONDENSED:
            fillers[name] = None
        else:
            raise TrecexamError(f"--by {name}: is none of learned, condensed, label and label:N")
    return fillers


class Learner:
    """Labels that are learned from the judgments that remain.

    Attributes:
        n_unlearned: how often these were too few to learn from.
    """

    def __init__(self, queries: Sequence[PooledQueryToLearn]) -> None:
        self._queries = queries
        self.n_unlearned = 0

    def __call__(self, dropped: Mapping[str, Collection[str]]) -> Labels:
        seen = [
            query.hiding(np.array([doc_id in docs for doc_id in query.doc_ids], bool))
            for query in self._queries
            for docs in [dropped.get(query.passages.query_id, ())]
        ]
        with threadpool_limits(1):
            try:
                learned = fit([query.passages for query in seen])
            except ValueError:
                self.n_unlearned += 1
                return {}
            return {
                query.passages.query_id: dict(
                    zip(
                        query.passages.doc_ids,
                        map(int, predict(learned, query.passages).labels.tolist()),
                        strict=True,
                    )
                )
                for query in seen
                if query.passages.query_id in dropped
            }


class _Constant:
    """The same label for each passage."""

    def __init__(self, label: int) -> None:
        self._label = label

    def __call__(self, dropped: Mapping[str, Collection[str]]) -> Labels:
        return {query_id: dict.fromkeys(docs, self._label) for query_id, docs in dropped.items()}
