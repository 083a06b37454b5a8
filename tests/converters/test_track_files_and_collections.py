"""Files of generation tracks and AutoJudge; of BEIR, MS MARCO, ir_metadata, umbrela and ragas."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from nltk_folder import with_nltk_data
from outside import outside
from text_files import put, put_rows

import converters
from converters import ConversionError, Passage, Qrel, Query, TextJudgment
from converters.convert import converted
from converters.fields import made_id
from converters.measure_values import FORMS, read_values, write_values
from converters.passages import numbered_passages
from converters.records import Item, MeasureValue, Origin
from converters.trec_run import write_run


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


def test_the_truth_file_of_autojudge_is_a_leaderboard() -> None:
    path = outside("autojudge/kiddie/eval/kiddie_fake.eval.ir_measures.txt")
    assert converters.sniff(path) == "leaderboard"
    assert list(converters.read(path)) == [("run1", 1), ("run2", 2), ("run3", 3), ("run4", 4)]


CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
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
        ({"nugget_bank": {"Q": {}}}, 'no "query_id"'),
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
    found = [each for _, each in numbered_passages(path, errors.append)]
    assert found == [
        Passage("1", "one"),
        Passage("3", "three"),
    ]
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
