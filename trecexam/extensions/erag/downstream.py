"""Input files of eRAG: outputs by document, and scores of whole answers by query."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from converters.errors import ConversionError
from converters.fields import an_id, counted
from converters.lines import decode, iter_filled, parse_object

Path = str | os.PathLike[str]
Refuse = Callable[[ConversionError], None]
#: Header lines that a table of end-to-end scores may have.
_HEADER = ("run", "query_id")


class DocumentOutput(NamedTuple):
    """A model's output for a query from one document; `line` is its line in the file."""

    line: int
    query_id: str
    doc_id: str
    output: str


class EndToEnd(NamedTuple):
    """The score of a system's answer to a query; `line` is its line in the file."""

    line: int
    run: str
    query_id: str
    score: float


def read_outputs(path: Path, on_error: Refuse) -> Iterator[DocumentOutput]:
    """The outputs of a JSON Lines file, `{"query_id", "doc_id", "output"}` a line; an output may be empty.

    Args:
        on_error: takes what is wrong with a line; the others are read.

    Raises:
        ConversionError: the file cannot be read to its end, or is empty.
    """
    for number, line in iter_filled(path):
        try:
            row = parse_object(path, number, line)
            query_id = an_id(path, number, row, ("query_id",))
            doc_id = an_id(path, number, row, ("doc_id", "docid"))
            output = row.get("output")
            if not isinstance(output, str):
                what = "not text" if "output" in row else "missing"
                raise ConversionError(
                    path, number, f"the output to query '{query_id}' from '{doc_id}' is {what}"
                )
        except ConversionError as error:
            on_error(error)
        else:
            yield DocumentOutput(number, query_id, doc_id, output)


def read_end_to_end(path: Path, on_error: Refuse) -> Iterator[EndToEnd]:
    """The scores of a file of `run<TAB>query_id<TAB>score` lines, with a header or without.

    Args:
        on_error: takes what is wrong with a line; the others are read.

    Raises:
        ConversionError: the file cannot be read to its end, or is empty.
    """
    for row_index, (number, line) in enumerate(iter_filled(path)):
        try:
            text = decode(path, number, line)
            columns = [part.strip() for part in (text.split("\t") if "\t" in text else text.split())]
            if row_index == 0 and tuple(columns[:2]) == _HEADER:
                continue
            if len(columns) != 3 or not all(columns):
                raise ConversionError(path, number, f"{counted(columns)}: a line is `run query_id score`")
            try:
                score = float(columns[2])
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise ConversionError(path, number, f"the score is not a finite number: {columns[2][:40]!r}")
        except ConversionError as error:
            on_error(error)
        else:
            yield EndToEnd(number, columns[0], columns[1], score)
