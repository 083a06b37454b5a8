"""Raw answers of the grader, read from the store on request and not cached.

Each request opens the store read-only for milliseconds: no writer waits, and a replaced store is found at
once.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import StoreError
from trecexam.grades.store import GradeStore

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View

#: Seconds to wait for a process that creates or repairs the store.
PATIENCE = 0.5


class GraderAnswer(NamedTuple):
    """The grader's raw answer, and the probabilities of the ratings from 0, if given."""

    text: str
    probabilities: tuple[float, ...] | None

    @property
    def has_words(self) -> bool:
        """Return whether the answer has more than a rating; templates use it."""
        return re.search(r"[^\W\d_]{3}", self.text) is not None


def answers_on(view: View, state: QueryView, row_index: int) -> tuple[dict[str, GraderAnswer], str]:
    """Return item_id -> the grader's answer on a passage, and the reason for unreadable answers or ""."""
    key, answers = state.keys[row_index], {}
    if key is None:
        return {}, ""
    cells = [item for _, item in state.items_of(row_index)]
    try:
        with GradeStore(Path(view.store), write=False, patience=PATIENCE) as store:
            grader, (passage,) = (
                store.grader_id(view.grader_digest),
                store.ids("passage", [passage_digest(key)]),
            )
            items = store.ids("item", [asked_digest(item) for item in cells])
            for cell, item in zip(cells, items, strict=True):
                if grader is None or item is None or passage is None:
                    continue
                grade = store.answers(grader, item).get(passage)
                if grade is not None:
                    answers[cell.item_id] = GraderAnswer(grade.answer, grade.probabilities)
    except StoreError as error:
        return {}, str(error)
    return answers, ""
