"""Gold outputs as banks: both forms, errors in lines, and round trips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import converters
from converters import Item
from converters.bank import read_bank, read_bank_queries

KILT: dict[str, Any] = {
    "id": "5a8b",
    "input": "who wrote it?",
    "output": [
        {"answer": "Ann", "provenance": [{"wikipedia_id": "1"}]},
        {"provenance": [{"wikipedia_id": "2"}]},
        {"answer": "Ann", "meta": {}},
        {"answer": "Ann B."},
    ],
    "meta": {},
}
text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_both_forms_give_one_item_per_query_with_all_outputs(tmp_path: Path) -> None:
    path = write(
        tmp_path / "g.jsonl", {"query_id": 7, "outputs": ["x", "y", " ", "x"], "query_text": "?"}, KILT
    )
    assert converters.sniff(path) == "bank"
    assert list(converters.read(path)) == [
        Item("7", "7/gold", "x", "gold", ("x", "y")),
        Item("5a8b", "5a8b/gold", "Ann", "gold", ("Ann", "Ann B.")),
    ]
    assert [tuple(query) for query in read_bank_queries(path)] == [("7", "?"), ("5a8b", "who wrote it?")]


BAD = [
    ({"query_id": "q2", "outputs": []}, "query 'q2' has no gold outputs"),
    ({"query_id": "q2", "outputs": None}, "query 'q2' has no gold outputs"),
    ({"query_id": "q2"}, "query 'q2' has no gold outputs"),
    ({"query_id": "q2", "outputs": ["", "  "]}, "query 'q2' has only empty gold outputs"),
    ({"query_id": "q2", "outputs": "Paris"}, "the gold outputs of query 'q2' are not a list"),
    ({"query_id": "q2", "outputs": [1999]}, "a gold output of query 'q2' is not text: 1999"),
    ({"query_id": "q1", "outputs": ["again"]}, "query 'q1' occurs twice (first on line 2)"),
    ({"id": "q2", "input": "?", "output": []}, "query 'q2' has no gold outputs"),
    ({"id": "q2", "input": "?", "output": ["x"]}, "an output of query 'q2' is not a JSON object"),
    ({"outputs": ["x"]}, 'no "query_id" in it'),
    ("{broken", "not valid JSON"),
    ("[1]", "not a JSON object"),
]


@pytest.mark.parametrize(
    ("line", "reason", "first"),
    # A duplicate cannot be the first line.
    [(*bad, first) for bad in BAD for first in (False, True) if not (first and "twice" in bad[1])],
)
def test_a_bad_line_is_reported_and_the_others_are_read(
    tmp_path: Path, line: object, reason: str, first: bool
) -> None:
    rows = [{"query_id": "q0", "outputs": ["a"]}, {"query_id": "q1", "outputs": ["b"]}]
    rows = [line, *rows] if first else [*rows, line]  # type: ignore[list-item]
    path = write(tmp_path / "g.jsonl", *rows, {"query_id": "q3", "outputs": ["c"]})
    errors: list[Any] = []
    assert [item.query_id for item in read_bank(path, errors.append)] == ["q0", "q1", "q3"]
    assert [error.line for error in errors] == [1 if first else 3]
    assert reason in errors[0].reason
    assert {query.query_id for query in read_bank_queries(path)} <= {"q2"}


def test_a_bad_line_of_a_question_bank_is_still_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "b.jsonl", {"query_id": "q0", "question": "who?"}, "{broken")
    with pytest.raises(converters.ConversionError, match="not valid JSON"):
        list(read_bank(path))
    path = write(path, {"query_id": "q0", "outputs": ["a"]}, {"query_id": "q1", "questions": []})
    with pytest.raises(converters.ConversionError, match="has no questions or items"):
        list(read_bank(path))


@given(
    st.dictionaries(
        text, st.tuples(st.lists(text, min_size=1, max_size=4, unique=True), st.booleans()), min_size=1
    )
)
def test_written_gold_outputs_are_read_back(tmp_path: Path, golds: dict[str, tuple[list[str], bool]]) -> None:
    items = [
        Item(query_id, f"{query_id}/gold", outputs[0], "gold", tuple(outputs), retired=retired)
        for query_id, (outputs, retired) in golds.items()
    ]
    path = tmp_path / "g.jsonl"
    converters.write(items, path, "bank")
    assert list(converters.read(path, "bank")) == items


def test_questions_and_gold_outputs_of_a_query_are_read_back_together(tmp_path: Path) -> None:
    items = [Item("q1", "q1/1", "who?"), Item("q1", "q1/gold", "Ann", "gold", ("Ann",))]
    converters.write(items, tmp_path / "g.jsonl", "bank")
    assert list(converters.read(tmp_path / "g.jsonl")) == items
