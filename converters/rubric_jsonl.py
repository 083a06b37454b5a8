"""The Rubric workbench's graded pool: `[query_id, [paragraph, ...]]` a line, usually gzipped.

Each paragraph has parallel lists of ratings, answers and gradings, with several gradings (by model and
prompt) in one paragraph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from converters.errors import ConversionError
from converters.fields import an_id
from converters.lines import Head, iter_filled, parse_json
from converters.records import Passage, RecordedGrade
from converters.registry import Format

EXAMPLE = '["q1", [{"paragraph_id": "doc42", "text": "...", "exam_grades": [...]}]]'
Path = str | os.PathLike[str]


def read_graded_pool(path: Path) -> Iterator[RecordedGrade]:
    """Yields all recorded grades.

    Raises:
        ConversionError: with the line: not a graded pool, a rating that is not 0..5, a damaged file.
    """
    for number, query_id, paragraph in _paragraphs(path):
        doc_id = an_id(path, number, paragraph, ("paragraph_id",))
        text = paragraph.get("text")
        for grading in objects(path, number, paragraph.get("exam_grades"), "exam_grades"):
            yield from _grades(path, number, query_id, doc_id, text if isinstance(text, str) else "", grading)


def numbered_graded_passages(path: Path) -> Iterator[tuple[int, Passage]]:
    """Yields the passages with a text and their lines, including duplicates.

    Raises:
        ConversionError: as `read_graded_pool`.
    """
    for number, _, paragraph in _paragraphs(path):
        doc_id = an_id(path, number, paragraph, ("paragraph_id",))
        text = paragraph.get("text")
        if isinstance(text, str) and text.strip():
            yield number, Passage(doc_id, text)


def query_lines(path: Path) -> Iterator[tuple[int, str, list[dict[str, Any]]]]:
    """Yields (line, query id, paragraphs) of a pool.

    Raises:
        ConversionError: a line is not one of a pool.
    """
    for number, line in iter_filled(path):
        row = parse_json(path, number, line)
        if not (
            isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], list)
        ):
            raise ConversionError(path, number, "not `[query_id, [paragraph, ...]]`, as graded pools have it")
        yield number, row[0], objects(path, number, row[1], "the list of paragraphs")


def objects(path: Path, number: int, value: Any, what: str) -> list[dict[str, Any]]:
    """The value as a list of JSON objects; null is empty.

    Raises:
        ConversionError: it is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ConversionError(path, number, f"{what} is not a list of JSON objects")
    return value


def a_rating(path: Path, number: int, value: Any, what: str) -> int | None:
    """The value as a rating 0..5; None for null.

    Raises:
        ConversionError: it is neither; `what` names the cell.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 5):
        raise ConversionError(path, number, f"{what}: the rating is not 0..5: {value!r}"[:300])
    return value


def _paragraphs(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for number, query_id, paragraphs in query_lines(path):
        for paragraph in paragraphs:
            yield number, query_id, paragraph


def _grades(
    path: Path, number: int, query_id: str, doc_id: str, text: str, grading: Mapping[str, Any]
) -> Iterator[RecordedGrade]:
    model = grading.get("llm")
    info = grading.get("prompt_info")
    prompt = info.get("prompt_class") if isinstance(info, dict) else None
    answers: dict[str, str] = {}
    for pair in grading.get("answers") or []:
        if isinstance(pair, list) and len(pair) == 2:
            answers.setdefault(str(pair[0]), str(pair[1]))
    ratings: dict[str, int | None] = dict.fromkeys(answers)
    for entry in objects(path, number, grading.get("self_ratings"), "self_ratings"):
        item_id = an_id(path, number, entry, ("question_id", "nugget_id"))
        what = f"passage '{doc_id}', item '{item_id}'"
        ratings[item_id] = a_rating(path, number, entry.get("self_rating"), what)
    for item_id, value in ratings.items():
        yield RecordedGrade(
            query_id,
            doc_id,
            item_id,
            value,
            answers.get(item_id, ""),
            str(model or ""),
            str(prompt or ""),
            text,
        )


def _sniff(start: Head) -> bool:
    return start.lines[0].lstrip()[:2] == b'["'


FORMAT = Format(
    "rubric",
    (".jsonl", ".jsonl.gz"),
    "Rubric workbench graded pool: its grades",
    EXAMPLE,
    _sniff,
    read_graded_pool,
    None,
    told_by="a JSON list that begins with a query id",
)
