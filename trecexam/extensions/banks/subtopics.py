"""Sub-topics of queries (TREC CAR: section headings): TSV `query_id<TAB>subtopic`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from converters.errors import ConversionError
from converters.lines import decode, iter_filled

_HEADERS = (("query_id", "subtopic"), ("query_id", "facet_id", "subtopic"))


class Subtopic(NamedTuple):
    """A sub-topic of a query. `facet_id` is its text where the file gives it no id."""

    query_id: str
    facet_id: str
    text: str


def read_subtopics(path: str | os.PathLike[str]) -> Iterator[Subtopic]:
    """The sub-topics in a file's order; lines may have an id, `query_id<TAB>facet_id<TAB>subtopic`.

    A header line with these names is skipped.

    Raises:
        ConversionError: with the line: another number of columns, an empty one, the same id twice, or an
            empty file.
    """
    seen: dict[tuple[str, str], int] = {}
    for number, line in iter_filled(path):
        columns = tuple(part.strip() for part in decode(path, number, line).split("\t"))
        if number == 1 and tuple(column.lower() for column in columns) in _HEADERS:
            continue
        if len(columns) not in (2, 3) or not all(columns):
            raise ConversionError(
                path, number, "a line is `query_id<TAB>subtopic`, or `query_id<TAB>facet_id<TAB>subtopic`"
            )
        subtopic = Subtopic(columns[0], columns[1], columns[-1])
        first = seen.setdefault(subtopic[:2], number)
        if first != number:
            raise ConversionError(
                path,
                number,
                f"sub-topic '{subtopic.facet_id}' of query '{subtopic.query_id}' occurs twice (first on line "
                f"{first})",
            )
        yield subtopic
    if not seen:
        raise ConversionError(path, None, "the file has no sub-topics")
