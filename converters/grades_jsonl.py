"""Grades as JSON Lines, from `trecexam export grades` and nuggetizer (see `converters.nuggets`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.fields import an_id
from converters.lines import Head, first_object, iter_objects
from converters.nuggets import QUERY_KEYS, assigned_grades, has_nuggets, is_assigned
from converters.records import RecordedGrade
from converters.registry import Format

EXAMPLE = '{"query_id": "q1", "doc_id": "doc42", "item_id": "q1/1", "rating": 4, "answer": "4"}'


def read_grades(path: str | os.PathLike[str]) -> Iterator[RecordedGrade]:
    """Reads grades in file order; ignores unknown fields.

    Raises:
        ConversionError: with the line: bad JSON, an id missing, a rating that is neither 0..5 nor null.
    """
    for number, row in iter_objects(path):
        if has_nuggets(row):
            yield from assigned_grades(path, number, row)
            continue
        rating = row.get("rating")
        if rating is not None and (
            isinstance(rating, bool) or not isinstance(rating, int) or not 0 <= rating <= 5
        ):
            raise ConversionError(path, number, f"the rating is neither 0..5 nor null: {rating!r}"[:200])
        answer, model, prompt, text = (
            _text(path, number, row, key) for key in ("answer", "model", "prompt", "text")
        )
        yield RecordedGrade(
            an_id(path, number, row, ("query_id",)),
            an_id(path, number, row, ("doc_id",)),
            an_id(path, number, row, ("item_id",)),
            rating,
            answer,
            model,
            prompt,
            text,
            _six_numbers(row.get("probabilities")),
        )


def write_grades(grades: Iterable[RecordedGrade], file: BinaryIO) -> None:
    """Writes a line a grade."""
    import orjson

    for grade in grades:
        row = grade._asdict()
        if grade.probabilities is None:
            del row["probabilities"]
        file.write(orjson.dumps(row) + b"\n")


def _six_numbers(value: object) -> tuple[float, ...] | None:
    """The value as probabilities of the ratings 0..5; None for anything else."""
    numbers = value if isinstance(value, list) and len(value) == 6 else [None]
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
        return None
    return tuple(map(float, numbers))


def _text(path: str | os.PathLike[str], number: int, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConversionError(path, number, f'"{key}" is not text')
    return value


def _sniff(start: Head) -> bool:
    row = first_object(start)
    if row is not None and has_nuggets(row):
        return any(key in row for key in (*QUERY_KEYS, "query")) and is_assigned(row)
    return row is not None and {"query_id", "doc_id", "item_id", "rating"} <= row.keys()


FORMAT = Format(
    "grades",
    (".jsonl",),
    "grades, JSONL: what `trecexam export grades` writes; nuggetizer's (support 5, partial 3, not 0)",
    EXAMPLE,
    _sniff,
    read_grades,
    write_grades,
    told_by='"item_id" and "rating"; nuggets with an "assignment"',
    written_as="grades",
)
