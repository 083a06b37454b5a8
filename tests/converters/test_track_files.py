"""What TREC's generation tracks and AutoJudge hand out: topics, reports, nugget banks, leaderboards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from outside import outside

import converters
from converters import Query
from converters.measure_values import FORMS, read_values, write_values
from converters.records import MeasureValue


def put(path: Path, *rows: Any) -> Path:
    """A JSONL file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("key", ["request_id", "topic_id", "narrative_id", "query_id"])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"title": "leaves", "problem_statement": "Why red?", "background": "A child"}, "leaves. Why red?"),
        ({"title": "Why red?", "problem_statement": "A tree."}, "Why red? A tree."),
        ({"title": "leaves"}, "leaves"),
        ({"problem_statement": "Why red?", "background": "A child"}, "Why red?"),
        ({"narrative": "How do leaves fall?"}, "How do leaves fall?"),
        ({"text": "leaves", "problem_statement": "Why red?"}, "leaves"),
    ],
)
def test_topics_of_every_track_are_queries(
    tmp_path: Path, key: str, fields: dict[str, str], text: str
) -> None:
    path = put(tmp_path / "t.jsonl", {key: "7", **fields})
    assert converters.sniff(path) == "queries"
    assert list(converters.read(path)) == [Query("7", text)]


def test_topics_under_one_key_are_a_list(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": [{"id": "116", "topic": "x", "question": "Is it?"}]}, indent=1))
    assert converters.sniff(path) == "queries"
    assert list(converters.read(path)) == [Query("116", "Is it?")]


def test_the_topics_of_autojudge_are_read() -> None:
    queries = list(converters.read(outside("autojudge/kiddie/topics/kiddie-topics.jsonl")))
    assert [query.query_id for query in queries] == ["leaf", "cloud", "bee", "earthworms", "hibernation"]
    assert queries[0].text.startswith("fall leaf color change chlorophyll. My 5-year-old keeps")


DOCUMENTS = {"d1": {"id": "d1", "text": "One.", "title": "T"}, "d2": "Two.", "d3": {"text": " "}}
REPORT = {
    "metadata": {"team_id": "t", "run_id": "sys", "type": "automatic", "collection_ids": ["c"]},
    "responses": [
        {"text": "A.", "citations": {"d1": 0.25, "d2": 0.75}},
        {"text": "B.", "citations": ["d2"]},
        {"text": "C."},
    ],
    "documents": DOCUMENTS,
}


@pytest.mark.parametrize("key", ["topic_id", "narrative_id", "request_id", "query_id"])
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("listed", ["responses", "answer"])
def test_reports_of_every_track_are_responses(tmp_path: Path, key: str, inside: bool, listed: str) -> None:
    row: dict[str, Any] = {k: v for k, v in REPORT.items() if k != "responses"} | {
        listed: REPORT["responses"]
    }
    row = row | ({"metadata": {**row["metadata"], key: 7}} if inside else {key: 7})
    path = put(tmp_path / "run.jsonl", row)
    assert converters.sniff(path) == "responses"
    (found,) = converters.read(path)
    assert (found.query_id, found.run) == ("7", "sys")
    assert [s.citations for s in found.sentences] == [(("d2", 0.75), ("d1", 0.25)), (("d2", None),), ()]
    assert found.documents == (("d1", "One."), ("d2", "Two."))
    assert dict(found.metadata)["team_id"] == "t"


def test_biogens_document_is_responses_of_one_run(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    answers = [
        {"topic_id": str(n), "answer": [{"text": "A.", "citations": [123, 5]}], "documents": {"123": "D."}}
        for n in (1, 2)
    ]
    path.write_text(json.dumps({"team_id": "t", "run_name": "sys", "results": answers}, indent=1))
    assert converters.sniff(path) == "responses"
    found = list(converters.read(path))
    assert [(each.run, each.query_id) for each in found] == [("sys", "1"), ("sys", "2")]
    assert found[0].sentences[0].citations == (("123", None),)
    assert found[0].sentences[0].out_of_range == 1


def test_places_past_the_references_are_no_document(tmp_path: Path) -> None:
    row = {
        **REPORT,
        "topic_id": "7",
        "references": ["d2"],
        "responses": [{"text": "A.", "citations": [0, 1]}],
    }
    (found,) = converters.read(put(tmp_path / "run.jsonl", row))
    assert found.sentences[0].citations == (("d2", None),)
    assert found.sentences[0].out_of_range == 1


def test_ragtimes_form_keeps_confidences_documents_and_metadata(tmp_path: Path) -> None:
    report = {**REPORT, "metadata": {**REPORT["metadata"], "topic_id": "7"}}
    found = list(converters.read(put(tmp_path / "run.jsonl", report)))
    converters.write(found, tmp_path / "again.jsonl", "ragtime")
    assert list(converters.read(tmp_path / "again.jsonl")) == found
    (row,) = map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())
    assert [each.get("citations") for each in row["responses"]] == [{"d2": 0.75, "d1": 0.25}, ["d2"], []]


@pytest.mark.parametrize("form", ["rag24", "rag25"])
def test_trec_rags_forms_cite_by_place_the_surest_first(tmp_path: Path, form: str) -> None:
    report = {**REPORT, "topic_id": "7", "references": ["d1"]}
    found = list(converters.read(put(tmp_path / "run.jsonl", report)))
    converters.write(found, tmp_path / "again.jsonl", form)
    (row,) = map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())
    assert row["references"] == ["d1", "d2"]
    assert [each["citations"] for each in row["answer"]] == [[1, 0], [1], []]
    where = row["metadata"] if form == "rag25" else row
    assert where["narrative_id" if form == "rag25" else "topic_id"] == "7"
    (again,) = converters.read(tmp_path / "again.jsonl")
    assert [[c.doc_id for c in s.citations] for s in again.sentences] == [
        [c.doc_id for c in s.citations] for s in found[0].sentences
    ]
    assert (again.documents, again.run, again.query_id) == (found[0].documents, "sys", "7")


