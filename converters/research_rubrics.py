"""Research rubrics, a line a query: criteria of good answers with weights, negative where they count against.

`{"qid", "rubrics": [{"criterion", "weight"}]}`, with `query` or without. A criterion is a nugget with a
weight.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from converters.errors import ConversionError
from converters.fields import a_flag, a_weight
from converters.nuggets import listed_items, query_of
from converters.records import Item

TEXT_KEYS = ("criterion", "text")
Path = str | os.PathLike[str]


def has_rubrics(row: Mapping[str, Any]) -> bool:
    """Whether a line is one of these."""
    return "rubrics" in row and not any(key in row for key in ("questions", "items", "nuggets"))


def rubric_items(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The criteria of a line, each with its weight.

    Raises:
        ConversionError: no query, no criteria, one without a text, or one whose weight is missing, no number
            or 0.
    """
    query_id, _ = query_of(path, number, row)
    for entry, item_id, text in listed_items(path, number, row, query_id, "rubric", TEXT_KEYS):
        what = f"a rubric of query '{query_id}'"
        weight = a_weight(path, number, entry, what)
        if weight is None:
            raise ConversionError(
                path, number, f'{what} has no weight: write "weight": a number that is not 0'
            )
        retired = a_flag(path, number, entry, "retired")
        yield Item(query_id, item_id, text, "nugget", retired=retired, weight=weight)
