"""Reading of answers from the drop folder; each answer is judged as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.segment import response_id
from trecexam.bank import Bank
from trecexam.extensions.ragval.formats.answers import AnswerRow, read_answers
from trecexam.extensions.ragval.formats.knowledge import KINDS
from trecexam.files.stamps import Rejected
from trecexam.inputs.dropped_files import Dropped, one_run, run_of


class _Answers:
    """Implements `trecexam.inputs.dropped_files.AnswersReader`."""

    kinds = frozenset(KINDS)

    def claims(self, row: Mapping[str, Any]) -> bool:
        return "question_id" in row and "answer" in row

    def read(self, path: Path, query_texts: Mapping[str, str]) -> Dropped:
        refused: list[ConversionError] = []
        by_text: dict[str, list[str]] = {}
        for query_id, text in query_texts.items():
            by_text.setdefault(text.strip(), []).append(query_id)
        first_answers: dict[str, AnswerRow] = {}
        rows = list(read_answers(path, refused.append))
        if not rows:
            raise refused[0] if refused else ConversionError(path, None, "the file has no answers")
        name = one_run(path, list(dict.fromkeys(row.run_id for row in rows)))
        for row in rows:
            # Without an id, the n-th answer to a text goes to the n-th question with this text.
            if row.by_text:
                ids = by_text.get(row.question.strip(), [])
                if not ids:
                    often = " that often" if row.question_id != row.question else ""
                    reason = f"no question of this track has the text '{row.question[:60]}'{often}: left out"
                    refused.append(ConversionError(path, row.line, reason, "response"))
                    continue
                row = replace(row, question_id=ids.pop(0))
            first = first_answers.setdefault(row.question_id, row)
            if first is not row:
                question = f"question '{row.question_id[:80]}'"
                reason = f"{question} was answered twice; the first answer, on line {first.line}, counts"
                refused.append(ConversionError(path, row.line, reason, "response"))
        if not first_answers:
            raise refused[0]
        answered = [row for row in first_answers.values() if row.answer.strip()]
        run = run_of(path, name, [(row.question_id, _answer_id(row), 1.0) for row in answered])
        texts = {_answer_id(row): row.answer for row in answered}
        by_prompt = any(row.by_text for row in rows)
        return Dropped(run, texts, by_prompt, tuple(first_answers.values()), tuple(refused))

    def not_judged(self, file: str, answers: Sequence[Any], bank: Bank) -> Iterator[Rejected]:
        """Yield answers to questions outside of the bank, and empty answers."""
        for row in answers:
            if row.question_id in bank.items:
                if not row.answer.strip():
                    reason = "is empty: it is not judged and counts as unparsed"
                    reason = f"the answer to question '{row.question_id[:80]}' {reason}"
                    yield Rejected(file, row.line, reason, "response")
            elif row.question_id not in bank.retired:
                reason = f"no question '{row.question_id[:80]}' in the bank: the answer is left out"
                yield Rejected(file, row.line, reason, "response")


def _answer_id(row: AnswerRow) -> str:
    """Return the document id of a whole answer."""
    return response_id(row.run_id, row.question_id)


ANSWERS = _Answers()
