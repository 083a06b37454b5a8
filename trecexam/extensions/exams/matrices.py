"""The response matrix in a folder: read, joined with new examinees, and written again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.scoring import Examinee
from trecexam.files.atomic import replace_together
from trecexam.files.track_lock import exclusive_lock
from trecexam.tables.result import Result
from trecexam.tables.table import Table, to_tsv


@dataclass(frozen=True)
class Examinees(Result):
    """Each examinee in the folder, new or old: its components and its accuracy.

    Attributes:
        notes: which of them were there and had answered a question otherwise.
    """

    examinees: Table
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """A row an examinee."""
        return {"examinees": self.examinees}


def write_examinees(
    examinees: Sequence[Examinee], questions: Sequence[ExamQuestion], folder: Path
) -> Examinees:
    """Writes matrix.tsv, responses.jsonl, components.tsv and answers.jsonl, beside those that are there.

    Several processes may do so at once.

    Raises:
        TrecexamError: the folder has responses to another exam, or by examinees of other components, or the
            files cannot be read or written.
    """
    with exclusive_lock(folder / ".lock"):
        return _write(examinees, questions, folder)


def _write(examinees: Sequence[Examinee], questions: Sequence[ExamQuestion], folder: Path) -> Examinees:
    new = {examinee.name: examinee for examinee in examinees}
    ids = [question.question_id for question in questions]
    old = _old(folder, ids)
    changed = []
    for row in old:
        examinee = new.get(row["examinee"])
        if examinee is None:
            continue
        if row["components"] != examinee.components:
            raise TrecexamError(
                f"has another examinee called '{examinee.name}': write to another folder with -o",
                path=folder,
            )
        before, now = row["responses"], examinee.responses(questions)
        if any(before[name] != now[name] and None not in (before[name], now[name]) for name in ids):
            changed.append(examinee.name)
    rows = [row for row in old if row["examinee"] not in new]
    rows += [
        {"examinee": each.name, "components": each.components, "responses": each.responses(questions)}
        for each in examinees
    ]
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
    matrix = Table(
        ("examinee", *ids),
        tuple((row["examinee"], *(row["responses"][name] for name in ids)) for row in rows),
    )
    header = tuple(rows[0]["components"])
    components = Table(
        ("examinee", *header), tuple((row["examinee"], *row["components"].values()) for row in rows)
    )
    replace_together(
        {
            folder / "matrix.tsv": to_tsv(matrix).encode(),
            folder / "components.tsv": to_tsv(components).encode(),
            folder / "answers.jsonl": _lines(details),
            folder / "responses.jsonl": _lines(rows),
        }
    )
    table = Table(("examinee", *header, "answered", "accuracy"), tuple(map(_line, rows)))
    notes = (f"{name}: answers otherwise than before, and takes that one's place" for name in changed)
    return Examinees(table, tuple(notes))


def _line(row: Mapping[str, Any]) -> tuple[str | int | float | None, ...]:
    given = [value for value in row["responses"].values() if value is not None]
    accuracy = sum(given) / len(given) if given else None
    return row["examinee"], *row["components"].values(), len(given), accuracy


def _old(folder: Path, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The examinees that are in a folder."""
    path = folder / "responses.jsonl"
    rows = _rows(path)
    for number, row in enumerate(rows, 1):
        components, responses = row.get("components"), row.get("responses")
        if (
            not isinstance(row.get("examinee"), str)
            or not isinstance(components, dict)
            or list(components) != ["model", "retriever", "examples"]
            or not isinstance(responses, dict)
            or not all(value in (0, 1, None) for value in responses.values())
        ):
            raise TrecexamError("not written by `exam score`; give -o another folder", path=path, line=number)
        if set(responses) != set(ids):
            raise TrecexamError("holds responses to another exam: give -o another folder", path=folder)
    return rows


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows = [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    except (OSError, ValueError) as error:
        raise TrecexamError(f"cannot be read: {error}; give -o another folder", path=path) from None
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TrecexamError("no JSON object; give -o another folder", path=path, line=number)
    return rows


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
