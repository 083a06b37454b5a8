"""Research rubrics: criteria with weights, some of them negative."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import converters
from converters import ConversionError, Item
from converters.bank import read_bank_queries
from converters.fields import made_id
from trecexam.bank.model import item_digest
from trecexam.cli.main import run

RUBRICS = [{"criterion": "Names it.", "weight": 5}, {"criterion": "Gets it wrong.", "weight": -2.5}]
LINE = {"qid": "q1", "query": "what is it", "rubrics": RUBRICS}


def put(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "file.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_criteria_are_items_with_their_weights(tmp_path: Path) -> None:
    path = put(tmp_path, LINE, {"qid": 2, "rubrics": [{"id": "r", "criterion": "x", "weight": 1}]})
    assert converters.sniff(path) == "bank"
    items = list(converters.read(path))
    assert items == [
        Item("q1", made_id("q1", "Names it."), "Names it.", "nugget", weight=5.0),
        Item("q1", made_id("q1", "Gets it wrong."), "Gets it wrong.", "nugget", weight=-2.5),
        Item("2", "r", "x", "nugget", weight=1.0),
    ]
    assert list(read_bank_queries(path)) == [converters.Query("q1", "what is it")]
    # The prompt has no weight: it stays the same when the weight changes.
    assert item_digest(items[0]) == item_digest(items[0]._replace(weight=None))


def test_the_command_converts_them_to_a_bank_with_weights(tmp_path: Path) -> None:
    path, bank = put(tmp_path, LINE), tmp_path / "bank.jsonl"
    assert run(["convert", str(path), str(bank), "--to", "bank"]) == 0
    row = json.loads(bank.read_text())
    assert [(item["nugget_text"], item["weight"]) for item in row["items"]] == [
        ("Names it.", 5.0),
        ("Gets it wrong.", -2.5),
    ]
    assert list(converters.read(bank)) == list(converters.read(path))


def test_a_bank_without_weights_is_written_without_a_weight_column(tmp_path: Path) -> None:
    converters.write([Item("q", "i", "x")], tmp_path / "bank", "bank")
    assert b"weight" not in (tmp_path / "bank").read_bytes()


@pytest.mark.parametrize(
    "row",
    [
        {"query_id": "q", "items": [{"nugget_text": "x", "weight": -2}]},
        {"query_id": "q", "nugget": "x", "weight": -2},
        {"qid": "q", "nuggets": [{"text": "x", "weight": -2}]},
        {"qid": "q", "rubrics": [{"criterion": "x", "weight": -2}]},
    ],
    ids=["list", "line", "nuggets", "rubrics"],
)
def test_every_form_of_bank_may_have_weights(tmp_path: Path, row: dict[str, Any]) -> None:
    (item,) = converters.read(put(tmp_path, row))
    assert item.weight == -2.0


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            '{"criterion": "x"}',
            "a rubric of query 'q' has no weight: write \"weight\": a number that is not 0",
        ),
        ('{"criterion": "x", "weight": null}', "has no weight"),
        ('{"criterion": "x", "weight": 0}', "the weight of a rubric of query 'q' is 0: take it out"),
        ('{"criterion": "x", "weight": -0.0}', "is 0: take it out"),
        ('{"criterion": "x", "weight": "5"}', "the weight of a rubric of query 'q' is not a number: '5'"),
        ('{"criterion": "x", "weight": true}', "is not a number: True"),
        ('{"criterion": "x", "weight": [1]}', "is not a number: [1]"),
        ('{"criterion": "x", "weight": NaN}', "not valid JSON"),
        ('{"criterion": "x", "weight": Infinity}', "not valid JSON"),
        ('{"criterion": "x", "weight": 1e999}', ""),
        ('{"criterion": "x", "weight": 1e10}', "is 10000000000.0: at most 1,000,000,000"),
        ('{"weight": 1}', "a rubric of query 'q' has no text"),
        ('"x"', "a rubric of query 'q' is not a JSON object"),
    ],
)
def test_an_invalid_weight_is_a_one_line_error_with_its_position(
    tmp_path: Path, entry: str, reason: str
) -> None:
    path = put(tmp_path, LINE, f'{{"qid": "q", "rubrics": [{entry}]}}')
    with pytest.raises(ConversionError) as raised:
        list(converters.read(path, "bank"))
    assert str(raised.value).startswith(f"{path}:2: ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_lines_without_rubrics_are_reported(tmp_path: Path) -> None:
    for row, reason in (
        ({"qid": "q", "rubrics": []}, "query 'q' has no rubrics"),
        ({"rubrics": RUBRICS}, 'no "query_id" or "qid" or "topic_id"'),
    ):
        with pytest.raises(ConversionError, match=reason):
            list(converters.read(put(tmp_path, row), "bank"))


weights = st.floats(-1e9, 1e9).filter(bool) | st.integers(-10, 10).filter(bool)


@given(st.lists(st.tuples(st.text(min_size=1).filter(str.strip), weights), min_size=1, max_size=8))
def test_all_criteria_are_read_back_including_two_with_the_same_text(
    tmp_path: Path, drawn: list[tuple[str, float]]
) -> None:
    listed = [{"criterion": text, "weight": weight} for text, weight in drawn]
    items = list(converters.read(put(tmp_path, {"qid": "q", "rubrics": listed}), "bank"))
    assert [(item.text, item.weight) for item in items] == drawn
    assert len({item.item_id for item in items}) == len(items)
    converters.write(items, tmp_path / "bank", "bank")
    assert list(converters.read(tmp_path / "bank", "bank")) == items
