"""Forms of content that `trecexam.evaluate` takes and refuses; each message names the argument."""

from __future__ import annotations

import dataclasses
import gzip
import json
import types
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import narwhals
import numpy as np
import pandas
import polars
import pytest
from support import HashGrader

import trecexam
from converters import Item, Origin, Passage, Qrel, Query, RecordedGrade, Run, RunEntry
from trecexam import TrecexamError

BANK = {"q1": ["what?"], "q2": ["how?"], "1": ["which?"], "007": ["who?"], "7": ["why?"]}
PASSAGES = {"d1": "one", "d2": "two", "d3": "three", "5": "five", "6": "six"}
ROWS = [("q1", "d1", 2.0), ("q1", "d2", 1.0), ("q2", "d3", 1.0)]
NESTED = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}
DICTS = [{"query_id": q, "doc_id": d, "score": s} for q, d, s in ROWS]
BY_NUMBER = [("1", "6", 2.0), ("1", "5", 1.0)]
ONE = [("q1", "d1", 1.0)]
LINES = "".join(f"{q} Q0 {d} 1 {s} tag\n" for q, d, s in ROWS)
Scored = namedtuple("Scored", "query_id doc_id score")
Ranked = namedtuple("Ranked", "qid docno score rank")


FULL = Item(
    "q1",
    "i",
    "what?",
    "nugget",
    gold_answers=("g",),
    facet_id="f",
    choices=(("A", "x"),),
    importance="vital",
    origin=Origin("p", "m", 1, "t", "what?"),
    weight=-2.0,
    details='{"x":1}',
)


@dataclasses.dataclass
class Record:
    query_id: str
    doc_id: str
    score: float


def frame(**columns: Any) -> pandas.DataFrame:
    return pandas.DataFrame(columns)


def score(value: Any) -> dict[str, dict[str, Any]]:
    return {"q1": {"d1": value}}


def scores(*values: Any) -> pandas.DataFrame:
    return frame(query_id=["q1"] * len(values), doc_id=["d1", "d2"][: len(values)], score=list(values))


