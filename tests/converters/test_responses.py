from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_files import put_rows

import converters
from converters import Citation, ConversionError, Response, Sentence
from converters.convert import converted
from converters.rag_responses import read_responses
from converters.segment import passage_id, response_passages, response_ranking, segments
from converters.support_labels import SupportLabel, read_support_labels

RAG24 = {
    "run_id": "sys", "topic_id": "2024-1", "topic": "why?", "references": ["a#1", "b/2:3"],
    "response_length": 4,
    "answer": [{"text": "One thing.", "citations": [1, 0]}, {"text": "Another.", "citations": []}],
}  # fmt: skip


def test_trec_rag_2024_cites_by_position(tmp_path: Path) -> None:
    path = put_rows(tmp_path / "mysys.jsonl", RAG24)
    assert converters.sniff(path) == "responses"
    assert list(converters.read(path)) == [
        Response(
            "2024-1",
            "sys",
            (Sentence("One thing.", (Citation("b/2:3"), Citation("a#1"))), Sentence("Another.")),
            "why?",
            ("a#1", "b/2:3"),
        )
    ]


def test_plain_lines_take_their_run_name_from_the_file(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "mysys.jsonl",
        {"query_id": "q1", "response": "A text."},
        {"query_id": "007", "response": "B."},
    )
    found = list(converters.read(path))
    assert [(r.query_id, r.run, r.text) for r in found] == [
        ("q1", "mysys", "A text."),
        ("007", "mysys", "B."),
    ]
    path = put_rows(tmp_path / "mysys.jsonl", {"query_id": "q1", "text": "A text."})
    assert [r.text for r in converters.read(path, "responses")] == ["A text."]
    path = put_rows(tmp_path / "mysys.jsonl", {"prompt": "why?", "response": "So.", "run_id": "x"})
    assert [(r.query_id, r.query_text, r.run) for r in converters.read(path)] == [("", "why?", "x")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**RAG24, "answer": [{"text": "x", "citations": [True]}]}, "neither a place nor an id"),
        ({**RAG24, "answer": [{"text": "x", "citations": "a"}]}, "neither a list nor an object"),
        ({**RAG24, "answer": [{"citations": []}]}, 'entry 0 of "answer" has no text'),
        ({**RAG24, "answer": []}, "has no text"),
        ({**RAG24, "answer": [{"text": "  "}]}, "has no text"),
        ({**RAG24, "references": [1]}, '"references" is not a list of document ids'),
        ({"run_id": "s", "answer": ["x"]}, "no query: a response has"),
        ({"topic_id": "1", "run_id": "s"}, 'no "answer" or "responses" list'),
        ({**RAG24, "topic_id": "2024-0"}, "answers query '2024-0' twice (first on line 1)"),
        ("{", "JSON"),
    ],
)
def test_a_bad_response_is_reported_with_its_line(tmp_path: Path, row: Any, reason: str) -> None:
    good = {**RAG24, "topic_id": "2024-0"}
    with pytest.raises(ConversionError, match=re.escape(reason)) as caught:
        list(read_responses(put_rows(tmp_path / "mysys.jsonl", good, row)))
    assert caught.value.line == 2


def test_a_citation_without_a_reference_is_counted_and_survives_a_round_trip(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = {**RAG24, "answer": [{"text": "x", "citations": [2, 0, -1]}, {"text": "y", "citations": [9]}]}
    (response,) = read_responses(put_rows(tmp_path / "mysys.jsonl", row))
    assert response.sentences == (Sentence("x", (Citation("a#1"),), 2), Sentence("y", (), 1))
    assert "mysys.jsonl:1: citations that name none of the 2 references: 3 (1 such lines)" in caplog.text
    converters.write([response], tmp_path / "out.jsonl", "responses")
    assert list(converters.read(tmp_path / "out.jsonl")) == [response]


def test_a_response_over_a_limit_of_its_track_is_reported(tmp_path: Path) -> None:
    long = {**RAG24, "topic_id": "2024-2", "answer": [{"text": "word " * 401}]}
    many = {**RAG24, "topic_id": "2024-3", "references": [f"d{number}" for number in range(21)]}
    within, *over = read_responses(put_rows(tmp_path / "mysys.jsonl", RAG24, long, many))
    assert within.over == ""
    assert [response.over for response in over] == [
        "401 words, TREC RAG takes 400",
        "21 references, TREC RAG 2024 takes 20",
    ]


def test_truncate_keeps_the_given_number_of_words_and_cuts_within_a_sentence() -> None:
    response = Response("q", "r", (Sentence("a b c", (Citation("d"),)), Sentence(" e  f "), Sentence("g")))
    assert response.truncated(6) == response
    assert response.truncated(4).sentences == (response.sentences[0], Sentence("e"))
    assert response.truncated(3).sentences == response.sentences[:1]
    assert response.truncated(2).sentences == (Sentence("a b", (Citation("d"),)),)


TEXTS = st.lists(
    st.sampled_from(["Dr. Smith went to Washington.", "It cost $3.50!", "no end", "\n\n", "Is it 5 p.m.?",
                     "\u4e2d\u6587\u53e5\u5b50\u3002", "caf\u00e9 \U0001f600", "e.g. this, i.e. that."]),
    max_size=30,
).map(" ".join)  # fmt: skip


def test_a_text_without_clear_sentences_is_split_quickly() -> None:
    began = time.process_time()
    for text in ('\u201c"(' * 50_000, "\u201cword. " * 30_000, "a" * 300_000, "Dr. " * 50_000):
        parts = segments(text)
        assert "".join("".join(parts).split()) == "".join(text.split())
    assert time.process_time() - began < 20


@given(TEXTS, st.integers(1, 40))
def test_segments_hold_every_word_in_order_and_respect_the_limit(text: str, limit: int) -> None:
    parts = segments(text, limit)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() and part for part in parts)
    assert all(len(re.findall(r"\w+|[^\w\s]", part)) <= limit for part in parts)


