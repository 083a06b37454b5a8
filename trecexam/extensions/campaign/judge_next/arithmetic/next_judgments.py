"""Which human judgments would change the ranking of the runs most.

Choosing what to judge by what it does to the differences of systems follows Carterette, Allan & Sitaraman,
"Minimal Test Collections for Retrieval Evaluation", SIGIR 2006. There the weight of a document in the
difference of two systems' average precision decides; here any measure is computed itself, over all
pairs of runs, and what graders said weighs the answers (`chances.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from trecexam.extensions.campaign.judge_next.arithmetic.what_if import (
    Board,
    PossibleJudgments,
    Scoring,
    expected_effects,
)
from trecexam.scores.ratings import QueryRatings
from trecexam.scores.values import TIE_DECIMALS

#: The orders of suggestions.
By = Literal["change", "swaps"]


class Suggestion(NamedTuple):
    """A judgment that could change the ranking.

    Attributes:
        item: the item's place among the query's, from 0; None where the passage as a whole is judged.
        now: the passage's label, or the cell's rating.
        expected_swaps, expected_change, p_change: see `what_if.Effects`.
        chances: the probability of each rating, 0..5.
        source: where these come from: "distribution", "graders" or "items", see `chances`.
        runs: how many runs have the passage's text among their first ranks.
    """

    query_id: str
    doc_id: str
    item: int | None
    now: int
    expected_swaps: float
    expected_change: float
    p_change: float
    chances: tuple[float, ...]
    source: str
    runs: int


def suggestions(
    q: QueryRatings, possible: PossibleJudgments, board: Board, scoring: Scoring, depth: int
) -> Iterator[Suggestion]:
    """Every judgment on a query that could change the difference of two runs.

    Args:
        possible, board, scoring: as in `what_if.expected_effects`.
        depth: of the pool.

    Raises:
        ValueError: as `expected_effects`.
    """
    effects = expected_effects(q, possible, board, scoring)
    text_of = dict(zip(q.doc_ids, possible.alike.tolist(), strict=True))
    runs = Counter(
        text
        for ranking in board.rankings[q.query_id]
        for text in {text_of[doc_id] for doc_id in ranking[:depth] if doc_id in text_of}
    )
    for index in map(tuple, np.argwhere(np.round(effects.change, TIE_DECIMALS) > 0).tolist()):
        doc_id = q.doc_ids[index[0]]
        yield Suggestion(
            q.query_id,
            doc_id,
            index[1] if len(index) > 1 else None,
            int(effects.now[index]),
            float(effects.swaps[index]),
            float(effects.change[index]),
            float(effects.p_change[index]),
            tuple(possible.chances.values[index].tolist()),
            str(possible.chances.source[index]),
            runs[text_of[doc_id]],
        )


def ranked(unordered: Iterable[Suggestion], by: By = "change") -> list[Suggestion]:
    """The suggestions in the order of `by`.

    Args:
        by: "change": by expected_change, then by expected_swaps; "swaps": the other way round. What is equal
            in both (to 12 decimals) is by query, passage and item.
    """

    def key(suggestion: Suggestion) -> tuple[float, float, str, str, int]:
        swaps = -round(suggestion.expected_swaps, TIE_DECIMALS)
        change = -round(suggestion.expected_change, TIE_DECIMALS)
        first, second = (change, swaps) if by == "change" else (swaps, change)
        item = -1 if suggestion.item is None else suggestion.item
        return first, second, suggestion.query_id, suggestion.doc_id, item

    return sorted(unordered, key=key)
