"""Raw answers of the grader, read from the store on request and not cached.

Each reading opens the store for itself, for reading only, and is over in milliseconds: no writer waits, and
a store that was moved away or made anew meanwhile is simply the one that is there now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from converters.records import Item
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import StoreError
from trecexam.grades.store import GradeStore

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View

#: Seconds to wait for a process that has the store for itself: one that makes or mends it.
PATIENCE = 0.5


class GraderAnswer(NamedTuple):
    """The grader's raw answer, and the probabilities of the ratings from 0, if given."""

    text: str
    probabilities: tuple[float, ...] | None

    @property
    def has_words(self) -> bool:
        """Return whether the answer has more than a rating; templates use it."""
        return re.search(r"[^\W\d_]{3}", self.text) is not None


@dataclass(frozen=True)
class GraderAnswers:
    """Reads the grader's answers.

    Attributes:
        by_id: by item_id (of a passage) or doc_id (of an item); cells without an answer are not there.
        trouble: why they cannot be read now; "" where they can.
    """

    by_id: Mapping[str, GraderAnswer]
    trouble: str = ""


def of_passage(path: Path, view: View, state: QueryView, row_index: int) -> GraderAnswers:
    """item_id -> the grader's answer on this passage.

    Args:
        path: the store.
        row_index: the passage's row in the state.
    """
    return _read(
        path, view, [(item.item_id, item, state.keys[row_index]) for _, item in state.asked(row_index)]
    )


def of_item(path: Path, view: View, state: QueryView, column: int, row_indices: list[int]) -> GraderAnswers:
    """doc_id -> the grader's answer on these passages for one item.

    Args:
        path: the store.
        column: the item's.
        row_indices: the passages' rows in the state.
    """
    item = state.items[column]
    return _read(
        path, view, [(state.doc_ids[row_index], item, state.keys[row_index]) for row_index in row_indices]
    )


def _read(path: Path, view: View, cells: Sequence[tuple[str, Item, str | None]]) -> GraderAnswers:
    """By the first of each cell: its item, and what the store knows its passage by."""
    gradable = [(name, item, key) for name, item, key in cells if key is not None]
    answers = {}
    try:
        with GradeStore(path, write=False, patience=PATIENCE) as store:
            grader = store.grader_id(view.grader_digest)
            items = store.ids("item", [asked_digest(item) for _, item, _ in gradable])
            passages = store.ids("passage", [passage_digest(key) for _, _, key in gradable])
            for (name, _, _), item, passage in zip(gradable, items, passages, strict=True):
                if grader is None or item is None or passage is None:
                    continue
                grade = store.answers(grader, item).get(passage)
                if grade is not None:
                    answers[name] = GraderAnswer(grade.answer, grade.probabilities)
    except StoreError as error:
        return GraderAnswers({}, str(error))
    return GraderAnswers(answers)