ROWS = [
    MeasureValue(run, query, measure, value)
    for run, values in (("b", (0.1, 0.35)), ("a", (1 / 3, 0.7)))
    for measure in ("F1", "nDCG@10")
    for query, value in zip(("1", "2", "all"), (*values, sum(values) / 2), strict=True)
]


def laid_out(path: Path, form: str, rows: list[MeasureValue] = ROWS) -> Path:
    with path.open("wb") as file:
        write_values(rows, file, form)
    return path


@pytest.mark.parametrize("form", [form for form in FORMS if form != "trec_eval"])
@pytest.mark.parametrize("told", [True, False])
def test_leaderboards_come_back_in_every_form(tmp_path: Path, form: str, told: bool) -> None:
    path = laid_out(tmp_path / "x.eval.txt", form)
    assert list(read_values(path, form if told else None)) == ROWS
    assert list(converters.read(path, "leaderboard")) == [("b", 2), ("a", 1)]
    if form != "ranking":
        assert converters.sniff(path) == "leaderboard"


def test_a_run_of_trec_eval_is_named_by_its_line_or_its_file(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row.run == "a"]
    path = laid_out(tmp_path / "a.eval.txt", "trec_eval", rows)
    assert list(read_values(path)) == rows
    path.write_text("runid \tall\tother\n" + path.read_text())
    assert list(read_values(path)) == [row._replace(run="other") for row in rows]
    assert converters.sniff(path) == "leaderboard"
    with pytest.raises(ValueError, match="write a file for each"):
        laid_out(path, "trec_eval")


def test_without_means_the_first_measure_is_averaged_over_all_queries(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("run topic metric score\na 1 M 0.9\nb 1 M 0.5\nb 2 M 0.6\na 1 N 0.1\n")
    assert converters.sniff(path) == "leaderboard"
    assert list(converters.read(path)) == [("a", 2), ("b", 1)]


def test_columns_that_cannot_be_told_are_named_by_a_first_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("a t1 M 0.9\n")
    with pytest.raises(converters.ConversionError, match="run query measure value"):
        list(converters.read(path, "leaderboard"))
    path.write_text("run measure query value\na t1 M 0.9\n")
    assert list(read_values(path)) == [MeasureValue("a", "M", "t1", 0.9)]


@pytest.mark.parametrize("lines", ["q1 0 d1 1\nq1 0 d2 0\n", "q1 0 d1 1.5\n"])
def test_qrels_are_no_leaderboard(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text(lines)
    assert converters.sniff(path) == "qrels"


def test_the_truth_of_autojudge_is_a_leaderboard() -> None:
    path = outside("autojudge/kiddie/eval/kiddie_fake.eval.ir_measures.txt")
    assert converters.sniff(path) == "leaderboard"
    assert list(converters.read(path)) == [("run1", 1), ("run2", 2), ("run3", 3), ("run4", 4)]
