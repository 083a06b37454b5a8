"""Update of the response matrix in a folder with new examinees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.response_matrix import read_components, read_matrix
from trecexam.extensions.exams.scoring import Examinee
from trecexam.files.atomic import replace_together
from trecexam.files.track_lock import exclusive_lock
from trecexam.results.result import Tables
from trecexam.results.table import Table, to_tsv

#: What `add_examinee` writes.
FILES = ("matrix.tsv", "components.tsv")
#: Components of an examinee.
PARTS = ("model", "retriever", "examples")


def add_examinee(examinee: Examinee, questions: Sequence[ExamQuestion], folder: Path) -> Tables:
    """Add an examinee to matrix.tsv and components.tsv; several processes may do so at once.

    Returns:
        `examinees`: all examinees in the folder, with components and accuracy.
    """
    with exclusive_lock(folder / ".lock"):
        return _write(examinee, questions, folder)


def _write(examinee: Examinee, questions: Sequence[ExamQuestion], folder: Path) -> Tables:
    ids = [question.question_id for question in questions]
    rows = _old(folder, ids)
    parts = tuple(examinee.components.values())
    stored, _ = rows.pop(examinee.name, (parts, []))
    if stored != parts:
        raise TrecexamError(
            f"has another examinee called '{examinee.name}': write to another folder with -o", path=folder
        )
    rows[examinee.name] = parts, examinee.responses(questions)
    matrix = Table(("examinee", *ids), tuple((name, *responses) for name, (_, responses) in rows.items()))
    components = Table(("examinee", *PARTS), tuple((name, *parts) for name, (parts, _) in rows.items()))
    replace_together(
        {
            folder / "matrix.tsv": to_tsv(matrix).encode(),
            folder / "components.tsv": to_tsv(components).encode(),
        }
    )
    table = Table(
        ("examinee", *PARTS, "answered", "accuracy"),
        tuple((name, *parts, *_accuracy(responses)) for name, (parts, responses) in rows.items()),
    )
    return Tables({"examinees": table})


def _accuracy(responses: Sequence[int | None]) -> tuple[int, float | None]:
    """Return the number of responses and the share of right ones."""
    answered = [value for value in responses if value is not None]
    return len(answered), sum(answered) / len(answered) if answered else None


def _old(folder: Path, ids: Sequence[str]) -> dict[str, tuple[tuple[str, ...], list[int | None]]]:
    """Return the components and responses of the examinees in a folder."""
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
