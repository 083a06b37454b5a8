from __future__ import annotations

import numpy as np

from trecexam.extensions.campaign.judge_next.arithmetic.chances import Chances
from trecexam.extensions.campaign.judge_next.arithmetic.next_judgments import Suggestion, ranked, suggestions
from trecexam.extensions.campaign.judge_next.arithmetic.what_if import Board, PossibleJudgments, Scoring
from trecexam.scores.evaluate import measure
from trecexam.scores.ratings import QueryRatings


def suggestion(swaps: float, change: float, doc_id: str = "d", item: int | None = None) -> Suggestion:
    return Suggestion("q", doc_id, item, 0, swaps, change, 0.5, (0.5, 0.5, 0, 0, 0, 0), "items", 1)


def test_suggestions_are_ranked_by_change_then_swaps_then_ids() -> None:
    moves = suggestion(1, 0.3, "z")
    swaps = suggestion(2, 0.1, "z")
    first, second = suggestion(1, 0.1, "a"), suggestion(1, 0.1 + 1e-15, "b")
    given = [second, swaps, first, moves]
    assert ranked(given) == [moves, swaps, first, second]
    assert ranked(given, "swaps") == [swaps, moves, first, second]


def test_the_cells_of_a_passage_keep_the_order_of_the_items() -> None:
    cells = [suggestion(1, 0.1, item=item) for item in (10, 2)]
    assert [one.item for one in ranked(cells)] == [2, 10]


def test_only_passages_that_can_change_a_score_are_suggested_with_their_runs() -> None:
    q = QueryRatings("q", ("a", "b", "c", "e"), 2, np.array([[0, 5]] * 3 + [[5, 5]], np.int8))
    rankings = {"q": [["a", "b", "e"], ["a", "e"], ["x", "b", "c"]]}
    half = np.array([0.5, 0, 0, 0, 0, 0.5])
    chances = Chances(np.array([half, half, half, [0, 0, 0, 0, 0, 1]]), np.full(4, "items"))
    board = Board(np.array([1.0, 0.5, 0.5]), rankings, {"q": np.ones(3)})
    asked = PossibleJudgments(chances, np.array([True, False, True, True]), np.array([0, 1, 1, 3]))
    found = list(suggestions(q, asked, board, Scoring(measure("P(rel=4)@2")), 2))
    assert [(one.doc_id, one.now, one.item, one.runs) for one in found] == [
        ("a", 5, None, 2),
        # c has the text of b: judging it changes b, which two runs have among their first two.
        ("c", 5, None, 2),
    ]
    assert found[0].chances == tuple(half.tolist())
    assert found[0].p_change == 0.5
