"""Files as other tools write them are told by their content, and read as what they hold."""

from __future__ import annotations

import bz2
import contextlib
import gzip
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
from outside import outside
from pyarrow import parquet
from text_files import put

import converters
from converters import ConversionError, Passage, Qrel, Query
from converters.convert import converted
from converters.lines import packing
from converters.passages import numbered_passages, read_passages

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
CASTORINI = {
    "query": {"text": "cats", "qid": 7},
    "candidates": [
        {"docid": "d2", "score": 1.5, "doc": {"title": "Cats", "segment": "They eat fish."}},
        {"docid": "d1", "score": 2, "doc": {"contents": "Fish swim."}},
    ],
}


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


def test_a_run_with_texts_is_converted_to_queries_and_passages_and_no_other_run_is(tmp_path: Path) -> None:
    path = put(tmp_path, json.dumps(CASTORINI))
    assert list(converted(path, None, "queries")) == [Query("7", "cats")]
    with pytest.raises(ConversionError, match="is a run without texts, and holds no passages"):
        converted(put(tmp_path, "q Q0 d 1 2 t\n", "x.run"), None, "passages")


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
