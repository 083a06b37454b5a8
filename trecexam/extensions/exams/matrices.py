"""Reads the response matrix in a folder, adds examinees, and writes it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.lines import iter_objects
from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.response_matrix import read_components, read_matrix
from trecexam.extensions.exams.scoring import Examinee
from trecexam.files.atomic import replace_together
from trecexam.files.track_lock import exclusive_lock
from trecexam.results.result import Result
from trecexam.results.table import Table, to_tsv

#: What `write_examinees` writes.
FILES = ("matrix.tsv", "components.tsv", "answers.jsonl")
#: What an examinee is made of.
PARTS = ("model", "retriever", "examples")


@dataclass(frozen=True)
class Examinees(Result):
    """All examinees in the folder, with components and accuracy."""

    examinees: Table
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """A row an examinee."""
        return {"examinees": self.examinees}


def write_examinees(
    examinees: Sequence[Examinee], questions: Sequence[ExamQuestion], folder: Path
) -> Examinees:
    """Adds examinees to matrix.tsv, components.tsv and answers.jsonl.

    Several processes may do so at once.
    """
    with exclusive_lock(folder / ".lock"):
        return _write(examinees, questions, folder)


def _write(examinees: Sequence[Examinee], questions: Sequence[ExamQuestion], folder: Path) -> Examinees:
    new = {examinee.name: examinee for examinee in examinees}
    ids = [question.question_id for question in questions]
    rows = _old(folder, ids)
    for each in examinees:
        made_of, now = tuple(each.components.values()), list(each.responses(questions).values())
        was, _ = rows.pop(each.name, (made_of, now))
        if was != made_of:
            raise TrecexamError(
                f"has another examinee called '{each.name}': write to another folder with -o", path=folder
            )
        rows[each.name] = made_of, now
    details = [row for row in _rows(folder / "answers.jsonl") if row.get("examinee") not in new]
    correct = {question.question_id: question.correct for question in questions}
    details += [
        {
            "examinee": each.name,
            "question_id": question_id,
            "chosen": answer.chosen,
            "correct": correct[question_id],
            **answer.detail,
        }
        for each in examinees
        for question_id, answer in each.answers.items()
    ]
    matrix = Table(("examinee", *ids), tuple((name, *responses) for name, (_, responses) in rows.items()))
    components = Table(("examinee", *PARTS), tuple((name, *made_of) for name, (made_of, _) in rows.items()))
    replace_together(
        {
            folder / "matrix.tsv": to_tsv(matrix).encode(),
            folder / "components.tsv": to_tsv(components).encode(),
            folder / "answers.jsonl": _lines(details),
        }
    )
    table = Table(
        ("examinee", *PARTS, "answered", "accuracy"),
        tuple((name, *made_of, *_accuracy(responses)) for name, (made_of, responses) in rows.items()),
    )
    return Examinees(table)


def _accuracy(responses: Sequence[int | None]) -> tuple[int, float | None]:
    """The number of responses and the share of right ones."""
    answered = [value for value in responses if value is not None]
    return len(answered), sum(answered) / len(answered) if answered else None


def _old(folder: Path, ids: Sequence[str]) -> dict[str, tuple[tuple[str, ...], list[int | None]]]:
    """The components and responses of the examinees in a folder."""
    path = folder / "matrix.tsv"
    if not path.exists():
        return {}
    try:
        matrix, components = read_matrix(path), read_components(folder / "components.tsv")
    except ConversionError as error:
        raise TrecexamError(f"{error}; give -o another folder") from None
    if components.names != PARTS or components.rows.keys() != {*matrix.examinees}:
        raise TrecexamError("the file was not written by `exam score`; give -o another folder", path=path)
    if {*matrix.items} != {*ids}:
        raise TrecexamError("holds responses to another exam: give -o another folder", path=folder)
    column_indices = [matrix.items.index(name) for name in ids]
    rows = [[row[column_index] for column_index in column_indices] for row in matrix.values.tolist()]
    return {
        name: (components.rows[name], [None if value != value else int(value) for value in row])
        for name, row in zip(matrix.examinees, rows, strict=True)
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        return [row for _, row in iter_objects(path)] if path.exists() and path.stat().st_size else []
    except ConversionError as error:
        raise TrecexamError(f"{error}; give -o another folder") from None


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
