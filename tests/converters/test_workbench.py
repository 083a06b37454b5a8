"""The Rubric workbench's pool: lossless round trips, and reports of unusual content."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from text_files import put_rows

import converters
from converters import ConversionError, Qrel, RunEntry
from converters.workbench import read_pool, write_pool
from converters.workbench_records import (
    DirectGrade,
    Judgment,
    PooledGrading,
    PooledPassage,
    Ranking,
    SelfRating,
    prompt_class,
    qrels_of,
    runs_of,
)


@pytest.fixture(scope="module")
def graded() -> Path:
    return outside("dl19/graded.flan-t5-large.jsonl.gz")


@pytest.fixture(scope="module")
def real(graded: Path) -> list[PooledPassage]:
    return list(read_pool(graded))


def paragraph(doc_id: str = "d", **more: Any) -> dict[str, Any]:
    data = {"judgments": [], "rankings": []}
    return {"paragraph_id": doc_id, "text": "t", "paragraph": {}, "paragraph_data": data, **more}


def judged(doc_id: str, query: str, relevance: int, title: str = "q") -> dict[str, Any]:
    return {"paragraphId": doc_id, "query": query, "relevance": relevance, "titleQuery": title}


def ranked(run: str, doc_id: str, rank: int, score: float, query: str = "q") -> dict[str, Any]:
    return {"method": run, "paragraphId": doc_id, "queryId": query, "rank": rank, "score": score}


def written(passages: list[PooledPassage]) -> list[Any]:
    file = io.BytesIO()
    write_pool(passages, file)
    return [json.loads(line) for line in file.getvalue().splitlines()]


@pytest.mark.slow
def test_the_real_graded_pool_is_read_back_completely(graded: Path, tmp_path: Path) -> None:
    target = tmp_path / "again.jsonl.gz"
    converters.write(converters.read(graded, "workbench"), target, "workbench")
    with gzip.open(graded) as before, gzip.open(target) as after:
        for old, new in zip(before, after, strict=True):
            assert new.rstrip(b"\n") == orjson.dumps(orjson.loads(old))


def test_runs_and_judgments_of_the_real_pool_equal_its_files(real: list[PooledPassage]) -> None:
    assert sorted(qrels_of(real)) == sorted(converters.read(outside("dl19/qrels.txt")))
    runs = runs_of(real)
    assert len(runs) == 37
    for name, entries in runs.items():
        lines = outside(f"dl19/runs/{name}.run").read_text().splitlines()
        rows = {(q, d): (int(rank), float(score)) for q, _, d, rank, score, _ in map(str.split, lines)}
        base = int(min(rank for rank, _ in rows.values()) == 0)
        assert {(e.query_id, e.doc_id): (e.rank - base, e.score) for e in entries} == rows


def test_ranks_from_zero_are_kept_and_counted_from_one(tmp_path: Path) -> None:
    places = {"a": [("zero", 0, 3.0), ("one", 2, 1.0)], "b": [("zero", 5, 2.0), ("one", 1, 2.0)]}
    rows = [
        paragraph(
            doc, paragraph_data={"judgments": [], "rankings": [ranked(r, doc, n, s) for r, n, s in found]}
        )
        for doc, found in places.items()
    ]
    path = put_rows(tmp_path / "pool.jsonl", ["q", rows])
    passages = list(read_pool(path))
    assert [r.rank for p in passages for r in p.rankings if r.run == "zero"] == [0, 5]
    assert written(passages) == [["q", rows]]
    assert runs_of(passages) == {
        "zero": [RunEntry("q", "a", 1, 3.0, "zero"), RunEntry("q", "b", 6, 2.0, "zero")],
        "one": [RunEntry("q", "b", 1, 2.0, "one"), RunEntry("q", "a", 2, 1.0, "one")],
    }


def test_differing_duplicate_labels_or_ranks_are_rejected_and_equal_ones_merged() -> None:
    passage = PooledPassage(
        "q", "d", "t", (Judgment("q", "d", 1, "q"),), (Ranking("r", "q", "d", 1, 1.0, "q"),)
    )
    assert qrels_of([passage, passage]) == [Qrel("q", "d", 1)]
    assert runs_of([passage, passage]) == {"r": [RunEntry("q", "d", 1, 1.0, "r")]}
    other = replace(
        passage,
        judgments=(Judgment("q", "d", 2, "q"),),
        rankings=(Ranking("r", "q", "d", 2, 1.0, "q"),),
    )
    with pytest.raises(ValueError, match="document 'd' is judged twice for query 'q': 1 and 2"):
        qrels_of([passage, other])
    with pytest.raises(ValueError, match="run 'r' ranks document 'd' twice for query 'q': 1 and 2"):
        runs_of([passage, other])


def test_unusual_content_is_kept_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grading = {"correctAnswered": [], "wrongAnswered": [], "answers": [], "llm": "m", "llm_options": {},
               "exam_ratio": 0.0, "prompt_info": {"prompt_class": "P"}}  # fmt: skip
    grading |= {"self_ratings": [{"question_id": "q", "self_rating": 1}]}
    other = {**grading, "self_ratings": [{"nugget_id": "n", "self_rating": 1}]}
    rows = [
        ["q1", [paragraph("a"), paragraph("a", exam_grades=[grading, other, grading])]],
        ["q2", []],
        ["q3", [paragraph("a", text=" "), paragraph("b", text="")]],
    ]
    path = put_rows(tmp_path / "pool.jsonl", *rows)
    with caplog.at_level(logging.WARNING, "converters"):
        passages = list(read_pool(path))
    assert written(passages) == [rows[0], rows[2]]
    said = [record.getMessage().removeprefix(f"{path}:") for record in caplog.records]
    assert said == [
        "1: passage 'a' of query 'q1' occurs twice: both are kept (1 such cases)",
        "1: passage 'a' of query 'q1' is graded twice by model 'm' with prompt 'P': both are kept, the "
        "first one counts (1 such cases)",
        "2: query 'q2' left out: it has no passages (1 such cases)",
        "3: passage 'a' of query 'q3' has no text (2 such cases)",
    ]


BAD = [
    (paragraph(paragraph_data={"judgments": 5}), '"judgments" is not a list of JSON objects'),
    (
        paragraph(paragraph_data={"judgments": [judged("d", "q", 1.5)]}),
        '"relevance" is not a whole number: 1.5',
    ),
    (paragraph(paragraph_data={"judgments": [{"query": "q", "relevance": 1}]}), 'no "paragraphId"'),
    (paragraph(paragraph_data={"rankings": [ranked("r", "d", -1, 1.0)]}), "the rank is below 0: -1"),
    (paragraph(paragraph_data={"rankings": [ranked("r", "d", 1, None)]}), 'no "score" in it'),
    (paragraph(exam_grades=[{"answers": [["i"]]}]), '"answers" is not a list of [item id, answer]'),
    (paragraph(exam_grades=[{"self_ratings": [{"self_rating": 1}]}]), 'no "question_id" or "nugget_id"'),
    (paragraph(exam_grades=[{"self_ratings": [{"nugget_id": "i", "self_rating": 6}]}]), "is not 0..5: 6"),
    (paragraph(grades=[{"self_ratings": 9}]), "passage 'd': the rating is not 0..5: 9"),
    (paragraph(grades=[{"correctAnswered": 1}]), '"correctAnswered" is not true or false: 1'),
]  # fmt: skip


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_a_bad_passage_is_reported(tmp_path: Path, row: Any, reason: str) -> None:
    with pytest.raises(ConversionError) as caught:
        list(read_pool(put_rows(tmp_path / "pool.jsonl", ["p", [paragraph()]], ["q", [row]])))
    assert caught.value.line == 2
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("passage", "reason"),
    [
        (PooledPassage("q", "d", "t", rankings=(Ranking("r", "q", "d", 1, float("nan"), "q"),)), "finite"),
        (PooledPassage("q", "d", "t", rest={"x": object()}), "query 'q' cannot be written as JSON"),
    ],
)
def test_records_that_a_pool_cannot_hold_are_not_written(passage: PooledPassage, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        written([passage])


text = st.text(st.characters(codec="utf-8"), max_size=6)
an_id = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(str.strip)
number = st.floats(allow_nan=False, allow_infinity=False)
label = st.none() | st.integers(0, 5)
unknown = st.dictionaries(
    st.sampled_from(["x", "y"]), st.none() | st.integers(0, 9) | st.lists(text), max_size=2
)
info = st.none() | st.dictionaries(st.sampled_from(["prompt_class", "style"]), text, min_size=1)
options = st.dictionaries(text, text, max_size=2)
self_ratings = st.builds(SelfRating, an_id, label, st.sampled_from(["question", "nugget"]), unknown)
gradings = st.builds(
    PooledGrading, text, info, st.lists(st.tuples(text, text), max_size=3).map(tuple),
    st.lists(self_ratings, max_size=3).map(tuple),
    st.lists(text, max_size=2).map(tuple), st.lists(text, max_size=2).map(tuple),
    number, options, options, st.none() | text, label, unknown,
)  # fmt: skip
direct = st.builds(
    DirectGrade,
    text,
    info,
    text,
    label,
    st.booleans(),
    st.none() | text,
    options,
    st.none() | text,
    label,
    unknown,
)


@st.composite
def passages_of_a_pool(draw: st.DrawFn) -> PooledPassage:
    query_id, doc_id = draw(an_id), draw(an_id)
    judgment = st.builds(Judgment, an_id, an_id, st.integers(-2, 4), an_id, unknown)
    ranking = st.builds(Ranking, an_id, an_id, an_id, st.integers(0, 99), number, st.just(query_id), unknown)
    return PooledPassage(
        query_id, doc_id, draw(text),
        *(tuple(draw(st.lists(kind, max_size=2))) for kind in (judgment, ranking, gradings, direct)),
        draw(st.none() | unknown), draw(unknown),
    )  # fmt: skip


@given(pool=st.lists(passages_of_a_pool(), min_size=1, max_size=4))
def test_any_pool_is_read_back(tmp_path: Path, pool: list[PooledPassage]) -> None:
    converters.write(pool, tmp_path / "pool.jsonl.gz", "workbench")
    again = list(read_pool(tmp_path / "pool.jsonl.gz"))
    assert again == pool
    assert written(again) == written(pool)


WHOLE = paragraph(
    paragraph_data={"judgments": [judged("d", "q/f", 1)], "rankings": [ranked("r", "d", 0, 0.5)]},
    exam_grades=[
        {"correctAnswered": ["i"], "wrongAnswered": ["j"], "answers": [["i", "5"]], "llm": "m",
         "llm_options": {}, "llm_response_errors": {}, "exam_ratio": 0.5,
         "prompt_info": {"prompt_class": "P"}, "prompt_type": "question",
         "self_ratings": [{"question_id": "i", "self_rating": 5}], "relevance_label": 5}
    ],
    grades=[
        {"correctAnswered": True, "answer": "Yes", "llm_response_error": None, "llm": "m", "llm_options": {},
         "prompt_info": {}, "self_ratings": 1, "prompt_type": "direct_grading", "relevance_label": 1}
    ],
)  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | number | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=5,
)


@given(data=st.data(), value=anything)
def test_a_pool_with_any_value_anywhere_is_read_and_written_or_rejected(
    tmp_path: Path, data: st.DataObject, value: Any
) -> None:
    row = json.loads(json.dumps(["q", [WHOLE]]))
    place, key = row, 1
    while isinstance(place[key], (list, dict)) and place[key] and data.draw(st.integers(0, 4)):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = value
    passages: list[PooledPassage] = []
    with contextlib.suppress(ConversionError):
        passages.extend(read_pool(put_rows(tmp_path / "pool.jsonl", row)))
    if passages:
        once = written(passages)
        assert written(list(read_pool(put_rows(tmp_path / "pool.jsonl", *once)))) == once


def test_nuggets_direct_grades_nulls_and_unknown_keys_are_read_back(tmp_path: Path) -> None:
    nugget = {"question_id": None, "nugget_id": "n", "self_rating": 3, "why": ["so"]}
    grading = {
        "correctAnswered": ["n"], "wrongAnswered": [], "answers": [["n", "3"]],
        "llm_response_errors": {"m": {}},
        "llm": "m", "llm_options": {}, "exam_ratio": 0.5, "prompt_info": None, "self_ratings": [nugget],
        "prompt_type": "nugget", "relevance_label": 3, "seconds": 1.25,
    }  # fmt: skip
    direct = {
        "correctAnswered": False, "answer": "No", "llm_response_error": None, "llm": "m",
        "llm_options": {"t": 0}, "prompt_info": {"prompt_class": "FagB"}, "self_ratings": 0,
        "prompt_type": "direct_grading", "relevance_label": 0,
    }  # fmt: skip
    data = {"judgments": [judged("d", "q", 0) | {"by": "NIST"}], "rankings": [], "extra": {"a": None}}
    rows = [["q", [paragraph(paragraph_data=data, exam_grades=[grading], grades=[direct], color="blue")]]]
    rows[0][1].append(paragraph("e", exam_grades=None, grades=[], text=None, paragraph=None))
    passages = list(read_pool(put_rows(tmp_path / "pool.jsonl", *rows)))
    first = passages[0]
    assert first.gradings[0].self_ratings == (
        SelfRating("n", 3, "nugget", {"question_id": None, "why": ["so"]}),
    )
    assert (prompt_class(first.gradings[0].prompt_info), first.gradings[0].relevance_label) == ("", 3)
    assert (prompt_class(first.direct[0].prompt_info), first.direct[0].self_rating) == ("FagB", 0)
    assert written(passages) == rows