FRAME = frame(query_id=["q1", "q1", "q2"], doc_id=["d1", "d2", "d3"], score=[2.0, 1.0, 1.0])
POLARS = polars.from_pandas(FRAME)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    response = {"metadata": {"run_id": "rag", "narrative_id": "q1"}, "references": []}
    texts = {
        "a.run": LINES,
        ".hidden": LINES.replace("tag", "hidden"),
        "c.tmp": LINES.replace("tag", "unfinished"),
        "table.csv": "qid,docno,score\nq1,d1,1\n",
        "empty.run": "",
        "bad.run": "q1 Q0 d1 1 x tag\n",
        "twice.run": "q1 Q0 d1 1 2 tag\nq1 Q0 d1 2 1 tag\n",
        "bank.jsonl": json.dumps({"query_id": "q1", "question": "what?"}),
        "second.jsonl": json.dumps({"query_id": "q2", "question": "how?"}),
        "bad.jsonl": '{"query_id": "q1"}\n',
        "passages.jsonl": json.dumps({"docid": "d1", "text": "one"}),
        "queries.tsv": "q1\tfirst\n",
        "qrels.txt": "q1 0 d1 1\n",
        "two.jsonl": "".join(
            json.dumps({**response, "metadata": {**response["metadata"], "run_id": name}, "answer": answer})
            + "\n"
            for name in ("rag", "other")
            for answer in [[{"text": "One.", "citations": []}]]
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("a.run", "bank.jsonl", "passages.jsonl", "qrels.txt"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    return folder


def read(argument: str, value: Any) -> Any:
    """Evaluate with this argument, and return what was read of it."""
    grader = HashGrader()
    given: dict[str, Any] = {"runs": {"a": NESTED}, "bank": BANK, "passages": PASSAGES, "grader": grader}
    if argument == "recorded":
        given |= {"bank": [Item("q1", "i", "what?")], "grader": None}
    given |= {"runs": {"a": value}} if argument == "run" else {argument: value}
    with trecexam.evaluate(**given, measures="P(rel=3)@1") as done:
        track = done.track
        if argument == "bank":
            items = {cell.item for cell in grader.asked}
            # Ids that are made have a slash.
            return sorted(
                item._replace(item_id="" if "/" in item.item_id else item.item_id) for item in items
            )
        if argument == "passages":
            return sorted({cell.text for cell in grader.asked})
        if argument == "queries":
            return {query_id: text for query_id, text in track.queries.items() if text}
        if argument == "official":
            return [*track.export.official_qrels()]
        if argument == "recorded":
            return [(row["query_id"], row["item_id"], row["rating"]) for row in track.grades()]
        runs = {
            name: [(entry.query_id, entry.doc_id, entry.score) for entry in run]
            for name, run in track.export.runs().items()
        }
        return runs["a"] if argument == "run" else runs


#: Argument, what is read, and the forms of which it is read, some as functions of the folder of files.
ACCEPTED: list[tuple[str, Any, list[Any]]] = [
    (
        "run",
        ROWS,
        [
            NESTED,
            OrderedDict(((q, OrderedDict(docs)) for q, docs in NESTED.items())),
            types.MappingProxyType(NESTED),
            {q: {d: np.float32(s) for d, s in docs.items()} for q, docs in NESTED.items()},
            {q: {d: Decimal(s) for d, s in docs.items()} for q, docs in NESTED.items()},
            {"q0": {}, **NESTED},
            DICTS,
            tuple(map(OrderedDict, DICTS)),
            [types.MappingProxyType(row) for row in DICTS],
            lambda _: (row for row in DICTS),
            [Scored(*row) for row in ROWS],
            [Ranked(*row, 0) for row in ROWS],
            lambda _: (ir_measures.ScoredDoc(*row) for row in ROWS),
            [RunEntry(q, d, 9, s, "other") for q, d, s in ROWS],
            [types.SimpleNamespace(**row) for row in DICTS],
            [Record(*row) for row in ROWS],
            [DICTS[0], Scored(*ROWS[1]), Record(*ROWS[2])],
            [{**row, "other": object(), "rank": 7} for row in DICTS],
            [{"qid": q, "docid": n, "docno": d, "score": s} for n, (q, d, s) in enumerate(ROWS)],
            FRAME,
            FRAME.set_index("query_id"),
            FRAME.iloc[[1, 0, 2]],
            FRAME.astype({"query_id": "category", "doc_id": "category"}),
            FRAME.astype({"query_id": "string", "doc_id": "string"}),
            FRAME.astype({"score": int}),
            FRAME.astype({"score": "float32"}),
            FRAME.assign(query="x", docid=3, other=[{}, {"a": 1}, None]),
            lambda _: FRAME.itertuples(),
            FRAME.to_dict("records"),
            POLARS,
            POLARS.cast({"query_id": polars.Categorical}),
            POLARS.cast({"score": polars.Decimal(10, 2)}),
            lambda _: POLARS.iter_rows(named=True),
            POLARS.to_arrow(),
            lambda _: POLARS.to_arrow().to_reader(),
            narwhals.from_native(POLARS),
            Run.from_entries("other", ROWS),
            lambda files: files / "a.run",
            lambda files: str(files / "a.run"),
            lambda files: files / "a.run.gz",
            lambda files: files / ".hidden",
            lambda files: files / "c.tmp",
        ],
    ),
    (
        "run",
        BY_NUMBER,
        [
            {1: {5: 1, 6: 2}},
            {np.int64(1): {np.int32(5): 1, np.uint8(6): 2}},
            [{"qid": 1, "docno": np.int64(d), "score": s} for d, s in ((5, 1), (6, 2))],
            {1: {5: 1}, "1": {"6": 2}},
            frame(qid=[1, 1], docno=[5, 6], score=[1, 2]),
            frame(qid=pandas.array([1, 1], "Int64"), docid=[5, 6], score=[1, 2]),
            polars.DataFrame({"query_id": [1, 1], "doc_id": [5, 6], "score": [1, 2]}),
        ],
    ),
    ("run", ONE, [score(np.float16(1)), score(Fraction(1)), lambda files: files / "table.csv"]),
    ("run", [("q1", "d1", float("inf"))], [score(float("inf"))]),
    ("run", [("007", "d1", 1.0)], [polars.DataFrame({"qid": ["007"], "docno": ["d1"], "score": [1.0]})]),
    (
        "runs",
        {"a": ROWS, "b": ONE},
        [
            OrderedDict(a=NESTED, b=score(1)),
            pandas.concat([FRAME.assign(run="a"), scores(1).assign(run="b")]),
            pandas.concat([FRAME.assign(tag="a"), scores(1).assign(tag="b")]),
            pandas.concat([FRAME.assign(run_id="a"), scores(1).assign(run_id="b")])
            .astype("category")
            .astype({"score": float}),
        ],
    ),
    ("runs", {"1": ONE}, [scores(1).assign(run=1)]),
    (
        "runs",
        {"tag": ROWS},
        [
            lambda files: files / "a.run",
            lambda files: str(files / "a.run"),
            lambda files: [files / "a.run.gz"],
            lambda files: (path for path in [files / "a.run"]),
            lambda files: [files / "a.run", str(files / "a.run")],
            Run.from_entries("tag", ROWS),
            [RunEntry(q, d, 9, s, "tag") for q, d, s in ROWS],
        ],
    ),
    ("runs", {"hidden": ROWS, "unfinished": ROWS}, [lambda files: [files / ".hidden", files / "c.tmp"]]),
    ("runs", {"a.run": ONE, "a": ROWS}, [{"a": NESTED, "a.run": score(1)}]),
    (
        "bank",
        [Item("q1", "", "what?"), Item("q2", "", "how?")],
        [
            {"q1": ["what?"], "q2": ("how?",)},
            lambda _: {"q1": (text for text in ["what?"]), "q2": {"how?"}},
            {"q1": [{"text": "what?"}], "q2": [OrderedDict(question="how?")]},
            {"q1": ["what?", " "], "q2": ["how?"]},
            [{"query_id": q, "question": text} for q, [text] in list(BANK.items())[:2]],
            [types.SimpleNamespace(qid=q, question=BANK[q][0]) for q in ("q1", "q2")],
            [
                {"query_id": "q1", "questions": [{"question_text": "what?"}]},
                {"query_id": "q2", "items": [{"text": "how?"}], "other": 1},
            ],
            [{"query_id": q, "item_id": None, "text": BANK[q][0]} for q in ("q1", "q2")],
            frame(query_id=["q1", "q2"], question=["what?", "how?"]).astype("category"),
            polars.DataFrame({"query_id": ["q1", "q2"], "question": ["what?", "how?"]}),
            lambda files: [files / "bank.jsonl", str(files / "second.jsonl")],
            lambda files: (files / f"{n}.jsonl" for n in ("bank", "second")),
            lambda files: [files / "bank.jsonl.gz", files / "second.jsonl"],
        ],
    ),
    (
        "bank",
        [Item("q1", "i", "what?")],
        [
            {"q1": [{"text": "what?", "id": "i"}]},
            {"q1": [{"question": "what?", "item_id": "i"}]},
            [{"query_id": "q1", "question_text": "what?", "question_id": "i"}],
            [{"query_id": "q1", "qid": "i", "question": "what?", "text": "other"}],
            [{"query_id": "q1", "item_id": "i", "text": "what?", "other": 1}],
            [Item("q1", "i", "what?"), {"query_id": "q9", "question": "in no run?"}],
            [Item("q1", "i", "what?"), Item("q1", "j", "who?", retired=True)],
            polars.DataFrame({"query_id": ["q1"], "item_id": ["i"], "text": ["what?"]}),
        ],
    ),
    (
        "bank",
        [Item("q1", "n", "what?", "nugget")],
        [
            {"q1": [{"text": "what?", "kind": "nugget", "id": "n"}]},
            {"q1": [{"nugget_text": "what?", "nugget_id": "n"}]},
            frame(query_id=["q1"], item_id=["n"], text=["what?"], kind=["nugget"]),
        ],
    ),
    (
        "bank",
        [Item("q1", "", "what?", "nugget", importance="okay")],
        [
            [{"qid": "q1", "nuggets": [{"text": "what?", "importance": "okay"}]}],
            [{"query_id": "q1", "nugget": "what?", "importance": "okay"}],
        ],
    ),
    (
        "bank",
        [Item("q1", "", "what?", weight=2.0), Item("q2", "", "how?", gold_answers=("x",))],
        [
            frame(
                qid=["q1", "q2"],
                question=["what?", "how?"],
                weight=[2.0, None],
                gold_answers=[None, ["x"]],
                nugget=[None, None],
            )
        ],
    ),
    ("bank", [FULL], [[FULL], lambda _: iter([FULL])]),
    (
        "passages",
        ["one", "three", "two"],
        [
            {**PASSAGES, 7: "seven"},
            {d: np.str_(text) for d, text in PASSAGES.items()},
            [{"docid": 1, "docno": d, "text": text} for d, text in PASSAGES.items()],
            lambda _: ({"id": d, "contents": text} for d, text in PASSAGES.items()),
            [{"docid": d, "segment": text} for d, text in PASSAGES.items()],
            [{"doc_id": d, "title": "T", "text": text} for d, text in PASSAGES.items()],
            [Passage(*row) for row in PASSAGES.items()],
            [Passage(*row) for row in PASSAGES.items()] + [Passage("d1", "one")],
            frame(docno=list(PASSAGES), text=list(PASSAGES.values())),
            frame(docno=list(PASSAGES), text=list(PASSAGES.values())).astype("category"),
            polars.DataFrame({"docid": list(PASSAGES), "text": list(PASSAGES.values())}),
        ],
    ),
    (
        "passages",
        ["one"],
        [
            {"d1": "one", "d2": None, "d3": " "},
            [{"doc_id": "d1", "text": "one"}, {"doc_id": "d2"}],
            frame(docno=["d1", "d2"], text=["one", float("nan")]),
            polars.DataFrame({"docid": ["d1", "d2"], "text": ["one", None]}),
            [Passage("d1", "one"), Passage("d1", "uno")],
            lambda files: files / "passages.jsonl",
            lambda files: str(files / "passages.jsonl.gz"),
        ],
    ),
    (
        "queries",
        {"q1": "first"},
        [
            {"q1": "first"},
            [{"query_id": "q1", "text": "first", "query": "no"}],
            frame(qid=["q1"], query=["first"]),
            [{"qid": "q1", "title": "first"}],
            lambda _: (Query("q1", "first") for _ in range(1)),
            polars.DataFrame({"qid": ["q1"], "query": ["first"]}),
            lambda files: str(files / "queries.tsv"),
        ],
    ),
    ("queries", {"1": "first"}, [{1: "first"}, frame(qid=[1], query=["first"])]),
    ("queries", {"q1": "a\tb\nc"}, [{"q1": "a\tb\nc"}]),
    (
        "official",
        [Qrel("q1", "d1", 1)],
        [
            {"q1": {"d1": 1}},
            {"q1": {"d1": np.int8(1)}},
            [{"query_id": "q1", "doc_id": "d1", "relevance": 1, "label": 2}],
            lambda _: (ir_measures.Qrel("q1", "d1", 1) for _ in range(1)),
            [{"qid": "q1", "docno": "d1", "label": 1.0, "iteration": 0}],
            frame(qid=["q1"], docno=["d1"], label=[1.0]),
            polars.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "relevance": [1]}),
            lambda files: files / "qrels.txt",
            lambda files: str(files / "qrels.txt.gz"),
        ],
    ),
    ("official", [Qrel("1", "2", -1)], [frame(qid=[1], docno=[2], label=[-1])]),
    (
        "official",
        [Qrel("q1", "d1", 1, "3"), Qrel("q1", "d1", 1, "4")],
        [[Qrel("q1", "d1", 1, "4"), Qrel("q1", "d1", 1, "3")]],
    ),
    (
        "recorded",
        [("q1", "i", 4)],
        [
            [{"query_id": "q1", "doc_id": "d1", "item_id": "i", "rating": np.int64(4), "other": 1}],
            lambda _: (RecordedGrade("q1", "d1", "i", 4, "", "m", "p", "") for _ in range(1)),
            frame(query_id=["q1"], doc_id=["d1"], item_id=["i"], rating=[4], answer=[None]),
            polars.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "item_id": ["i"], "rating": [4]}),
        ],
    ),
    ("recorded", [("q1", "i", None)], [[{"query_id": "q1", "doc_id": "d1", "item_id": "i", "rating": None}]]),
]


