"""Answers to questions that are dropped, and judged as a whole: which of them are not, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from converters.knowledge import KINDS
from converters.ragval import AnswerRow
from trecexam.bank import Bank
from trecexam.files.stamps import Rejected

#: The kinds of items that a grader asks about which judges whole answers.
JUDGED = frozenset(KINDS)


def not_judged(file: str, answers: Sequence[AnswerRow], bank: Bank) -> Iterator[Rejected]:
    """The answers to questions that the bank does not have, and the empty ones."""
    for row in answers:
        if row.question_id in bank.items:
            if not row.answer.strip():
                yield Rejected(
                    file,
                    row.line,
                    f"the answer to question '{row.question_id[:80]}' is empty: it is not judged, and counts "
                    "as unparsed",
                    "response",
                )
        elif row.question_id not in bank.retired:
            yield Rejected(
                file,
                row.line,
                f"no question '{row.question_id[:80]}' in the bank: the answer is left out",
                "response",
            )
