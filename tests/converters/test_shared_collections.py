"""Files of BEIR, MS MARCO, ir_metadata, umbrela and ragas: reading, recognising and writing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import converters
from converters import ConversionError, Passage, Qrel, TextJudgment
from converters.convert import converted
from converters.passages import read_passages
from converters.trec_run import write_run

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
TAG, SCORES = "msmarco-run", "msmarco-scores"
YAML = "platform:\n  hardware:\n    cpu: x86\ntag: my run"


def put(tmp_path: Path, text: str, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # Decreasing labels of documents 1, 2, 3, without fractions and with one iteration per query.
        ("q 0 1 3\nq 0 2 2\nq 0 3 1\n", "qrels"),
        ("1 1 1 0\n1 1 2 1\n", "qrels"),
        ("q d9 1 9\nq d3 2 8\nq d1 3 5\n", "run"),
        ("q d9 0 0.5\nq d3 1 0.25\n", "run"),
        ("q\td9\t1\nq\td3\t2\n", "run"),
        ("q1\teat 3\nq2\tdrink 2\n", "queries"),
        ('{"_id": "1", "text": "short"}\n', "queries"),
        ('{"_id": "1", "text": "' + "long " * 60 + '"}\n', "passages"),
    ],
)
def test_similar_formats_are_told_apart_by_content(tmp_path: Path, text: str, kind: str) -> None:
    assert converters.sniff(put(tmp_path, text)) == kind


@pytest.mark.parametrize(
    ("kind", "text", "line", "reason"),
    [
        ("run", "q 0 d1 3\nq 0 d2 1\n", 1, "has 4 columns, a run line has 6"),
        ("run", "q d1 1\nq d2 2\nq d3\n", 3, "has 2 columns, a run line has 3 here: query_id doc_id rank"),
        ("run", "q d1 1\nq d2 2\nq d1 3\n", 3, "document 'd1' occurs twice for query 'q' .first on line 1"),
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
def test_a_bad_line_is_reported(tmp_path: Path, kind: str, text: str, line: int | None, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        list(converters.read(put(tmp_path, text), kind))
    assert caught.value.line == line


def test_bad_lines_of_a_collection_are_skipped_with_an_error_handler(tmp_path: Path) -> None:
    errors: list[ConversionError] = []
    path = put(tmp_path, "pid\tpassage\n1\tone\n2\n3\tthree\n")
    assert list(read_passages(path, errors.append)) == [Passage("1", "one"), Passage("3", "three")]
    assert [error.line for error in errors] == [3]


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