@pytest.mark.parametrize(
    ("argument", "expected", "form"),
    [
        pytest.param(argument, expected, form, id=argument)
        for argument, expected, forms in ACCEPTED
        for form in forms
    ],
)
def test_a_form_is_read(argument: str, expected: Any, form: Any, files: Path) -> None:
    assert read(argument, form(files) if callable(form) else form) == expected


#: Argument, message, and the forms that are refused.
REFUSED: list[tuple[str, str, list[Any]]] = [
    (
        "run",
        "^run 'a': row 1: the score of 'd1' for query 'q1' is not a number: ",
        [
            score("2.0"),
            [{**DICTS[0], "score": "2"}],
            scores("1", "2"),
            score(b"2"),
            score(True),
            score(np.True_),
            scores(True, False),
            score(float("nan")),
            score(np.float32("nan")),
            score(Decimal("sNaN")),
            score(None),
            score(pandas.NA),
            score(1j),
            score(10**400),
        ],
    ),
    (
        "run",
        "^run 'a': row 2: the score of 'd2' for query 'q1' is not a number: (nan|None; the row has )",
        [
            scores(1.0, float("nan")),
            polars.from_pandas(scores(1.0, 2.0)).with_columns(score=polars.Series([1.0, float("nan")])),
            [DICTS[0], {"query_id": "q1", "doc_id": "d2"}],
        ],
    ),
    (
        "run",
        "^run 'a': row 1: .*query_id.* is not an id: .*; write ids as text$",
        [
            {True: {"d1": 1}},
            {1.0: {"d1": 1}},
            {"": {"d1": 1}},
            {" ": {"d1": 1}},
            [{"query_id": 1.0, "doc_id": "d1", "score": 1}],
        ],
    ),
    (
        "run",
        "^run 'a': row 1: \"qid\" is not an id: 1.0; write ids as text$",
        [frame(qid=[1.0], docno=["d1"], score=[1])],
    ),
    (
        "run",
        "^run 'a': row 2: no .* in it$",
        [
            {"q1": {"d1": 1, None: 2}},
            frame(query_id=["q1", "q1"], doc_id=["d1", None], score=[1, 2]),
            frame(query_id=["q1", float("nan")], doc_id=["d1", "d2"], score=[1, 2]),
            polars.DataFrame({"qid": ["q1", None], "docno": ["d", "e"], "score": [1, 2]}),
            [DICTS[0], {"query_id": "q1", "score": 1}],
            [DICTS[0], {}],
        ],
    ),
    (
        "run",
        "^run 'a': document 'd1' occurs twice for query 'q1'$",
        [[DICTS[0], DICTS[0]], pandas.concat([FRAME, FRAME])],
    ),
    ("run", "^run 'a': document '1' occurs twice for query 'q1'$", [{"q1": {1: 1, "1": 2}}]),
    (
        "run",
        "^run 'a': (query|document) id '.*' is empty or has white space",
        [{"q 1": {"d1": 1}}, {"q1": {"d\n1": 1}}],
    ),
    ("run", "^run 'a': no rows$", [[], lambda _: iter(()), FRAME.head(0), POLARS.head(0), {"q1": {}}]),
    (
        "run",
        "^run 'a': a dict must be query_id -> doc_id -> score; see query 'q2'",
        [{**NESTED, "q2": ["d1"]}, {**NESTED, "q2": 1}],
    ),
    (
        "run",
        "^run 'a': row 1: neither a dict nor a record with names: ",
        [ROWS, ["a.run"], np.array([[1, 2]]), LINES.encode(), [None]],
    ),
    ("run", "^run 'a': not a file, a data frame or a list of records, but ", [5, None, POLARS.lazy()]),
    ("run", "but LazyFrame; collect\\(\\) it$", [POLARS.lazy()]),
    (
        "run",
        "^run 'a': row 1: the score of 'd1' for query 'q1' is not a number: None; the row has query_id, ",
        [FRAME.drop(columns="score"), [{"query_id": "q1", "doc_id": "d1"}]],
    ),
    (
        "run",
        '^run \'a\': row 1: no "query_id" or "qid" in it$',
        [[{"Query_ID": "q1", "doc_id": "d1", "score": 1}], [{}], {None: {"d1": 1}}],
    ),
    (
        "run",
        "^run 'a': the data frame cannot be read: .*[cC]olumn",
        [
            frame(query_id=["q1", 2], doc_id=["d1", "d2"], score=[1, 2]),
            scores(1, "2"),
            pandas.concat([FRAME, FRAME[["score"]]], axis=1),
        ],
    ),
    ("run", "^FILES/empty.run: the file is empty$", [lambda files: files / "empty.run"]),
    ("run", "^FILES/bad.run:1: the score \\(column 5\\) is not a number", [lambda f: f / "bad.run"]),
    ("run", "^FILES/twice.run:2: document 'd1' occurs twice", [lambda files: str(files / "twice.run")]),
    ("run", "^FILES/none.run: no such file$", [lambda files: str(files / "none.run")]),
    ("run", "^FILES: is a folder, not a file$", [lambda files: files]),
    ("run", "^FILES/qrels.txt:1: has 4 columns", [lambda files: files / "qrels.txt"]),
    (
        "runs",
        "^FILES/two.jsonl: responses of 2 runs",
        [lambda files: files / "two.jsonl", lambda files: {"rag": files / "two.jsonl"}],
    ),
    ("runs", "^FILES/none.run: no such file$", [lambda files: [files / "a.run", files / "none.run"]]),
    ("runs", "^FILES/bad.run:1: the score", [lambda files: files / "bad.run"]),
    ("runs", "^the name of a run is not text: ", [{1: NESTED}, {None: NESTED}]),
    ("runs", "^runs: this dict is one run, ", [NESTED, score(np.float32(1))]),
    (
        "runs",
        "^run 'b': row 1: the score of 'd1' for query 'q1' is not a number: 'x'$",
        [{"a": NESTED, "b": score("x")}],
    ),
    ("runs", "^run 'b': document 'd1' occurs twice", [pandas.concat([scores(1), scores(1)]).assign(run="b")]),
    (
        "runs",
        '^runs: .*; give {"NAME": run}, ',
        [
            None,
            3,
            {},
            [],
            lambda _: iter(()),
            [Run.from_entries("a", ROWS)],
            FRAME,
            FRAME.assign(run="a").head(0),
            lambda files: [files / "a.run", NESTED],
        ],
    ),
    ("runs", '^runs: row 2: no "run" or "tag" or "run_id" in it; give', [FRAME.assign(run=["a", None, "a"])]),
    ("runs", '^runs: row 1: "run" is not an id: 1.5; write ids as text', [FRAME.assign(run=1.5)]),
    (
        "bank",
        "^bank: give a list of questions for query 'q1', not ",
        [{"q1": "what?"}, {"q1": {"text": "what?"}}, {"q1": 3}],
    ),
    (
        "bank",
        "^bank: row 1: an item of query 'q1' is not a JSON object",
        [{"q1": [3]}, {"q1": [("i", "what?")]}],
    ),
    ("bank", "^bank: row 1: query 'q1' has no questions or items", [{"q1": []}]),
    ("bank", "^bank: row 1: item id '.*' occurs twice", [{"q1": ["what?", "what?"]}]),
    ("bank", "^bank: row 1: .* occurs twice", [[Item("q1", "i", "what?")] * 2]),
    ("bank", "^bank: the importance of item 'i' is neither", [[Item("q1", "i", "x", importance="y")]]),
    (
        "bank",
        "^bank: row 2: a question of query 'q2' has no text",
        [
            [{"query_id": "q1", "question": "what?"}, {"query_id": "q2"}],
            frame(query_id=["q1", "q2"], question=["what?", float("nan")]),
        ],
    ),
    (
        "bank",
        '^bank: row 2: no "query_id" in it$',
        [polars.DataFrame({"query_id": ["q1", None], "question": ["what?", "how?"]})],
    ),
    (
        "bank",
        "^bank: .*not JSON serializable: set$",
        [[{"query_id": "q1", "question": "x", "gold_answers": {"a"}}]],
    ),
    ("bank", "^bank: row 1: neither a dict nor", [[("q1", "what?")], Item("q1", "i", "x")]),
    ("bank", "^bank: no rows$", [{}, [], frame(query_id=[], question=[])]),
    ("bank", "^bank: not a file, .* but LazyFrame; collect\\(\\) it", [POLARS.lazy()]),
    ("bank", "bad.jsonl:1: a question of query 'q1' has no text", [lambda files: files / "bad.jsonl"]),
    ("bank", "^FILES/qrels.txt: looks like qrels", [lambda files: [files / "qrels.txt"]]),
    ("bank", "^FILES: is a folder", [lambda files: files]),
    ("bank", "^FILES/none: no such file$", [lambda files: str(files / "none")]),
    ("passages", "^passages: no rows$", [{}, []]),
    (
        "passages",
        '^passages: row 1: no "doc_id" or "docno" or "docid" or "id" in it$',
        [{None: "x"}, [{"text": "x"}]],
    ),
    ("passages", '^passages: row 2: no "doc_id" or', [[{"doc_id": "d1", "text": "x"}, {"text": "y"}]]),
    ("passages", "^passages: no row has a text or contents or segment$", [[{"doc_id": "d"}]]),
    (
        "passages",
        "^passages: row 1: neither a dict nor",
        [list(PASSAGES.items()), lambda f: [f / "passages.jsonl"]],
    ),
    ("passages", "^passages: .*not JSON serializable: bytes", [{"d1": b"one"}]),
    ("passages", "^passages: not a file, .* but int", [5]),
    ("passages", "^FILES/none: no such file$", [lambda files: files / "none"]),
    ("queries", "^queries: no row has a text or query or title$", [frame(qid=["q1"])]),
    ("queries", "^queries: row 1: neither a dict nor", [[("q1", "x")]]),
    ("queries", "^queries: no rows$", [{}]),
    ("queries", "^FILES/none: no such file$", [lambda files: files / "none"]),
    (
        "official",
        "^official: row [12]: the relevance or label of 'd1' for query 'q1' is not a whole number: ",
        [
            score(0.5),
            score(float("inf")),
            score(float("nan")),
            score(True),
            score("1"),
            score(None),
            [{"qid": "q1", "docno": "d1"}],
            frame(qid=["q1"], docno=["d1"], label=["1"]),
            frame(qid=["q1", "q1"], docno=["d0", "d1"], label=[1.0, float("nan")]),
            [Qrel("q1", "d2", 1), {"query_id": "q1", "doc_id": "d1"}],
        ],
    ),
    ("official", "^official: document 'd1' occurs twice for query 'q1'$", [[Qrel("q1", "d1", 1)] * 2]),
    ("official", "^official: query id 'q 1' is empty or has white space", [{"q 1": {"d1": 1}}]),
    ("official", '^official: row 1: no "query_id" or "qid" in it$', [{None: {"d1": 1}}]),
    ("official", "^official: a dict must be query_id -> doc_id -> ", [{"d1": 1}, {"q1": ["d1"]}]),
    ("official", "^official: row 1: neither a dict nor", [[("q1", "d1", 1)]]),
    ("official", "^official: no rows$", [{}, [], {"q1": {}}]),
    ("official", "^FILES/none: no such file$", [lambda files: files / "none"]),
    ("recorded", "^recorded: no rows$", [[]]),
    (
        "recorded",
        "^recorded.*1.* the rating is neither 0..5 nor null: ",
        [
            [{"query_id": "q1", "doc_id": "d1", "item_id": "i", "rating": 9}],
            frame(query_id=["q1"], doc_id=["d1"], item_id=["i"], rating=[4.0]),
        ],
    ),
    (
        "recorded",
        "^recorded.*1.* in none of the supported formats",
        [[{"query_id": "q1", "doc_id": "d1", "rating": 4}]],
    ),
    ("recorded", "^recorded: row 1: neither a dict nor", [[("q1", "d1", "i", 4)]]),
    ("recorded", "^recorded: not a file, a data frame or a list of records, but dict$", [{"q1": 1}]),
    ("recorded", "^FILES/none: no such file$", [lambda files: files / "none"]),
]


@pytest.mark.parametrize(
    ("argument", "message", "form"),
    [
        pytest.param(argument, message, form, id=f"{argument} {message:.40}")
        for argument, message, forms in REFUSED
        for form in forms
    ],
)
def test_a_form_is_refused_by_the_name_of_its_argument(
    argument: str, message: str, form: Any, files: Path
) -> None:
    with pytest.raises(TrecexamError, match=message.replace("FILES", str(files))) as error:
        read(argument, form(files) if callable(form) else form)
    assert "\n" not in str(error.value)
