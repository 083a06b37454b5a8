"""What the grader said, word by word: read from the store when somebody looks at it, and never kept.

Each reading opens the store for itself, for reading only, and is over in milliseconds: no writer waits, and
a store that was moved away or made anew meanwhile is simply the one that is there now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import StoreError
from trecexam.line.store import GradeStore

if TYPE_CHECKING:
    from pathlib import Path

    from trecexam.extensions.page.view import QueryView, View

#: Seconds to wait for a process that has the store for itself: one that makes or mends it.
PATIENCE = 0.5


class GraderAnswer(NamedTuple):
    """The grader's answer as it came, and the probabilities of the ratings from 0 where it has them."""

    text: str
    probabilities: tuple[float, ...] | None

    @property
    def has_words(self) -> bool:
        """Whether it says more than a rating."""
        return re.search(r"[^\W\d_]{3}", self.text) is not None


@dataclass(frozen=True)
class GraderAnswers:
    """The grader's answers that were asked for.

    Attributes:
        by_id: by item_id (of a passage) or doc_id (of an item); cells without an answer are not there.
        trouble: why they cannot be read now; "" where they can.
    """

    by_id: Mapping[str, GraderAnswer]
    trouble: str = ""


def of_passage(path: Path, view: View, state: QueryView, place: int) -> GraderAnswers:
    """item_id -> what the grader said of this passage.

    Args:
        path: the store.
        place: the passage's row in the state.
    """
    key = state.keys[place]
    if key is None:
        return GraderAnswers({})
    answers = {}
    try:
        with GradeStore(path, write=False, patience=PATIENCE) as store:
            grader = store.grader_id(view.grader_digest)
            (passage,) = store.passage_ids([passage_digest(key)])
            items = [item for _, item in state.asked(place)]
            rows = store.item_ids([asked_digest(item) for item in items])
            for item, row in zip(items, rows, strict=True):
                if grader is None or passage is None or row is None:
                    continue
                grade = store.answer(grader, row, passage)
                if grade is not None:
                    answers[item.item_id] = GraderAnswer(grade.answer, grade.probabilities)
    except StoreError as error:
        return GraderAnswers({}, str(error))
    return GraderAnswers(answers)


def of_item(path: Path, view: View, state: QueryView, column: int, places: list[int]) -> GraderAnswers:
    """doc_id -> what the grader said of these passages on one item.

    Args:
        path: the store.
        column: the item's.
        places: the passages' rows in the state.
    """
    answers = {}
    try:
        with GradeStore(path, write=False, patience=PATIENCE) as store:
            grader = store.grader_id(view.grader_digest)
            (row,) = store.item_ids([asked_digest(state.items[column])])
            keys = {place: key for place in places if (key := state.keys[place]) is not None}
            passages = store.passage_ids([passage_digest(key) for key in keys.values()])
            for place, passage in zip(keys, passages, strict=True):
                if grader is None or row is None or passage is None:
                    continue
                grade = store.answer(grader, row, passage)
                if grade is not None:
                    answers[state.doc_ids[place]] = GraderAnswer(grade.answer, grade.probabilities)
    except StoreError as error:
        return GraderAnswers({}, str(error))
    return GraderAnswers(answers)
