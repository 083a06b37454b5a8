from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from text_files import put_rows

import converters
from converters import ConversionError, Item
from converters.bank import read_bank, read_bank_queries
from converters.rubric_jsonl import numbered_graded_passages


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


def test_blank_questions_are_skipped_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"query_id": "q1", "qid": "same", "question": text} for text in ("x?", "  ", "    ")]
    path = put_rows(tmp_path / "bank.jsonl", *rows)
    errors: list[ConversionError] = []
    assert [item.text for item in read_bank(path, errors.append)] == ["x?"]
    assert [error.line for error in errors] == [2, 3]
    with caplog.at_level(logging.WARNING, "converters"):
        list(read_bank(path))
    assert "bank.jsonl:2: an item of query 'q1' is blank: left out (2 such lines)" in caplog.text


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"retired": "yes"}, "\"retired\" is neither true nor false: 'yes'"),
        ({"origin": "gpt"}, "\"origin\" is not a JSON object: 'gpt'"),
        ({"origin": {"seed": "7"}}, "\"seed\" of the origin is not a whole number: '7'"),
        ({"origin": {"model": 7}}, '"model" of the origin is not text: 7'),
    ],
)
def test_an_invalid_origin_is_reported_with_its_line(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    path = put_rows(tmp_path / "bank.jsonl", {"query_id": "q1", "question": "x?", **fields})
    with pytest.raises(converters.ConversionError, match=re.escape(f":1: {reason}")):
        list(read_bank(path))


def test_the_older_car_bank_is_read_without_its_blank_questions() -> None:
    errors: list[ConversionError] = []
    items = list(read_bank(outside("car-y3/bank.genq.jsonl.gz"), errors.append))
    assert (len(items), len(errors)) == (1984, 16)
    assert errors[0].line == 1570
    assert items[0].facet_id == "T_0016"


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
        ('{"a": 1, "a": 2}', None, "run 'a' occurs twice"),
        ('{"a": "first"}', None, "the rank is not a number"),
        ('{"a": 1,\n oops', 2, "not valid JSON"),
        ("a\t1\nb first\n", 2, "not `run<TAB>rank`"),
        ("a\t1\na\t2\n", 2, "occurs twice"),
        ("a\tnan\n", 1, "not a finite number"),
        ("{}", None, "no runs in it"),
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
        ("[0.5, 0.5]", None),
        ('["1", 0, 0, 0, 0, 0]', None),
        ("[true, 0, 0, 0, 0, 0]", None),
        ("null", None),
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
text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)


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


def test_questions_and_gold_outputs_of_a_query_are_read_back_together(tmp_path: Path) -> None:
    items = [Item("q1", "q1/1", "who?"), Item("q1", "q1/gold", "Ann", "gold", ("Ann",))]
    converters.write(items, tmp_path / "g.jsonl", "bank")
    assert list(converters.read(tmp_path / "g.jsonl")) == items
