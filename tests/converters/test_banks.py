"""Banks in every form, official leaderboards, and recordings: nuggets, rubrics, gold outputs, assignments."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from text_files import put_rows

import converters
from converters import ConversionError, Item, RecordedGrade
from converters.bank import read_bank, read_bank_queries
from converters.rubric_jsonl import numbered_graded_passages
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


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_one_line_per_query_holds_questions_and_nuggets(tmp_path: Path) -> None:
    path = put_rows(tmp_path / "bank.jsonl",
        {"query_id": "q1", "query_text": "a query", "facet_id": "f",
         "questions": [{"question_id": "a", "question_text": "x?", "gold_answers": ["y", "z"]},
                       {"question_text": "no id?", "facet_id": "g"}]},
        {"query_id": "q2", "items": [{"nugget_id": "n", "nugget_text": "a fact"}]},
    )  # fmt: skip
    assert list(converters.read(path)) == [
        Item("q1", "a", "x?", "question", ("y", "z"), "f"),
        Item("q1", f"q1/{md5('no id?')}", "no id?", "question", (), "g"),
        Item("q2", "n", "a fact", "nugget"),
    ]
    assert list(read_bank_queries(path)) == [converters.Query("q1", "a query")]


def test_one_line_per_question_holds_choices_and_key(tmp_path: Path) -> None:
    path = put_rows(tmp_path / "bank.jsonl",
        {"query_id": "q1", "qid": "a", "question": "x?", "facet_id": "f", "choices": {"A": "yes", "B": "no"},
         "correct": "yes", "correctKey": "A"},
        {"query_id": "q1", "question": "y?", "choices": ["one", "two"], "correct": None, "facet_id": 7},
    )  # fmt: skip
    assert list(converters.read(path)) == [
        Item("q1", "a", "x?", "question", ("yes",), "f", (("A", "yes"), ("B", "no"))),
        Item("q1", f"q1/{md5('y?')}", "y?", "question", (), "7", (("A", "one"), ("B", "two"))),
    ]


def test_the_real_graded_pool_gives_every_grade() -> None:
    path = outside("dl19/graded.flan-t5-large.jsonl.gz")
    assert converters.sniff(path) == "rubric"
    grades = list(converters.read(path))
    assert len(grades) == 43_390
    assert {(g.model, g.prompt) for g in grades} == {
        ("google/flan-t5-large", "QuestionSelfRatedUnanswerablePromptWithChoices")
    }
    assert all(g.rating is not None and g.answer and g.text for g in grades)
    texts = {p.doc_id: p.text for p in converters.read(outside("dl19/passages.jsonl.gz"))}
    assert {p.doc_id: p.text for _, p in numbered_graded_passages(path)} == texts


def test_a_paragraph_without_text_or_grades_is_not_an_error(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "bank.jsonl",
        ["q1", [{"paragraph_id": "d", "text": None}, {"paragraph_id": "e", "exam_grades": None}]],
    )
    assert list(converters.read(path)) == []
    assert list(numbered_graded_passages(path)) == []


@pytest.mark.parametrize(
    ("name", "kind", "records"),
    [
        ("dl19/queries.tsv", "queries", 21),
        ("dl19/passages.jsonl.gz", "passages", 4335),
        ("dl19/qrels.txt", "qrels", 4339),
        ("dl19/runs/UNH_bm25.run", "run", 371),
        ("rag24/bm25.raggy-dev.run.gz", "run", 12_000),
        ("rag25/topics.tsv", "queries", 22),
        ("rag25/umbrela.qwen3.5-9b.qrels.gz", "qrels", 26_341),
        ("dl19/bank.questions.jsonl.gz", "bank", 210),
        ("rag25/nuggets.jsonl.gz", "bank", 1255),
        ("rag24/responses.gpt-4o.jsonl.gz", "responses", 301),
        ("rag24/queries.json", "queries", 301),
        ("autojudge/kiddie/topics/kiddie-topics.jsonl", "queries", 5),
    ],
)
def test_real_files_are_recognised_and_read(name: str, kind: str, records: int) -> None:
    path = outside(name)
    assert converters.sniff(path) == kind
    assert len(list(converters.read(path))) == records


def test_queries_keep_leading_zeros_accept_numbers_and_skip_a_header(tmp_path: Path) -> None:
    path = tmp_path / "queries"
    path.write_text("query_id\ttext\n007\tx\ty\n\n7\tz\n")
    assert list(converters.read(path)) == [converters.Query("007", "x\ty"), converters.Query("7", "z")]
    path.write_text('{"qid": 7, "query": "x"}\n{"id": "007", "title": "y"}\n')
    assert list(converters.read(path)) == [converters.Query("7", "x"), converters.Query("007", "y")]


def test_format_examples_are_recognised_as_their_format(tmp_path: Path) -> None:
    for known in converters.formats():
        path = tmp_path / known.name
        path.write_text(known.example.replace("<TAB>", "\t") + "\n")
        if "..." not in known.example:
            assert converters.sniff(path) == known.name
            assert list(converters.read(path))


@pytest.mark.parametrize(
    "content",
    ['{\n "b": 2,\n "a": 1.5\n}\n', "b\t2\na\t1.5\n", "run\trank\n\nb\t2\na\t1.5", '{"b": 2, "a": 1.5}'],
)
def test_official_leaderboards_are_json_or_tsv(tmp_path: Path, content: str) -> None:
    path = tmp_path / "official"
    path.write_text(content)
    ranks = [converters.RunRank("b", 2.0), converters.RunRank("a", 1.5)]
    assert list(converters.read(path, "leaderboard")) == ranks


def test_a_leaderboard_of_trecexam_ranks_runs_by_its_first_measure(tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.tsv"
    header = "run\tP@5\tP@5.stderr\tAP\tAP.stderr\n"
    path.write_text(f"{header}a\t0.5\t0.1\t0.9\t0\nb\t0.25\t0\t1\t0\nc\t0.5\t0\t0\t0\nd\t0.1\t\t\t\n")
    assert list(converters.read(path, "leaderboard")) == [("a", 1), ("b", 3), ("c", 1), ("d", 4)]
    path.write_text(f"{header}a\t0.5\t0\t0\t0\nb\tnan\t\t\t\n")
    with pytest.raises(
        ConversionError, match=r"leaderboard\.tsv:3: run 'b' has no number as its first value"
    ):
        list(converters.read(path, "leaderboard"))


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ('{"a": "first"}', None, "the rank is not a number"),
        ('{"a": 1,\n oops', 2, "not valid JSON"),
        ("a\t1\nb first\n", 2, "not `run<TAB>rank`"),
        ("a\t1\na\t2\n", 2, "occurs twice"),
        ("a\tnan\n", 1, "not a finite number"),
    ],
)
def test_a_bad_official_leaderboard_is_reported(
    tmp_path: Path, content: str, line: int | None, reason: str
) -> None:
    path = tmp_path / "official"
    path.write_text(content)
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, "leaderboard"))
    assert caught.value.line == line
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("[0, 0.5, 0, 0, 0.5, 0]", (0.0, 0.5, 0.0, 0.0, 0.5, 0.0)),
        ('["1", 0, 0, 0, 0, 0]', None),
        ("[true, 0, 0, 0, 0, 0]", None),
    ],
)
def test_six_numbers_are_the_probabilities_of_a_recorded_grade(
    tmp_path: Path, value: str, numbers: tuple[float, ...] | None
) -> None:
    path = tmp_path / "grades.jsonl"
    path.write_text(
        f'{{"query_id": "q", "doc_id": "d", "item_id": "i", "rating": 4, "probabilities": {value}}}\n'
    )
    (grade,) = converters.read(path, "grades")
    assert grade.probabilities == numbers


# Gold outputs as banks: both forms, errors in lines, and round trips.


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


def test_both_forms_give_one_item_per_query_with_all_outputs(tmp_path: Path) -> None:
    path = put_rows(
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
    ({"query_id": "q2", "outputs": ["", "  "]}, "query 'q2' has only empty gold outputs"),
    ({"query_id": "q2", "outputs": "Paris"}, "the gold outputs of query 'q2' are not a list"),
    ({"query_id": "q2", "outputs": [1999]}, "a gold output of query 'q2' is not text: 1999"),
    ({"query_id": "q1", "outputs": ["again"]}, "query 'q1' occurs twice (first on line 2)"),
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
    path = put_rows(tmp_path / "g.jsonl", *rows, {"query_id": "q3", "outputs": ["c"]})
    errors: list[Any] = []
    assert [item.query_id for item in read_bank(path, errors.append)] == ["q0", "q1", "q3"]
    assert [error.line for error in errors] == [1 if first else 3]
    assert reason in errors[0].reason
    assert {query.query_id for query in read_bank_queries(path)} <= {"q2"}


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


def rubric(entry: str) -> str:
    return f'{{"qid": "q", "rubrics": [{entry}]}}'


def item_with(**fields: Any) -> dict[str, Any]:
    return {"query_id": "q9", "question": "x?", **fields}


@pytest.mark.parametrize(
    ("kind", "row", "reason"),
    [
        ("bank", {"nuggets": [{"text": "x"}]}, 'no "query_id" or "qid" or "topic_id"'),
        ("bank", {"qid": "q", "nuggets": [{"importance": "vital"}]}, "a nugget of query 'q' has no text"),
        (
            "bank",
            {"qid": "q", "nuggets": [{"text": "x", "importance": "high"}]},
            "neither vital nor okay: 'high'",
        ),
        (
            "bank",
            {"query_id": "q", "items": [{"nugget_text": "x", "importance": "so so"}]},
            "neither vital nor okay: 'so so'",
        ),
        (
            "bank",
            {"qid": "q", "nuggets": [{"text": "x", "assignment": "support"}]},
            "they are grades, not a bank",
        ),
        ("bank", {"qid": "q", "rubrics": []}, "query 'q' has no rubrics"),
        (
            "grades",
            {**ANSWER, "nuggets": [{"text": "x", "assignment": "yes"}]},
            "has the assignment 'yes'; assignments are",
        ),
        (
            "grades",
            {**ANSWER, "nuggets": [{"text": "x"}]},
            "a nugget of query 'q1' has no assignment; assignments are support",
        ),
        ("grades", {"qid": "q1", "nuggets": ASSIGNED}, 'no "docid" or "segment_id", and no "run_id"'),
        ("grades", {"run_id": "r", "nuggets": ASSIGNED}, 'no "query_id" or "qid"'),
        (
            "bank",
            rubric('{"criterion": "x"}'),
            "a rubric of query 'q' has no weight: write \"weight\": a number that is not 0",
        ),
        (
            "bank",
            rubric('{"criterion": "x", "weight": 0}'),
            "the weight of a rubric of query 'q' is 0: take it out",
        ),
        (
            "bank",
            rubric('{"criterion": "x", "weight": "5"}'),
            "the weight of a rubric of query 'q' is not a number: '5'",
        ),
        ("bank", rubric('{"criterion": "x", "weight": NaN}'), "not valid JSON"),
        ("bank", rubric('{"criterion": "x", "weight": 1e10}'), "is 10000000000.0: at most 1,000,000,000"),
        ("bank", item_with(retired="yes"), "\"retired\" is neither true nor false: 'yes'"),
        ("bank", item_with(origin="gpt"), "\"origin\" is not a JSON object: 'gpt'"),
        ("bank", item_with(origin={"seed": "7"}), "\"seed\" of the origin is not a whole number: '7'"),
        ("bank", item_with(origin={"model": 7}), '"model" of the origin is not text: 7'),
    ],
)
def test_a_bad_entry_is_reported_with_its_line(tmp_path: Path, kind: str, row: Any, reason: str) -> None:
    good = nuggets_of("q0", one="vital") if kind == "bank" else {**ANSWER, "nuggets": ASSIGNED}
    path = put_rows(tmp_path / "file.jsonl", good, row)
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, kind))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert "\n" not in str(caught.value)
    assert reason in caught.value.reason