def test_segments_end_at_sentence_ends_where_a_sentence_is_not_too_long() -> None:
    sentences = [f"Sentence number {n} has these words, e.g. Dr. Smith's." for n in range(100)]
    parts = segments(" ".join(sentences), 100)
    assert len(parts) > 5
    assert all(part.endswith("Smith's.") for part in parts)
    assert len(parts[0].split()) > 40
    assert [len(part.split()) for part in segments("word " * 1000, 400)] == [400, 400, 200]


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_ids_are_unique_and_have_no_white_space(a: str, b: str, c: str, d: str) -> None:
    one, two = passage_id(a, b, 1), passage_id(c, d, 1)
    assert not re.search(r"\s", one)
    assert (one == two) == ((a, b) == (c, d))


def test_a_response_ranks_its_own_segments_or_its_citations() -> None:
    response = Response(
        "q 1",
        "my sys",
        (
            Sentence("A. " * 300, (Citation("y"), Citation("x"))),
            Sentence("B.", (Citation("z"), Citation("y"))),
        ),
    )
    assert [p.doc_id for p in response_passages(response)] == ["my%20sys/q%201/1", "my%20sys/q%201/2"]
    assert [row.doc_id for row in response_ranking(response, "citations")] == ["y", "x", "z"]
    both = response_ranking(response, "both")
    assert [row.doc_id for row in both] == ["my%20sys/q%201/1", "my%20sys/q%201/2", "y", "x", "z"]
    assert [row.score for row in both] == [5, 4, 3, 2, 1]


def test_a_folder_of_texts_is_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "my sys"
    folder.mkdir()
    (folder / "q2.txt").write_text("Two.\n")
    (folder / "q1.txt").write_text("One.\n")
    converters.write(converted(folder, None, "run"), tmp_path / "out.run", "run")
    assert (tmp_path / "out.run").read_text() == (
        "q1 Q0 my%20sys/q1/1 1 1.0 my%20sys\nq2 Q0 my%20sys/q2/1 1 1.0 my%20sys\n"
    )
    (folder / "q3.txt").write_text(" ")
    with pytest.raises(ConversionError, match=r"q3\.txt: the response is empty"):
        list(converted(folder, None, "passages"))
    (folder / "q3.txt").rename(folder / "q3\udcff.txt")
    (folder / "q3\udcff.txt").write_text("Three.")
    with pytest.raises(ConversionError, match="is not a query id; rename it"):
        list(converted(folder, None, "passages"))


# Tables of support labels.


def read(path: Path) -> tuple[list[SupportLabel], list[ConversionError]]:
    errors: list[ConversionError] = []
    return list(read_support_labels(path, errors.append)), errors


def test_labels_are_read_by_column_name(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(
        "label\twho\tdoc_id\tsentence\tquery_id\trun\nfull_support\tA\td 1\t2\tq\tr\nuncited\tA\t\t3\tq\tr\n"
        "no_support\tA\t\t4\tq\tr\n"
    )
    labels, errors = read(path)
    assert labels == [SupportLabel(2, "r", "q", 2, "d 1", 2)]
    assert [(error.line, error.reason) for error in errors] == [
        (4, "'no_support' has no passage: doc_id is empty")
    ]
