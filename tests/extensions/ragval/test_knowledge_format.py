from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from outside import outside
from text_files import put_rows

import converters
from converters.bank import read_bank, read_bank_queries
from converters.errors import ConversionError
from converters.records import Item, Origin
from trecexam.extensions.ragval.formats.knowledge import read_blocks

ORIGIN = {"prompt": "p", "model": "m", "seed": 3, "time": "t", "text": "Why?"}


def test_a_block_needs_only_its_content(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "blocks.jsonl",
        {"title": "T", "content": "Heat rises.", "url": "u", "date": 2023, "lang": ["en"]},
        {"id": 7, "content": "Cold sinks."},
        {"doc_id": "a b", "content": "Air moves."},
        {"content": "Heat rises."},
    )
    assert converters.sniff(path) == "knowledge"
    blocks = list(converters.read(path))
    assert [block.block_id for block in blocks] == [
        f"block/{hashlib.md5(b'Heat rises.').hexdigest()}",
        "7",
        "a%20b",
        blocks[0].block_id,
    ]
    assert [block.number for block in blocks] == [1, 2, 3, 4]
    assert blocks[0].row["lang"] == ["en"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"title": "T"}], r":1: the block has no text"),
        ([{"content": "  "}], r":1: the block has no text"),
        ([{"content": 3}], r':1: "content" of the block is not text'),
        ([{"content": "a", "id": ""}], r':1: "id" is not an id'),
        (
            [{"content": "a", "id": 1}, {"content": "b", "id": 1}],
            r":2: block '1' is on line 1 with other",
        ),
        (["{"], r":1: not valid JSON"),
        ([], "empty"),
    ],
)
def test_a_line_that_is_not_a_block_is_reported_with_its_number(
    tmp_path: Path, rows: list[Any], reason: str
) -> None:
    with pytest.raises(ConversionError, match=reason):
        list(read_blocks(put_rows(tmp_path / "b.jsonl", *rows)))


def test_a_question_is_a_query_with_two_items_that_are_not_written_as_another_form(tmp_path: Path) -> None:
    row = {"question_id": "k1/1", "question": "Why?", "content": "Heat.", "title": "T", "origin": ORIGIN}
    path = put_rows(tmp_path / "bank.questions.jsonl", row, {**row, "question_id": "k2/1", "retired": True})
    assert converters.sniff(path) == "bank"
    items = list(converters.read(path))
    origin = Origin(**ORIGIN)
    assert items[:2] == [
        Item("k1/1", f"k1/1/{kind}", "Why?", kind, ("Heat.",), origin=origin)
        for kind in ("truthfulness", "relevance")
    ]
    assert [item.retired for item in items] == [False, False, True, True]
    assert dict(read_bank_queries(path)) == {"k1/1": "Why?", "k2/1": "Why?"}
    with pytest.raises(ValueError, match="of the kind truthfulness is not written: copy the file"):
        converters.write(items, tmp_path / "again.jsonl", "bank")


def test_questions_can_be_in_a_bank_with_other_items(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "bank.jsonl",
        {"question_id": "q1", "question": "Why?", "content": "Heat."},
        {"query_id": "q1", "questions": [{"question_id": "q1/1", "question_text": "And how?"}]},
    )
    items = list(read_bank(path))
    assert [item.kind for item in items] == ["truthfulness", "relevance", "question"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question_id": "a b", "question": "Why?", "content": "Heat."}, "white space"),
        ({"question": 3, "content": "Heat."}, "not text"),
        ({"question": "Why?", "content": ""}, "no text"),
        ({"question": "Why?", "content": "Heat.", "retired": "yes"}, "neither true nor false"),
        ({"question": "Why?", "content": "Heat.", "origin": {"seed": "x"}}, "not a whole number"),
    ],
)
def test_a_line_that_is_not_a_question_is_reported_with_its_number(
    tmp_path: Path, row: Any, reason: str
) -> None:
    with pytest.raises(ConversionError, match=rf":1: .*{reason}"):
        list(read_bank(put_rows(tmp_path / "b.jsonl", row)))


def test_a_duplicate_question_counts_once_and_an_id_belongs_to_one_question(tmp_path: Path) -> None:
    row = {"question": "Why?", "content": "Heat."}
    said: list[ConversionError] = []
    items = list(read_bank(put_rows(tmp_path / "b.jsonl", row, {**row, "answer": "Because."}), said.append))
    assert len(items) == 2
    assert [(error.line, "occurs twice" in error.reason) for error in said] == [(2, True)]
    ids = [{**row, "question_id": "q"}, {**row, "question_id": "q", "content": "Cold."}]
    with pytest.raises(ConversionError, match="ids must differ"):
        list(read_bank(put_rows(tmp_path / "c.jsonl", *ids)))


def test_published_answers_can_be_read_as_blocks_and_as_questions() -> None:
    path = outside("ragval/K_f.baseline.jsonl.gz")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [block.content for block in read_blocks(path)] == [row["content"] for row in rows]
    left_out: list[ConversionError] = []
    items = list(read_bank(path, left_out.append))
    # Six of the 256 blocks are duplicates, with their questions.
    assert (len(items), len(left_out)) == (500, 6)
    assert {item.text for item in items} == {row["question"] for row in rows}
