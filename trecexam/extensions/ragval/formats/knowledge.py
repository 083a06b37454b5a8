"""RAGVAL's knowledge: blocks of text, and questions with their source blocks; JSON Lines.

A block is `{"block_id", "title", "content", "url", "date", ...}`; only the content is needed. A question is
`{"question_id", "question", "content", "block_id"?, "title"?, "url"?, "date"?, "retired"?, "origin"?, ...}`:
other fields of a line are ignored. As a bank, a question is a query with two items of
the kinds `truthfulness` and `relevance`, whose answer key is the content of the block.

A block without an id is `block/md5(content)`; a question without one is `block id/md5(question)`, or, where
its block has none either, `question/md5(question, line feed, content)`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from converters.errors import ConversionError
from converters.fields import a_flag, a_text, an_id, an_origin, made_id
from converters.lines import Head, first_object, iter_filled, parse_object
from converters.records import Item
from converters.registry import Format, LineForm

EXAMPLE = '{"block_id": "b1", "title": "Heat pumps", "content": "Heat pumps move ...", "date": "2023-11-19"}'
#: Kinds of a question's two items, in order.
TRUTHFULNESS, RELEVANCE = "truthfulness", "relevance"
KINDS = (TRUTHFULNESS, RELEVANCE)
ID_KEYS = ("block_id", "id", "doc_id")
CONTENT_KEYS = ("content", "text")
#: Keys of other bank lines and other formats.
_OTHERS = ("query_id", "qid", "topic_id", "questions", "items", "nuggets", "nugget", "rubrics", "choices")
_SPACE = re.compile(r"\s")
Path = str | os.PathLike[str]


class Block(NamedTuple):
    """A block of knowledge. `row` is the whole line, `number` the line number."""

    block_id: str
    content: str
    row: Mapping[str, Any]
    number: int


def read_blocks(path: Path, on_error: Callable[[ConversionError], None] | None = None) -> Iterator[Block]:
    """Read the blocks of a file, in order, including duplicates.

    Args:
        on_error: receives the error of a rejected line; None raises it.
    """
    first: dict[str, Block] = {}
    for number, line in iter_filled(path):
        try:
            block = _block(path, number, parse_object(path, number, line))
            before = first.setdefault(block.block_id, block)
            if before.content != block.content:
                raise ConversionError(
                    path,
                    number,
                    f"block '{block.block_id}' is on line {before.number} with other content; ids must "
                    f"differ",
                )
        except ConversionError as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        yield block


def _block(path: Path, number: int, row: Mapping[str, Any]) -> Block:
    content = a_text(path, number, row, CONTENT_KEYS, "the block")
    return Block(block_id_of(path, number, row), content, row, number)


def line_of(row: Mapping[str, Any]) -> bytes:
    """Return a line of a file of blocks or questions."""
    return json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"


def has_question(row: Mapping[str, Any]) -> bool:
    """Return True if a line is a question with its block."""
    return "question" in row and "content" in row and not any(key in row for key in _OTHERS)


def question_of(path: Path, number: int, row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the id of a question, and its text."""
    text = a_text(path, number, row, ("question",), "the question", blank=True)
    content = a_text(path, number, row, ("content",), "the block of the question")
    if row.get("question_id") is None:
        if all(row.get(key) is None for key in ID_KEYS):
            return made_id("question", f"{text}\n{content}"), text
        return made_id(block_id_of(path, number, row), text), text
    question_id = an_id(path, number, row, ("question_id",))
    if _SPACE.search(question_id):
        raise ConversionError(path, number, f"question id {question_id!r} has white space in it")
    return question_id, text


def question_items(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the two items of a question."""
    question_id, text = question_of(path, number, row)
    for kind in KINDS:
        yield Item(
            question_id,
            f"{question_id}/{kind}",
            text,
            kind,
            (row["content"],),
            retired=a_flag(path, number, row, "retired"),
            origin=an_origin(path, number, row),
        )


def block_id_of(path: Path, number: int, row: Mapping[str, Any]) -> str:
    """Return the id of the block on a line, its white space percent-encoded, or one made of its content."""
    if all(row.get(key) is None for key in ID_KEYS):
        return made_id("block", a_text(path, number, row, CONTENT_KEYS, "the block"))
    return _SPACE.sub(_escaped, an_id(path, number, row, ID_KEYS))


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _sniff(start: Head) -> bool:
    row = first_object(start)
    return row is not None and "content" in row and "question" not in row and "answer" not in row


FORMAT = Format(
    "knowledge",
    (".jsonl",),
    "knowledge blocks, JSONL",
    EXAMPLE,
    _sniff,
    read_blocks,
    None,
    told_by='"content", without "question" and "answer"',
    bank_lines=LineForm(
        has_question,
        question_of,
        question_items,
        noun="question",
        whole=True,
        kinds=KINDS,
    ),
)
