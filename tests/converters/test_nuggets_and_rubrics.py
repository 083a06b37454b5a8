"""Nuggets with importance, their assignments to answers, and rubrics with weights."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_files import put_rows

import converters
from converters import ConversionError, Item, RecordedGrade
from converters.bank import read_bank, read_bank_queries
from trecexam.bank.model import item_digest


def made_id(query_id: str, text: str) -> str:
    return f"{query_id}/{hashlib.md5(text.encode()).hexdigest()}"


def nuggets_of(query_id: str, **importances: str) -> dict[str, Any]:
    nuggets = [{"text": text, "importance": importance} for text, importance in importances.items()]
    return {"query": "what is it", "qid": query_id, "nuggets": nuggets}


def test_nuggets_are_items_with_their_importance(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "file.jsonl",
        nuggets_of("q1", one="vital", two="okay"),
        nuggets_of("q2", one="Vital", three="failed"),
    )
    assert converters.sniff(path) == "bank"
    assert list(converters.read(path)) == [
        Item("q1", made_id("q1", "one"), "one", "nugget", importance="vital"),
        Item("q1", made_id("q1", "two"), "two", "nugget", importance="okay"),
        Item("q2", made_id("q2", "one"), "one", "nugget", importance="vital"),
        Item("q2", made_id("q2", "three"), "three", "nugget"),
    ]
    assert list(read_bank_queries(path)) == [
        converters.Query("q1", "what is it"),
        converters.Query("q2", "what is it"),
    ]


def test_the_query_may_be_an_object_with_another_name_for_its_id(tmp_path: Path) -> None:
    nuggets = [{"text": "one"}]
    rows = (
        {"query": {"qid": "q1", "text": "what"}, "nuggets": nuggets},
        {"topic_id": 2, "nuggets": nuggets},
        {"query_id": "q3", "query_text": "why", "nuggets": [{"nugget_id": "n", "text": "one"}]},
    )
    path = put_rows(tmp_path / "file.jsonl", *rows)
    assert converters.sniff(path) == "bank"
    assert [item.item_id for item in converters.read(path)] == [
        made_id("q1", "one"),
        made_id("2", "one"),
        "n",
    ]
    assert dict(read_bank_queries(path)) == {"q1": "what", "q3": "why"}


def test_two_nuggets_with_the_same_text_are_two_items_in_banks_and_assignments(tmp_path: Path) -> None:
    listed = [{"text": "x", "importance": "vital"}, {"text": "y"}, {"text": "x"}, {"text": "x", "id": "own"}]
    ids = [made_id("q1", "x"), made_id("q1", "y"), f"{made_id('q1', 'x')}-2", "own"]
    path = put_rows(
        tmp_path / "file.jsonl", {"qid": "q1", "nuggets": listed}, {"qid": "q2", "nuggets": [{"text": "x"}]}
    )
    errors: list[ConversionError] = []
    items = list(read_bank(path, errors.append))
    assert not errors
    assert [item.item_id for item in items] == [*ids, made_id("q2", "x")]
    assert [item.importance for item in items] == ["vital", "", "", "", ""]
    # They are sent once: the prompts are the same.
    assert len({item_digest(item) for item in items if item.text == "x"}) == 1
    converters.write(items, tmp_path / "again", "bank")
    assert list(converters.read(tmp_path / "again")) == items
    assigned = [nugget | {"assignment": "support"} for nugget in listed]
    grades = converters.read(put_rows(tmp_path / "file.jsonl", {**PASSAGE, "nuggets": assigned}), "grades")
    assert [grade.item_id for grade in grades] == ids


def test_a_nugget_with_duplicate_id_and_text_is_skipped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = {"qid": "q1", "nuggets": [{"text": "x", "importance": "vital"}, {"text": "x"}, {"text": " "}]}
    path = put_rows(tmp_path / "file.jsonl", first, {"qid": "q2", "nuggets": [{"text": "x"}]}, first)
    errors: list[ConversionError] = []
    items = list(read_bank(path, errors.append))
    assert [(item.query_id, item.importance) for item in items] == [("q1", "vital"), ("q1", ""), ("q2", "")]
    assert [error.line for error in errors] == [1, 3, 3, 3]
    assert "nugget 'x' of query 'q1' occurs twice (first on line 1); the first one counts" in str(errors[-1])
    with caplog.at_level(logging.WARNING, "converters"):
        list(read_bank(path))
    assert "blank: left out (2 such lines)" in caplog.text
    assert "the first one counts (2 such lines)" in caplog.text


def test_a_query_without_nuggets_does_not_stop_the_others(tmp_path: Path) -> None:
    rows = nuggets_of("q1", one="vital"), {"qid": "q", "nuggets": []}, nuggets_of("q2", two="okay")
    path = put_rows(tmp_path / "file.jsonl", *rows)
    left_out: list[ConversionError] = []
    assert [item.query_id for item in read_bank(path, left_out.append)] == ["q1", "q2"]
    assert [(error.line, error.reason) for error in left_out] == [(2, "query 'q' has no nuggets: left out")]
    with pytest.raises(ConversionError, match="no items"):
        list(converters.read(put_rows(tmp_path / "file.jsonl", {"qid": "q", "nuggets": []}), "bank"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"nuggets": [{"text": "x"}]}, 'no "query_id" or "qid" or "topic_id"'),
        ({"qid": "q", "nuggets": ["x"]}, "a nugget of query 'q' is not a JSON object"),
        ({"qid": "q", "nuggets": [{"importance": "vital"}]}, "a nugget of query 'q' has no text"),
        ({"qid": "q", "nuggets": [{"text": "x", "importance": "high"}]}, "neither vital nor okay: 'high'"),
        (
            {"query_id": "q", "items": [{"nugget_text": "x", "importance": "so so"}]},
            "neither vital nor okay: 'so so'",
        ),
        ({"qid": "q", "nuggets": [{"text": "x", "assignment": "support"}]}, "they are grades, not a bank"),
        ({"qid": "q", "rubrics": []}, "query 'q' has no rubrics"),
        ({"rubrics": [{"criterion": "x", "weight": 5}]}, 'no "query_id" or "qid" or "topic_id"'),
    ],
)
def test_a_bad_nugget_is_reported(tmp_path: Path, row: Any, reason: str) -> None:
    path = put_rows(tmp_path / "file.jsonl", nuggets_of("q0", one="vital"), row)
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, "bank"))
    assert caught.value.line == 2
    assert reason in caught.value.reason


ASSIGNED = [
    {"text": "one", "importance": "vital", "assignment": "support"},
    {"text": "two", "importance": "okay", "assignment": "partial_support"},
    {"text": "three", "importance": "okay", "assignment": "not_support"},
    {"text": "four", "importance": "okay", "assignment": "failed"},
]
ANSWER = {"query": "what", "qid": "q1", "answer_text": "it is", "response_length": 2, "run_id": "r"}
PASSAGE = {"text": "what", "qid": "q1", "candidate_text": "it is", "docid": "d1"}


@pytest.mark.parametrize(("row", "doc_id"), [(ANSWER, "r/q1"), (PASSAGE, "d1")])
def test_assignments_are_grades(tmp_path: Path, row: dict[str, Any], doc_id: str) -> None:
    path = put_rows(tmp_path / "file.jsonl", {**row, "nuggets": ASSIGNED})
    assert converters.sniff(path) == "grades"
    ratings = ((5, "one", "support"), (3, "two", "partial_support"), (0, "three", "not_support"))
    assert list(converters.read(path)) == [
        *(RecordedGrade("q1", doc_id, made_id("q1", t), r, a, "", "", "it is") for r, t, a in ratings),
        RecordedGrade("q1", doc_id, made_id("q1", "four"), None, "failed", "", "", "it is"),
    ]


def test_assignments_may_have_other_names(tmp_path: Path) -> None:
    row = {"query": {"qid": "q1"}, "segment_id": "s", "run_id": "r", "model": "m", "segment": "it"}
    path = put_rows(
        tmp_path / "file.jsonl", {**row, "nuggets": [{"text": "x", "label": "Support"}, {"text": " "}]}
    )
    assert converters.sniff(path) == "grades"
    grade = RecordedGrade("q1", "s", made_id("q1", "x"), 5, "Support", "m", "", "it")
    assert list(converters.read(path)) == [grade]


def test_answer_ids_are_unique_and_have_no_white_space(tmp_path: Path) -> None:
    assigned = [{"text": "x", "assignment": "support"}]
    pairs = (("my run", "q1"), ("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"))
    rows = [{"run_id": run, "qid": query_id, "nuggets": assigned} for run, query_id in pairs]
    doc_ids = [grade.doc_id for grade in converters.read(put_rows(tmp_path / "file.jsonl", *rows))]
    assert doc_ids == ["my%20run/q1", "a%2Fb/c", "a/b%2Fc", "a%252Fb/c"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {**ANSWER, "nuggets": [{"text": "x", "assignment": "yes"}]},
            "has the assignment 'yes'; assignments are",
        ),
        ({**ANSWER, "nuggets": [{"text": "x", "assignment": 1}]}, "has the assignment '1'"),
        (
            {**ANSWER, "nuggets": [{"text": "x"}]},
            "a nugget of query 'q1' has no assignment; assignments are support",
        ),
        ({"qid": "q1", "nuggets": ASSIGNED}, 'no "docid" or "segment_id", and no "run_id"'),
        ({"run_id": "r", "nuggets": ASSIGNED}, 'no "query_id" or "qid"'),
        ({**PASSAGE, "docid": 1.5, "nuggets": ASSIGNED}, '"docid" is not an id'),
    ],
)
def test_a_bad_assignment_is_reported(tmp_path: Path, row: Any, reason: str) -> None:
    path = put_rows(tmp_path / "file.jsonl", {**ANSWER, "nuggets": ASSIGNED}, row)
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, "grades"))
    assert caught.value.line == 2
    assert reason in caught.value.reason


def test_the_recorded_grader_reads_recorded_assignments(tmp_path: Path) -> None:
    from trecexam.graders import Cell
    from trecexam.graders.recorded import RecordedGrader

    path = put_rows(tmp_path / "file.jsonl", {**PASSAGE, "nuggets": ASSIGNED})
    (item, *_) = converters.read(put_rows(tmp_path / "file.jsonl", nuggets_of("q1", one="vital")), "bank")
    path = put_rows(tmp_path / "file.jsonl", {**PASSAGE, "nuggets": ASSIGNED})
    cells = [Cell("q1", "", "d1", "other words", item), Cell("q1", "", "d9", "it is", item)]
    (answers,) = RecordedGrader(path).grade(cells)
    assert [answer.rating for _, answer in answers] == [5, 5]


text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)
# Research rubrics: criteria with weights, some of them negative.


RUBRICS = [{"criterion": "Names it.", "weight": 5}, {"criterion": "Gets it wrong.", "weight": -2.5}]
LINE = {"qid": "q1", "query": "what is it", "rubrics": RUBRICS}


def test_criteria_are_items_with_their_weights(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "file.jsonl", LINE, {"qid": 2, "rubrics": [{"id": "r", "criterion": "x", "weight": 1}]}
    )
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


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            '{"criterion": "x"}',
            "a rubric of query 'q' has no weight: write \"weight\": a number that is not 0",
        ),
        ('{"criterion": "x", "weight": 0}', "the weight of a rubric of query 'q' is 0: take it out"),
        ('{"criterion": "x", "weight": "5"}', "the weight of a rubric of query 'q' is not a number: '5'"),
        ('{"criterion": "x", "weight": true}', "is not a number: True"),
        ('{"criterion": "x", "weight": NaN}', "not valid JSON"),
        ('{"criterion": "x", "weight": 1e999}', ""),
        ('{"criterion": "x", "weight": 1e10}', "is 10000000000.0: at most 1,000,000,000"),
        ('{"weight": 1}', "a rubric of query 'q' has no text"),
        ('"x"', "a rubric of query 'q' is not a JSON object"),
    ],
)
def test_an_invalid_weight_is_a_one_line_error_with_its_position(
    tmp_path: Path, entry: str, reason: str
) -> None:
    path = put_rows(tmp_path / "file.jsonl", LINE, f'{{"qid": "q", "rubrics": [{entry}]}}')
    with pytest.raises(ConversionError) as raised:
        list(converters.read(path, "bank"))
    assert str(raised.value).startswith(f"{path}:2: ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


weights = st.floats(-1e9, 1e9).filter(bool) | st.integers(-10, 10).filter(bool)


@given(st.lists(st.tuples(st.text(min_size=1).filter(str.strip), weights), min_size=1, max_size=8))
def test_all_criteria_are_read_back_including_two_with_the_same_text(
    tmp_path: Path, drawn: list[tuple[str, float]]
) -> None:
    listed = [{"criterion": text, "weight": weight} for text, weight in drawn]
    items = list(converters.read(put_rows(tmp_path / "file.jsonl", {"qid": "q", "rubrics": listed}), "bank"))
    assert [(item.text, item.weight) for item in items] == drawn
    assert len({item.item_id for item in items}) == len(items)
    converters.write(items, tmp_path / "bank", "bank")
    assert list(converters.read(tmp_path / "bank", "bank")) == items
