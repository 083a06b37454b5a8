"""Files as other tools write them are told by their content, and read as what they hold."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_datasets.datasets.beir import BeirTitleDoc
from ir_datasets.datasets.dpr_w100 import DprW100Doc
from ir_datasets.datasets.miracl import MiraclDoc
from ir_datasets.datasets.msmarco_document import MsMarcoDocument
from ir_datasets.datasets.msmarco_document_v2 import MsMarcoV2Document
from nltk_folder import with_nltk_data
from outside import outside
from pyarrow import parquet
from text_files import put, put_rows

import converters
from converters import ConversionError, Passage, Qrel, Query, TextJudgment
from converters.convert import converted
from converters.fields import made_id
from converters.lines import packing
from converters.measure_values import FORMS, read_values, write_values
from converters.passages import numbered_passages, read_passages
from converters.records import Item, MeasureValue, Origin
from converters.trec_run import write_run

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"


def scores(path: Path) -> list[tuple[str, str, float]]:
    assert converters.sniff(path) == "run"
    return [(entry.query_id, entry.doc_id, entry.score) for entry in converters.read(path)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("castorini.jsonl", [("q1", "d1", 9), ("q1", "d2", 8.5), ("q2", "d1", 7), ("q2", "d3", 6)]),
        ("castorini.json", [("q1", "d1", 9), ("q1", "d2", 8.5)]),
        ("tirex-rerank.jsonl", [("q1", "d0", 9), ("q1", "d1", 8), ("q1", "d2", 7)]),
        ("run-dict.json", [("q1", "d1", 1.5), ("q1", "d2", 0.5), ("q2", "d3", 2.5)]),
        ("mteb-predictions.json", [("q1", "d1", 1.5)]),
        ("run-table.csv", [("q1", "d1", 3), ("q1", "d2", 1)]),
        ("car-y3.jsonl", [("tqa2:L_0384", "p1", -1), ("tqa2:L_0384", "p2", -2)]),
        *(
            (f"run.{ending}", [("q1", "d1", 3), ("q1", "d2", 1)])
            for ending in ("txt.bz2", "txt.xz", "txt.zst")
        ),
        ("run.parquet", [("q1", "d1", 3), ("q1", "d2", 1)]),
    ],
)
def test_a_run_of_another_tool_has_its_documents_and_scores(
    name: str, expected: list[tuple[str, str, float]]
) -> None:
    assert scores(CORPUS / name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("beir-qrels-bare.tsv", [Qrel("1", "31715818", 1), Qrel("3", "14717500", 1)]),
        ("mteb-qrels.jsonl", [Qrel("q1", "d0", 0), Qrel("q1", "d1", 1), Qrel("q1", "d2", 2)]),
        ("qrels-dict.json", [Qrel("q1", "d1", 1), Qrel("q1", "d2", 0), Qrel("q2", "d3", 2)]),
        (
            "dpr-w100.tsv",
            [Passage("1", 'Aaron Aaron ( or ; "Ahärôn") is a prophet'), Passage("2", "Aaron text two")],
        ),
        (
            "msmarco-docs.tsv",
            [Passage("D1555982", "The hot glowing body text here"), Passage("D2", "t body")],
        ),
        ("msmarco-v2-documents.jsonl", [Passage("msmarco_doc_00_0", "t h a body of text")]),
        ("msmarco-v2-passages.jsonl", [Passage("msmarco_passage_00_0", "0-60 times")]),
        (
            "msmarco-v2.1-segments.jsonl",
            [Passage("msmarco_v2.1_doc_00_0#0_0", "Heat pumps Heat pumps\n They move heat.")],
        ),
        ("miracl.jsonl", [Passage("0#0", "T text")]),
        ("neuclir.jsonl", [Passage("u0", "T text here")]),
        ("tirex-documents.jsonl", [Passage("d0", "A text of a document")]),
        (
            "ikat-topics.json",
            [Query("1-1_1", "help me with diet"), Query("1-1_2", "can I eat fish on my diet?")],
        ),
        ("latin.xml", [Query("1", "café & cats")]),
    ],
)
def test_judgments_passages_and_queries_of_another_tool_are_read(name: str, expected: list[Any]) -> None:
    assert list(converters.read(CORPUS / name)) == expected


@pytest.mark.parametrize(
    "content",
    [
        [{"number": 31, "title": "throat", "turn": [{"number": 1, "raw_utterance": "what is it"}]}],
        [
            {
                "number": 31,
                "turn": [{"number": 1, "raw_utterance": "it", "manual_rewritten_utterance": "what is it"}],
            }
        ],
        {"number": "31", "title": "x", "turns": [{"turn_id": "31_1", "utterance": "what is it"}]},
        {"topics": [{"id": "31_1", "topic": "x", "question": "what is it"}]},
    ],
)
def test_the_turns_of_a_conversation_and_topics_under_a_key_are_queries(tmp_path: Path, content: Any) -> None:
    assert list(converters.read(put(tmp_path, json.dumps(content)))) == [Query("31_1", "what is it")]


def test_an_ikat_run_is_each_turns_first_response_which_cites_what_it_used() -> None:
    (response,) = converters.read(CORPUS / "ikat-run.json")
    assert (response.run, response.query_id, response.text) == ("r1", "1-1_1", "You may eat")
    assert [citation.doc_id for citation in response.sentences[0].citations] == ["clueweb22-1"]
    assert response.documents == (Passage("clueweb22-1", "Eat well."),)


def test_lists_of_responses_and_old_ragas_samples_are_responses() -> None:
    assert [each.query_id for each in converters.read(CORPUS / "responses-list.json")] == ["q1", "q2"]
    (old,) = converters.read(CORPUS / "ragas-old.jsonl")
    assert (old.query_text, old.text) == ("what do cats eat", "Cats eat fish.")
    assert [each.text for each in old.documents] == ["Cats eat fish and mice."]


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        (MsMarcoDocument("d", "https://x", "A title", "A body"), ("url", "title", "body")),
        (
            MsMarcoV2Document("d", "https://x", "A title", "Heads", "A body"),
            ("url", "title", "headings", "body"),
        ),
        (MiraclDoc("d", "A title", "A title is here"), ("title", "text")),
        (BeirTitleDoc("d", "Text", "A title"), ("text", "title")),
        (DprW100Doc("d", "Text", "A title"), ("text", "title")),
    ],
)
def test_a_passages_text_is_the_default_text_of_ir_datasets(
    tmp_path: Path, document: Any, fields: tuple[str, ...]
) -> None:
    row = {"docid": "d", **{field: getattr(document, field) for field in fields}}
    assert list(read_passages(put(tmp_path, json.dumps(row)))) == [Passage("d", document.default_text())]
    # Anserini's contents have their title already.
    row = {"id": "d", "title": "Cats", "contents": "Cats\nThey eat fish."}
    assert list(read_passages(put(tmp_path, json.dumps(row)))) == [Passage("d", "Cats\nThey eat fish.")]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, partial(lzma.compress, preset=0)])
def test_a_packed_file_that_ends_early_gives_its_whole_lines_and_then_an_error(
    tmp_path: Path, pack: Any
) -> None:
    rows = b"".join(b'{"docid": "d%d", "text": "%d"}\n' % (n, n**9) for n in range(20_000))
    path = put(tmp_path, pack(rows)[:-10_000], "passages")
    passages = read_passages(path)
    assert next(passages) == Passage("d0", "0")
    with pytest.raises(ConversionError, match="data ends early: the copy is incomplete"):
        list(passages)


@pytest.mark.parametrize("start", [b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PAR1"])
def test_a_damaged_packed_file_is_named_as_such(tmp_path: Path, start: bytes) -> None:
    with pytest.raises(ConversionError, match=r"data (is damaged|ends early).*copy it again"):
        converters.read(put(tmp_path, start + b"no more of this kind" * 9), "run")


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_is_packed_as_its_name_ends(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.qrels{ending}"
    converters.write([Qrel("q1", "d1", 1)], path, "qrels")
    assert packing(path)
    assert list(converters.read(path)) == [Qrel("q1", "d1", 1)]


def test_tables_are_read_by_their_columns_names(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    parquet.write_table(pa.table({"_id": ["d1", "d2"], "title": ["Cats", ""], "text": ["eat", "bark"]}), path)
    assert list(converters.read(path)) == [Passage("d1", "Cats eat"), Passage("d2", "bark")]
    # Ids in columns of bytes are text.
    parquet.write_table(pa.table({"qid": [b"q1"], "docno": [b"d1"], "score": [1.5]}), path)
    assert scores(path) == [("q1", "d1", 1.5)]
    # PyTerrier's docid is a number of its index; a table without scores ranks by its ranks.
    path = put(tmp_path, 'qid,docid,docno,rank,score,query\n1,90,d1,0,2.5,"cats, dogs"\n', "res.csv")
    assert scores(path) == [("1", "d1", 2.5)]
    assert scores(put(tmp_path, "qid\tdocno\trank\n1\ta\t2\n1\tb\t1\n")) == [("1", "b", -1), ("1", "a", -2)]


def test_any_damage_of_a_parquet_file_is_named(tmp_path: Path) -> None:
    whole = (CORPUS / "run.parquet").read_bytes()
    for place in range(4, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        for name in ("run", "passages"):
            with contextlib.suppress(ConversionError):
                list(converters.read(put(tmp_path, bytes(damaged)), name))


def test_passages_of_a_run_with_a_bad_row_and_two_texts_of_an_id_are_all_given(tmp_path: Path) -> None:
    rows = [("d1", "one"), ("d1", "one"), (None, "x"), ("d1", "two")]
    lines = [{"qid": "q", "query": "t", "docno": doc, "text": text, "score": 1} for doc, text in rows]
    errors: list[ConversionError] = []
    path = put(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    found = [each for _, each in numbered_passages(path, errors.append)]
    assert found == [
        Passage("d1", "one"),
        Passage("d1", "two"),
    ]
    assert [error.line for error in errors] == [3]


@pytest.mark.parametrize(
    ("kind", "content", "line", "reason"),
    [
        (
            "run",
            "qid,docno,score\n1,a,2\n1,b\n",
            3,
            "has 2 fields, and the header names 3: qid, docno, score",
        ),
        ("run", "qid,docno,score\n1,a,2\n1,a,1\n", 3, "document 'a' occurs twice for query '1'"),
        ("run", '{"q": {"d": 1.5, "e": "x"}}', 1, "the score is not a number: 'x'"),
        ("run", '{"mteb_model_meta": {}, "a": {"test": {}, "dev": {}}}', 1, "has 2 splits .a/test, a/dev."),
        ("run", '{"query": {"qid": "1"}, "candidates": 3}', 1, '"candidates" is not a list'),
        ("run", '{"query": {"text": "x"}, "candidates": []}', 1, 'no "qid" or "query_id" or "id"'),
        ("run", '{"query": {"qid": "1"}, "candidates": []}', None, "no document in it"),
        ("run", "qid,docno,score\nq1,d 2,1\n", 2, "document id 'd 2' is empty or has white space"),
        ("qrels", '{"q 1": {"d": 1}}', 1, "query id 'q 1' is empty or has white space"),
        (
            "qrels",
            '{"query-id": "q", "corpus-id": "d", "score": 0.5}',
            1,
            "label of document 'd' is not a whole",
        ),
        ("qrels", '{"q": {"d": 1}, "p": [1]}', 1, "not {query_id: {doc_id: number}}"),
        ("responses", '{"run_name": "r", "turns": [{"turn_id": "1", "responses": []}]}', 1, "no responses"),
        (
            "queries",
            '<?xml version="1.0" encoding="x-none"?><topic number="1">x</topic>',
            1,
            "not in the encoding",
        ),
        ("run", "q 0 d1 3\nq 0 d2 1\n", 1, "has 4 columns, a run line has 6"),
        ("run", "q d1 1\nq d2 2\nq d3\n", 3, "has 2 columns, a run line has 3 here: query_id doc_id rank"),
        ("run", "# ir_metadata.start\n# tag: x\nq Q0 d 1 1 t\n", 3, "no line `# ir_metadata.end`"),
        ("run", "# ir_metadata.start\n# tag: x\n", None, "ends within its ir_metadata header"),
        ("run", "# ir_metadata.start\n# ir_metadata.end\nq Q0 d 1 1 t\nq Q0 d 2 0 t\n", 4, "first on line 3"),
        (
            "qrels",
            "query-id\tcorpus-id\tscore\nq\td\t1\t0\n",
            2,
            "4 fields, and the header names 3: query-id",
        ),
        ("queries", '{"_id": "d", "title": "t", "text": "x"}\n', 1, "looks like BEIR's corpus.jsonl"),
        ("passages", "q\tQ0\td\t1\t2.5\ttag\n", 1, "has 5 tabs: a line is `doc_id<TAB>text`"),
        ("umbrela", '{"query": "q", "passage": "p", "judgment": 4}\n', 1, '"judgment" is not 0..3: 4'),
        ("responses", '{"user_input": [{"content": "hi"}], "response": "x"}\n', 1, "several turns"),
        (
            "responses",
            '{"user_input": "q", "response": "x", "retrieved_contexts": 1}\n',
            1,
            "not a list of texts",
        ),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, kind: str, content: str, line: int | None, reason: str
) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        list(converters.read(put(tmp_path, content), kind))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("my-run.json", '{"q1": {"d1": 3, "d2": 1}}', "run"),
        ("truth.json", '{\n  "q1": {\n    "d1": 3,\n    "d2": 1\n  }\n}', "qrels"),
        ("x.tsv", "query_id\tdoc_id\trelevance\nq1\td1\t2\n", "qrels"),
        ("pruned_qrels.json", '{"q1": {"d1": 1, "d2": 0}}', "qrels"),
        ("brunch.json", '{"q1": {"d1": 1.0, "d2": 0.0}}', "qrels"),
        ("x.json", '{"q1": {}, "q2": {"d1": 21, "d2": 20}}', "run"),
        ("dev.csv", "query_id,doc_id,score\nq1,d1,1.0\nq1,d2,0.0\n", "qrels"),
        ("x.csv", "query_id,doc_id,score\nq1,d1,1.25\n", "run"),
        ("x.csv", ",qid,docno,score\n0,q1,d1,1.25\n", "run"),
        ("x.jsonl", '{"query_id": "q", "corpus_id": "d", "score": 1}', "qrels"),
        ("x.tsv", "1\td1\t1\t9\n1\td2\t2\t8\n", "run"),
        ("x.tsv", "1\t0\td1\t1\n1\t0\td2\t0\n", "qrels"),
        ("queries.dev.tsv", "1\tcats\t1\n", "queries"),
        ("x.tsv", "1\tcats eat\t5\n", "queries"),
        ("x.tsv", "1\thow many cats\t3 and more\n", "queries"),
        ("x.tsv", "query_id\tquery\n1\tcats\n", "queries"),
        ("x.jsonl", '{"query_id": "q", "doc_id": "d", "item_id": "i", "rating": 3}', "grades"),
        ("x.jsonl", '{"qid": "q", "query": "t", "docno": "d", "score": 1}', "run"),
        ("queries.jsonl", '{"id": "1", "text": "x"}', "queries"),
        ("corpus.jsonl", '{"id": "1", "text": "x"}', "passages"),
        ("x.jsonl", '{"_id": "1", "text": "short"}\n', "queries"),
        ("x.jsonl", '{"_id": "1", "text": "' + "long " * 60 + '"}\n', "passages"),
        ("x.json", '{"bm25": 1, "dense": 2}', "leaderboard"),
        ("x.json", '{"name": "x", "body": "y"}', None),
        ("queries.json", '{"first": "x", "second": "y"}', "queries"),
        ("x.json", '[{"docid": "1", "text": "x"}]', "passages"),
        ("x.json", '{\n"q1": "a 3 4 5 6",\n"q2": "in the year 1995 20 countries"}', "queries"),
        ("x.txt", "<top>\n<num> 1\n<desc>\nIn the year 1995 20 countries signed\n</top>", "queries"),
        ("x.txt", "<DOC>\n<DOCNO> 1 </DOCNO>\n<TITLE>x</TITLE>\n</DOC>\n", None),
        ("x.tsv", "<unknown>\ta query\n", "queries"),
        ("x.tsv", "[1]\ta query\n", None),
        # Decreasing labels of documents 1, 2, 3, without fractions and with one iteration per query.
        ("x.txt", "q 0 1 3\nq 0 2 2\nq 0 3 1\n", "qrels"),
        ("x.txt", "q1 0 d1 1.5\n", "qrels"),
        ("x.txt", "q d9 0 0.5\nq d3 1 0.25\n", "run"),
        ("x.txt", "q\td9\t1\nq\td3\t2\n", "run"),
        # Runs whose first line is bad, or whose ranks and scores could be labels and confidences.
        ("x.txt", "q1 Q0 d1 1 high tag\n", "run"),
        ("x.txt", "q1 Q0 d1 1 2.5\n", "run"),
        ("x.txt", "q1 Q0 d1 1 0.6 a\nq1 Q0 d2 1 0.8 a\nq1 Q0 d3 1 0.7 a\n", "run"),
        # First lines that are longer than what is read to recognise them.
        ("x.json", '{"1": "' + "word " * 20_000 + '"}', "queries"),
        ("x.jsonl", json.dumps({"docid": "d", "text": 'word {[ " ' * 20_000}), "passages"),
        ("x.jsonl", json.dumps({"query_id": "q", "questions": [{"question_text": "w " * 50_000}]}), "bank"),
        ("x.jsonl", json.dumps({"title": {"text": "x" * 70_000}, "docid": "d", "text": "y"}), None),
    ],
)
def test_what_looks_alike_is_told_apart(tmp_path: Path, name: str, content: str, kind: str | None) -> None:
    path = put(tmp_path, content, name)
    if kind is None:
        with pytest.raises(ConversionError, match="in none of the supported formats"):
            converters.sniff(path)
    else:
        assert converters.sniff(path) == kind


IDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)


@given(st.dictionaries(IDS, st.dictionaries(IDS, st.floats(-1e9, 1e9), min_size=1), min_size=1))
def test_a_run_as_a_json_dict_holds_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, float]]
) -> None:
    path = put(tmp_path_factory.mktemp("dict"), json.dumps(run), "run.json")
    read: dict[str, dict[str, float]] = {}
    for entry in converters.read(path, "run"):
        read.setdefault(entry.query_id, {})[entry.doc_id] = entry.score
    assert read == run


def test_every_file_of_the_field_is_read_or_refused_with_a_reason() -> None:
    folder = outside("field")
    unread = {}
    for path in sorted(
        each for each in folder.rglob("*") if each.is_file() and each.suffix not in (".md", ".py")
    ):
        try:
            for _ in converters.read(path):
                pass
        except ConversionError as error:
            unread[path.relative_to(folder).as_posix()] = error.reason
    refused = ("03-scientific-nan-inf/", "08-label-forms/frac.qrels", "answers.jsonl")
    assert [name for name in unread if not name.startswith(refused)] == []
    assert not [name for name, reason in unread.items() if not reason]


# Files of generation tracks and AutoJudge; of BEIR, MS MARCO, ir_metadata, umbrela and ragas.


@pytest.mark.parametrize("key", ["request_id", "topic_id", "narrative_id", "query_id"])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"title": "leaves", "problem_statement": "Why red?", "background": "A child"}, "leaves. Why red?"),
        ({"title": "Why red?", "problem_statement": "A tree."}, "Why red? A tree."),
        ({"title": "leaves"}, "leaves"),
        ({"problem_statement": "Why red?", "background": "A child"}, "Why red?"),
        ({"narrative": "How do leaves fall?"}, "How do leaves fall?"),
    ],
)
def test_topics_of_every_track_are_read_as_queries(
    tmp_path: Path, key: str, fields: dict[str, str], text: str
) -> None:
    path = put_rows(tmp_path / "t.jsonl", {key: "7", **fields})
    assert converters.sniff(path) == "queries"
    assert list(converters.read(path)) == [Query("7", text)]


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
def test_reports_of_every_track_are_read_as_responses(
    tmp_path: Path, key: str, inside: bool, listed: str
) -> None:
    row: dict[str, Any] = {k: v for k, v in REPORT.items() if k != "responses"} | {
        listed: REPORT["responses"]
    }
    row = row | ({"metadata": {**row["metadata"], key: 7}} if inside else {key: 7})
    path = put_rows(tmp_path / "run.jsonl", row)
    assert converters.sniff(path) == "responses"
    (found,) = converters.read(path)
    assert (found.query_id, found.run) == ("7", "sys")
    assert [s.citations for s in found.sentences] == [(("d2", 0.75), ("d1", 0.25)), (("d2", None),), ()]
    assert found.documents == (("d1", "One."), ("d2", "Two."))
    assert dict(found.metadata)["team_id"] == "t"


def test_the_ragtime_form_keeps_confidences_documents_and_metadata(tmp_path: Path) -> None:
    report = {**REPORT, "metadata": {**REPORT["metadata"], "topic_id": "7"}}
    found = list(converters.read(put_rows(tmp_path / "run.jsonl", report)))
    converters.write(found, tmp_path / "again.jsonl", "ragtime")
    assert list(converters.read(tmp_path / "again.jsonl")) == found
    (row,) = map(json.loads, (tmp_path / "again.jsonl").read_text().splitlines())
    assert [each.get("citations") for each in row["responses"]] == [{"d2": 0.75, "d1": 0.25}, ["d2"], []]


@pytest.mark.parametrize("form", ["rag24", "rag25"])
def test_trec_rag_forms_cite_by_position_ordered_by_confidence(tmp_path: Path, form: str) -> None:
    report = {**REPORT, "topic_id": "7", "references": ["d1"]}
    found = list(converters.read(put_rows(tmp_path / "run.jsonl", report)))
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
def test_leaderboards_are_read_back_in_every_form(tmp_path: Path, form: str) -> None:
    path = laid_out(tmp_path / "x.eval.txt", form)
    assert list(read_values(path)) == ROWS
    assert list(converters.read(path, "leaderboard")) == [("b", 2), ("a", 1)]
    if form != "ranking":
        assert converters.sniff(path) == "leaderboard"


def test_a_trec_eval_output_is_named_by_its_runid_line_or_its_file(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row.run == "a"]
    path = laid_out(tmp_path / "a.eval.txt", "trec_eval", rows)
    assert list(read_values(path)) == rows
    path.write_text("runid \tall\tother\n" + path.read_text())
    assert list(read_values(path)) == [row._replace(run="other") for row in rows]
    assert converters.sniff(path) == "leaderboard"
    with pytest.raises(ValueError, match="write a file for each"):
        laid_out(path, "trec_eval")


def test_a_leaderboard_may_lack_means_a_header_or_a_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.txt"
    path.write_text("run topic metric score\na 1 M 0.9\nb 1 M 0.5\nb 2 M 0.6\na 1 N 0.1\n")
    assert converters.sniff(path) == "leaderboard"
    assert list(converters.read(path)) == [("a", 2), ("b", 1)]
    # Ambiguous columns need a header line.
    path.write_text("a t1 M 0.9\n")
    with pytest.raises(converters.ConversionError, match="run query measure value"):
        list(converters.read(path, "leaderboard"))
    path.write_text("run measure query value\na t1 M 0.9\n")
    assert list(read_values(path)) == [MeasureValue("a", "M", "t1", 0.9)]
    path.write_text("a\tall\tm\t0.5\nb\tall\tm\tnan\nc\tall\tm\t0.25\n")
    assert [(row.run, row.value) for row in read_values(path)] == [("a", 0.5), ("c", 0.25)]
    assert f"{path}:2: skipped a value that is not a number (1 such lines)" in caplog.text


V3 = json.loads((CORPUS / "nuggets-v3.jsonl").read_text())


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("through", [None, "bank"])
def test_nugget_banks_are_read_back_without_loss(
    tmp_path: Path, indent: int | None, through: str | None
) -> None:
    path = tmp_path / "nuggets.json"
    path.write_text(json.dumps(V3, indent=indent))
    assert converters.sniff(path) == "bank"
    items = list(converters.read(path))
    assert [(i.item_id, i.text, i.kind, i.gold_answers, i.importance) for i in items] == [
        ("n1", "Why red?", "question", ("sugar", "cold"), "vital"),
        ("n2", "When?", "question", (), ""),
        ("c1", "Leaves fall.", "nugget", (), "okay"),
    ]
    if through:
        converters.write(items, tmp_path / "bank.jsonl", through)
        assert list(converters.read(tmp_path / "bank.jsonl")) == items
        items = list(converters.read(tmp_path / "bank.jsonl"))
    converters.write(items, tmp_path / "again.jsonl", "nuggets-v3")
    assert json.loads((tmp_path / "again.jsonl").read_text()) == V3


def test_edited_fields_are_written_and_the_others_are_kept(tmp_path: Path) -> None:
    first, *others = converters.read(put_rows(tmp_path / "n.jsonl", V3))
    edited = first._replace(text="Why?", gold_answers=("sugar", "light"), importance="okay", retired=True)
    converters.write([edited, *others], tmp_path / "again.jsonl", "nuggets-v3")
    entry = json.loads((tmp_path / "again.jsonl").read_text())["nugget_bank"]["Why?"]
    kept = V3["nugget_bank"]["Why red?"]["answers"]["sugar"]
    assert entry["answers"] == {"sugar": kept, "light": {"answer": "light"}}
    assert (entry["importance"], entry["aggregator_type"]) == ("okay", "AND")
    assert next(iter(converters.read(tmp_path / "again.jsonl"))).retired


def test_a_trecexam_bank_is_read_back_from_v3(tmp_path: Path) -> None:
    origin = Origin("p", "m", 1, "2026-01-01", "What?", "vital")
    items = [
        Item("7", "7/1", "What?", gold_answers=("a",), importance="vital", origin=origin, facet_id="f"),
        Item("7", "7/2", "Which?", choices=(("A", "x"),), weight=-2.0, retired=True),
        Item("8", "8/1", "It is so.", "nugget"),
    ]
    converters.write(items, tmp_path / "n.jsonl", "nuggets-v3")
    again = list(converters.read(tmp_path / "n.jsonl"))
    assert [item._replace(details="") for item in again] == items


@pytest.mark.parametrize(
    "around",
    [lambda bank: {"metadata": {"topic_id": "7", "run_id": "r"}, "nugget_bank": bank}, lambda bank: bank],
)
def test_the_ragtime_form_is_read_back(tmp_path: Path, around: Any) -> None:
    row = around({"Why red?": ["AND", "cold", {"sugar": ["d1", "d2"]}], "When?": ["OR"]})
    path = put_rows(tmp_path / "nuggets_7.json", row)
    assert converters.sniff(path) == "bank"
    items = list(converters.read(path))
    assert [(i.query_id, i.text, i.gold_answers) for i in items] == [
        ("7", "Why red?", ("cold", "sugar")),
        ("7", "When?", ()),
    ]
    converters.write(items, tmp_path / "again.json", "nuggets-ragtime")
    written = json.loads((tmp_path / "again.json").read_text())
    assert written["metadata"] == {**({"run_id": "r"} if "metadata" in row else {}), "topic_id": "7"}
    assert [tuple(each.values()) for each in written["nugget_bank"]] == [
        ("Why red?", "AND", [{"answer": "cold"}, {"answer": "sugar", "references": ["d1", "d2"]}]),
        ("When?", "OR"),
    ]
    again = list(converters.read(tmp_path / "again.json"))
    assert [each._replace(details="") for each in again] == [each._replace(details="") for each in items]
    converters.write(items, tmp_path / "v3.json", "nuggets-v3")
    entry = json.loads((tmp_path / "v3.json").read_text())["nugget_bank"]["Why red?"]
    assert entry["aggregator_type"] == "AND"
    assert entry["answers"]["sugar"] == {"answer": "sugar", "references": ["d1", "d2"]}


def test_fields_of_the_ragtime_form_are_kept_and_lost_fields_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    items = list(converters.read(CORPUS / "nuggets-ragtime-26.jsonl"))
    converters.write(items, tmp_path / "again.jsonl", "nuggets-ragtime")
    assert (tmp_path / "again.jsonl").read_text() == (CORPUS / "nuggets-ragtime-26.jsonl").read_text()
    assert not caplog.records
    questions = [
        item for item in converters.read(put_rows(tmp_path / "n.jsonl", V3)) if item.kind == "question"
    ]
    converters.write(questions, tmp_path / "again.jsonl", "nuggets-ragtime")
    (told,) = caplog.messages
    for lost in ("question's creator (1)", "question's sub_nuggets (1)", "question's question_id (2)"):
        assert lost in told
    for lost in ("answer's quality (1)", "topic's title_query (1)", "topic's full_query (1)"):
        assert lost in told
    again = [
        (each.text, each.importance, each.gold_answers) for each in converters.read(tmp_path / "again.jsonl")
    ]
    assert again == [(each.text, each.importance, each.gold_answers) for each in questions]
    bank = put_rows(tmp_path / "n.jsonl", {"query_id": "1", "nugget_bank": {"Q": {"aggregator_type": "NOT"}}})
    with pytest.raises(ValueError, match="only AND and OR: write nuggets-v3"):
        converters.write(converters.read(bank), tmp_path / "again.jsonl", "nuggets-ragtime")
    with pytest.raises(ValueError, match="only questions: write nuggets-v3"):
        converters.write(
            converters.read(put_rows(tmp_path / "n.jsonl", V3)), tmp_path / "again.jsonl", "nuggets-ragtime"
        )


def test_a_trecexam_bank_is_read_back_from_the_ragtime_form(tmp_path: Path) -> None:
    origin = Origin("p", "m", 1, "2026-01-01", "What?", "vital")
    item = Item("7", "", "What?", gold_answers=("a",), importance="vital", origin=origin, weight=2.0)
    item = item._replace(item_id=made_id("7", "What?"), facet_id="f", choices=(("A", "x"),), retired=True)
    converters.write([item], tmp_path / "n.jsonl", "nuggets-ragtime")
    assert [each._replace(details="") for each in converters.read(tmp_path / "n.jsonl")] == [item]


def test_the_same_question_of_two_topics_is_two_items(tmp_path: Path) -> None:
    digest = hashlib.md5(b"Why?", usedforsecurity=False).hexdigest()
    rows = [{"query_id": n, "nugget_bank": [{"question": "Why?", "question_id": digest}]} for n in ("1", "2")]
    items = list(converters.read(put_rows(tmp_path / "n.jsonl", *rows)))
    assert [item.item_id for item in items] == [f"1/{digest}", f"2/{digest}"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"nugget_bank": {}, "query_id": "1"}, "has no nuggets"),
        ({"nugget_bank": [{"answers": {}}], "query_id": "1"}, "has no text"),
        ({"nugget_bank": {"Q": 3}, "query_id": "1"}, "neither an object nor a list"),
        ({"nugget_bank": {"Q": {"answers": 3}}, "query_id": "1"}, "neither a list nor an object"),
        ({"nugget_bank": {"Q": ["OR", 3]}, "query_id": "1"}, "is not text: 3"),
    ],
)
def test_an_invalid_nugget_bank_is_reported_with_the_reason(
    tmp_path: Path, row: dict[str, Any], why: str
) -> None:
    with pytest.raises(converters.ConversionError, match=why):
        list(converters.read(put_rows(tmp_path / "n.jsonl", row), "bank"))


def test_autojudge_reads_the_written_files(tmp_path: Path) -> None:
    with with_nltk_data():
        nuggets = pytest.importorskip("autojudge_base.nugget_data")
    path = put_rows(tmp_path / "n.jsonl", V3)
    converters.write(converters.read(path), tmp_path / "again.jsonl", "nuggets-v3")
    banks = [nuggets.load_nugget_banks_from_file(each).banks for each in (path, tmp_path / "again.jsonl")]
    assert banks[0]["7"].model_dump() == banks[1]["7"].model_dump()
    rows = [{"question": "Why?", "aggregator_type": "AND", "answers": [{"answer": "a", "references": ["d"]}]}]
    handed_in = put_rows(tmp_path / "r.jsonl", {"metadata": {"topic_id": "7"}, "nugget_bank": rows})
    converters.write(converters.read(handed_in), tmp_path / "v3.jsonl", "nuggets-v3")
    (question,) = nuggets.load_nugget_banks_from_file(tmp_path / "v3.jsonl").banks["7"].nuggets_as_list()
    assert (question.aggregator_type, question.answers["a"].references[0].doc_id) == ("AND", "d")
    read = nuggets.load_ragtime26_nugget_banks_from_file
    converters.write(converters.read(handed_in), tmp_path / "again.jsonl", "nuggets-ragtime")
    questions = [item for item in converters.read(path) if item.kind == "question"]
    converters.write(questions, tmp_path / "of_v3.jsonl", "nuggets-ragtime")
    assert read(tmp_path / "again.jsonl") == read(handed_in)
    theirs = nuggets.load_nugget_banks_from_file(path).banks["7"].model_copy(update={"claim_bank": None})
    bank = read(tmp_path / "of_v3.jsonl").banks["7"]
    for ours, other in zip(bank.nugget_bank, theirs.to_ragtime26_nugget_bank().nugget_bank, strict=True):
        assert (ours.question, ours.aggregator_type) == (other.question, other.aggregator_type)
        assert (ours.importance, ours.metadata) == (other.importance, other.metadata)
        assert [a.reference_doc_ids() for a in ours.answers or ()] == [
            a.reference_doc_ids() for a in other.answers or ()
        ]


# Files of BEIR, MS MARCO, ir_metadata, umbrela and ragas: reading, recognising and writing.


TAG, SCORES = "msmarco-run", "msmarco-scores"
YAML = "platform:\n  hardware:\n    cpu: x86\ntag: my run"


@pytest.mark.parametrize(
    ("name", "kind", "records"),
    [
        ("beir-corpus.jsonl", "passages", [("d1", "Heat pumps They move heat."), ("d2", "Bees make honey.")]),
        ("beir-queries.jsonl", "queries", [("q1", "how do heat pumps work")]),
        ("beir-qrels.tsv", "qrels", [("q1", "d1", 2, "0"), ("q1", "d2", 0, "0")]),
        ("collection.tsv", "passages", [("0", "Heat pumps move heat."), ("1", "Bees make honey.")]),
        ("msmarco-run.tsv", "run", [("10", "71", 1, -1, TAG), ("10", "70", 2, -2, TAG)]),
        ("msmarco-scores.txt", "run", [("10", "71", 1, 18.25, SCORES), ("10", "70", 2, 17.5, SCORES)]),
        ("ir-metadata.run", "run", [("q1", "d1", 1, 2.5, "tag"), ("q1", "d2", 2, 1.5, "tag")]),
    ],
)
def test_fields_are_recognised_read_and_written_back(
    tmp_path: Path, name: str, kind: str, records: list[tuple[object, ...]]
) -> None:
    path = CORPUS / name
    assert converters.sniff(path) == kind
    assert list(converters.read(path)) == records
    again = tmp_path / "again"
    converters.write(converters.read(path), again, kind)
    assert list(converters.read(again, kind)) == records


@pytest.mark.parametrize("delimiter", [" ", "\t", "  "])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_ir_metadata_header_is_kept_and_changes_no_entry(
    tmp_path: Path, delimiter: str, pack: type[bytes]
) -> None:
    lines = "".join(delimiter.join(("q", "Q0", f"d{n}", str(n), str(9 - n), "t\n")) for n in range(1, 5))
    plain, path = put(tmp_path, lines, "plain"), tmp_path / "annotated"
    # repro_eval ends its lines with a blank.
    header = "".join(f"# {line} \n" for line in YAML.split("\n"))
    text = f"# ir_metadata.start\n{header}# ir_metadata.end\n{lines}"
    path.write_bytes(pack(text.encode()))
    run = converters.read(path)
    assert list(run) == list(converters.read(plain))
    assert (run.metadata, converters.read(plain).metadata) == (YAML, "")
    with (tmp_path / "again").open("wb") as file:
        write_run(run, file, run.metadata)
    again = converters.read(tmp_path / "again")
    assert (list(again), again.metadata) == (list(run), YAML)


def test_umbrela_judgments_with_ids_are_qrels(tmp_path: Path) -> None:
    path = CORPUS / "umbrela.jsonl"
    first, second = converters.read(path)
    assert first == TextJudgment(
        "how do heat pumps work", "Heat pumps move heat.", 3, "##final score: 3", "gpt-4o"
    )
    # umbrela writes 0 if it could not parse the answer.
    assert (second.label, second.query_id, second.doc_id) == (None, "q1", "d2")
    with pytest.raises(ConversionError, match="trecexam init --recorded"):
        list(converted(path, None, "qrels"))
    with_ids = put(tmp_path, '{"query": "q", "passage": "p", "judgment": 2, "qid": 7, "docid": "d"}\n')
    assert list(converted(with_ids, None, "qrels")) == [Qrel("7", "d", 2)]


def test_a_ragas_sample_is_a_response_that_cites_its_contexts(tmp_path: Path) -> None:
    sample = {
        "user_input": "who?",
        "response": "Bees.",
        "retrieved_contexts": ["one", "two"],
        "reference": "Bees",
    }
    path = put(tmp_path, json.dumps(sample) + "\n", "mysys.jsonl")
    assert converters.sniff(path) == "responses"
    (response,) = converters.read(path)
    assert (response.query_id, response.query_text, response.run, response.text) == (
        "",
        "who?",
        "mysys",
        "Bees.",
    )
    assert [cited.doc_id for cited in response.sentences[0].citations] == list(response.references)
    named = put(tmp_path, json.dumps({**sample, "retrieved_context_ids": ["a", 2]}) + "\n", "named.jsonl")
    assert next(converters.read(named)).references == ("a", "2")
    # Queries and runs of the same samples match: ids are made from the text.
    (query,) = converted(path, None, "queries")
    run = converted(path, None, "run", "citations")
    assert query.text == "who?"
    assert run.ranking(query.query_id) == list(response.references)
