from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import converters
from converters import ConversionError, Item, Origin, Passage, Qrel, Query, RecordedGrade, Run

FORMATS = sorted(known.name for known in converters.formats())

#: Characters allowed in a white-space separated file, and those allowed in JSON.
word = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
line = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" "), min_size=1
).map(lambda s: " ".join(s.split()) or "x")
text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(str.strip)
an_id = text


@pytest.fixture(params=["plain", "packed.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


#: A line that begins with `#` is a comment.
query_ids = word.filter(lambda text: not text.startswith("#"))


@given(st.data(), st.lists(st.tuples(query_ids, word), min_size=1, max_size=30, unique=True))
def test_a_run_survives_a_round_trip(path: Path, data: st.DataObject, pairs: list[tuple[str, str]]) -> None:
    number = st.floats(allow_nan=False, allow_infinity=False)
    scores = data.draw(st.lists(number, min_size=len(pairs), max_size=len(pairs)))
    run = Run.from_entries("tag", [(q, d, s) for (q, d), s in zip(pairs, scores, strict=True)])
    converters.write(run, path, "run")
    again = converters.read(path, "run")
    assert sorted(again) == sorted(run)
    assert {(q, d) for q, d, *_ in again} == set(pairs)


judgments = st.builds(Qrel, query_ids, word, st.integers(-9, 99), st.just("0") | word)


@given(st.lists(judgments, min_size=1, max_size=30, unique_by=lambda r: (r.query_id, r.iteration, r.doc_id)))
def test_qrels_survive_a_round_trip_sorted(path: Path, qrels: list[Qrel]) -> None:
    converters.write(qrels, path, "qrels")
    again = list(converters.read(path, "qrels"))
    assert sorted(again) == sorted(qrels)
    assert [row.query_id for row in again] == sorted(row.query_id for row in qrels)


@given(st.lists(st.builds(Query, word, line), min_size=1, max_size=20, unique_by=lambda q: q.query_id))
def test_queries_survive_a_round_trip(path: Path, queries: list[Query]) -> None:
    converters.write(queries, path, "queries")
    assert list(converters.read(path, "queries")) == queries


@given(st.lists(st.builds(Passage, an_id, text), min_size=1, max_size=20))
def test_passages_survive_a_round_trip(path: Path, passages: list[Passage]) -> None:
    converters.write(passages, path, "passages")
    assert list(converters.read(path, "passages")) == passages


items = st.builds(
    Item,
    an_id,
    an_id,
    text,
    st.sampled_from(["question", "nugget"]),
    st.lists(text, max_size=3).map(tuple),
    st.none() | text,
    st.lists(st.tuples(st.sampled_from("ABCD"), text), max_size=3).map(tuple),
    st.just(""),
    st.sampled_from(["vital", "okay", ""]),
    st.booleans(),
    st.none() | st.builds(Origin, text, text, st.none() | st.integers(-9, 99), text, text, text),
    st.none() | st.floats(-1e9, 1e9).filter(bool),
    st.sampled_from(["", '{"entry":{"question":"q","é":[1,null]},"bank":{}}']),
)


@given(st.lists(items, min_size=1, max_size=15, unique_by=lambda item: item.item_id))
def test_a_bank_survives_a_round_trip_grouped_by_query(path: Path, bank: list[Item]) -> None:
    converters.write(bank, path, "bank")
    order = list(dict.fromkeys(item.query_id for item in bank))
    assert list(converters.read(path, "bank")) == sorted(bank, key=lambda item: order.index(item.query_id))


numbers = st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 6)
recorded = st.builds(
    RecordedGrade,
    an_id,
    an_id,
    an_id,
    st.none() | st.integers(0, 5),
    *[st.text()] * 4,
    st.none() | numbers,
)


@given(st.lists(recorded, min_size=1, max_size=15))
def test_grades_survive_a_round_trip(path: Path, grades: list[RecordedGrade]) -> None:
    converters.write(grades, path, "grades")
    assert list(converters.read(path, "grades")) == grades


def take(path: Path, name: str | None) -> None:
    """Reads a whole file; it may only raise a ConversionError, in one line, with the path."""
    refused: ConversionError | None = None
    try:
        for _ in converters.read(path, name):
            pass
    except ConversionError as error:
        refused = error
    if refused is not None:
        assert refused.path == str(path)
        assert "\n" not in str(refused)
        assert refused.line is None or refused.line >= 1


PIECES = [
    b"q1",
    b"Q0",
    b" ",
    b"\t",
    b"\n",
    b"\r\n",
    b"1",
    b"-2.5",
    b"nan",
    b"{",
    b"}",
    b'"',
    b"[",
    b",",
    b"\v",
]
PIECES += [b"<top>", b"</top>", b"<num>", b"<title>", b"<topic", b' id="1"', b">", b"</topic>", b"&a;"]
PIECES += [b'"query_id":', b'"docid":"a"', b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"\xc2\xa0"]
pieces = st.sampled_from(PIECES)
junk = st.binary(max_size=300) | st.lists(pieces, max_size=60).map(b"".join)


@pytest.mark.parametrize("name", [*FORMATS, None])
@given(content=junk, packed=st.sampled_from(["no", "gzip", "cut"]))
def test_any_bytes_give_records_or_a_conversion_error(
    tmp_path: Path, name: str | None, content: bytes, packed: str
) -> None:
    data = content if packed == "no" else gzip.compress(content)
    (tmp_path / "file").write_bytes(data[:-5] if packed == "cut" else data)
    take(tmp_path / "file", name)


KEYS = ["query_id", "qid", "id", "docid", "doc_id", "item_id", "text", "title", "question", "questions"]
KEYS += ["items", "question_id", "question_text", "nugget_text", "gold_answers", "choices", "correct"]
KEYS += ["facet_id", "rating", "answer", "paragraph_id", "exam_grades", "self_ratings", "self_rating"]
KEYS += ["llm", "prompt_info", "answers", "prompt_class", "query_text", "kind", "nuggets", "importance"]
KEYS += ["assignment", "run_id", "query", "nugget", "retired", "origin", "seed", "rubrics", "criterion"]
KEYS += ["weight", "nugget_bank", "claim_bank", "claim", "metadata", "responses", "citations", "documents"]
KEYS += ["results", "topics", "topic_id", "measure", "value"]
keys = st.sampled_from(KEYS)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 7) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("name", [*FORMATS, None])
@given(rows=st.lists(values, min_size=1, max_size=4))
def test_any_json_gives_records_or_a_conversion_error(
    tmp_path: Path, name: str | None, rows: list[Any]
) -> None:
    (tmp_path / "file").write_text("".join(json.dumps(row) + "\n" for row in rows))
    take(tmp_path / "file", name)
