from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from text_files import put_rows

import converters
from converters import ConversionError
from converters.bank import read_bank, read_bank_queries
from converters.records import Item, Origin
from trecexam.extensions.ragval.formats.answers import AnswerRow, judged_lines, read_judged
from trecexam.extensions.ragval.formats.knowledge import read_blocks

GOOD = {"question_id": "b1", "answer": "so it is", "truthfulness": 4.5, "relevance": 5}


def put(tmp_path: Path, *rows: Any, name: str = "sys.jsonl") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def judged(*paths: Path) -> tuple[list[AnswerRow], list[tuple[str, int | None, str]]]:
    """The rows that are read, and (file, line, reason) of those that are skipped."""
    errors: list[ConversionError] = []
    rows = list(read_judged(paths, errors.append))
    return rows, [(Path(error.path).name, error.line, error.reason) for error in errors]


def test_a_line_gives_its_fields_and_the_file_gives_the_run_name(tmp_path: Path) -> None:
    path = put(tmp_path, {**GOOD, "question": "why?", "n_input_tokens": 7})
    ((row,), errors) = judged(path)
    assert row == AnswerRow("b1", "so it is", "sys", "why?", 7, None, 4.5, 5.0, "ok")
    assert errors == []


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".JSONL.GZ", ".json", ".gz", ""])
def test_a_run_without_a_name_is_named_by_its_file_without_extensions(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"K_f.naive_rag{ending}"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert [row.run_id for row in judged(path)[0]] == ["K_f.naive_rag"]


def test_files_of_one_name_must_say_which_system_a_line_is_of(tmp_path: Path) -> None:
    paths = [put(tmp_path, GOOD, {**GOOD, "run_id": name}, name=f"{name}/judged.jsonl") for name in "ab"]
    rows, errors = judged(*paths)
    assert [row.run_id for row in rows] == ["a", "b"]
    assert [(line, reason) for _, line, reason in errors] == [
        (1, "no run_id, and 2 files are called judged: rename them")
    ] * 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (json.dumps(GOOD)[:-4], "not valid JSON"),
        ("[4, 5]", "not a JSON object"),
        (json.dumps({**GOOD, "truthfulness": float("nan")}), "not valid JSON"),
        ({**GOOD, "question_id": " "}, '"question_id" is not an id'),
        ({**GOOD, "run_id": ["x"]}, '"run_id" is not an id'),
        ({**GOOD, "answer": 3}, '"answer" is not text: 3'),
    ],
)
def test_a_bad_line_is_reported_and_the_others_are_read(tmp_path: Path, line: Any, reason: str) -> None:
    path = put(tmp_path, {**GOOD, "question_id": "b0"}, line, GOOD)
    rows, errors = judged(path)
    assert [row.question_id for row in rows] == ["b0", "b1"]
    ((file, number, said),) = errors
    assert (file, number) == ("sys.jsonl", 2)
    assert reason in said


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**GOOD, "truthfulness": 0}, '"truthfulness" is 0: give a number from 1 to 5'),
        ({**GOOD, "relevance": 5.5}, '"relevance" is 5.5: give a number from 1 to 5'),
        ({**GOOD, "relevance": True}, '"relevance" is true: give a number'),
        ({**GOOD, "truthfulness": "4"}, '"truthfulness" is "4": give a number'),
        ({**GOOD, "truthfulness": [4]}, '"truthfulness" is [4]: give a number'),
    ],
)
def test_an_answer_with_an_invalid_score_is_reported_and_unparsed(
    tmp_path: Path, line: Any, reason: str
) -> None:
    path = put(tmp_path, line, {**GOOD, "question_id": "b2"})
    rows, ((file, number, said),) = judged(path)
    assert [(row.question_id, row.status, row.truthfulness, row.relevance) for row in rows] == [
        ("b1", "unparsed", None, None),
        ("b2", "ok", 4.5, 5.0),
    ]
    assert (file, number) == ("sys.jsonl", 1)
    assert reason in said
    assert said.endswith("the answer counts as unparsed")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"truthfulness": None, "relevance": None}, "unparsed"),
        ({"relevance": None}, "unparsed"),
        ({"status": "unparsed"}, "unparsed"),
        ({"status": "unparsed", "truthfulness": 0, "relevance": -1}, "unparsed"),
        ({"status": "refused"}, "refused"),
        ({"status": "error"}, "error"),
    ],
)
def test_a_judgment_without_both_scores_gives_no_score_and_no_error(
    tmp_path: Path, change: dict[str, Any], status: str
) -> None:
    ((row,), errors) = judged(put(tmp_path, {**GOOD, **change}))
    assert (row.status, row.truthfulness, row.relevance, errors) == (status, None, None, [])


def test_a_question_answered_before_is_rejected_in_any_file(tmp_path: Path) -> None:
    first = put(tmp_path, {**GOOD, "run_id": "x"}, {**GOOD, "run_id": "y"}, name="one.jsonl")
    second = put(
        tmp_path, {**GOOD, "run_id": "x", "truthfulness": 1}, {**GOOD, "run_id": "z"}, name="two.jsonl"
    )
    rows, errors = judged(first, second)
    assert [(row.run_id, row.truthfulness) for row in rows] == [("x", 4.5), ("y", 4.5), ("z", 4.5)]
    ((file, line, reason),) = errors
    assert (file, line) == ("two.jsonl", 1)
    assert f"question 'b1' has two answers of run 'x'; the first, at {first}:1" in reason


@pytest.mark.parametrize("count", [-1, 1.5, "12", False])
def test_an_answer_with_an_invalid_token_count_is_reported_and_kept(tmp_path: Path, count: Any) -> None:
    path = put(tmp_path, {**GOOD, "n_input_tokens": 3, "n_output_tokens": count}, {**GOOD, "question_id": 2})
    rows, ((_, number, said),) = judged(path)
    assert [(row.n_input_tokens, row.n_output_tokens, row.relevance) for row in rows] == [
        (3, None, 5.0),
        (None, None, 5.0),
    ]
    assert number == 1
    assert said.startswith(f'"n_output_tokens" is {json.dumps(count)}: give a whole number')


def test_without_ids_questions_are_identified_by_text_and_none_is_lost(tmp_path: Path) -> None:
    row = {"question": "why?", "truthfulness": 1, "relevance": 2}
    rows, errors = judged(
        put(tmp_path, row, {**row, "truthfulness": 3}, {"truthfulness": 5, "relevance": 5}, row)
    )
    assert errors == []
    assert [(one.question_id, one.truthfulness) for one in rows] == [
        ("why?", 1.0), ("why? (2)", 3.0), ("", 5.0), ("why? (3)", 1.0)
    ]  # fmt: skip


def test_a_truncated_file_is_reported_and_its_earlier_lines_are_kept(tmp_path: Path) -> None:
    packed = gzip.compress(
        "".join(json.dumps({**GOOD, "question_id": n}) + "\n" for n in range(5000)).encode()
    )
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-40])
    (tmp_path / "nul.jsonl").write_bytes(
        json.dumps(GOOD).encode() + b"\n\0\0\0\n" + json.dumps(GOOD).encode()
    )
    (tmp_path / "empty.jsonl").write_bytes(b"")
    rows, errors = judged(tmp_path / "cut.jsonl.gz", tmp_path / "nul.jsonl", tmp_path / "empty.jsonl")
    assert sum(row.run_id == "cut" for row in rows) > 1000
    assert [row.question_id for row in rows if row.run_id == "nul"] == ["b1"]
    (cut, nul, empty) = errors
    assert "the gzip data ends early" in cut[2]
    assert nul[:2] == ("nul.jsonl", 2)
    assert nul[2].endswith("nothing from here on was read")
    assert empty == ("empty.jsonl", None, "the file is empty")


names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).filter(str.strip)
tokens = st.none() | st.integers(0, 2**53)
finite = st.floats(allow_nan=False, allow_infinity=False)
scores = st.floats(1, 5) | st.integers(1, 5).map(float)


@st.composite
def rows_of_runs(draw: Callable[..., Any]) -> list[AnswerRow]:
    keys = draw(st.lists(st.tuples(names, names), max_size=4, unique=True))
    found = []
    for run_id, question_id in keys:
        status = draw(st.sampled_from(["ok", "ok", "unparsed", "refused", "error"]))
        both = (draw(scores), draw(scores)) if status == "ok" else (None, None)
        about = (draw(st.text(max_size=9).filter(str.isprintable)), draw(names), draw(tokens), draw(tokens))
        found.append(AnswerRow(question_id, about[0], run_id, about[1], about[2], about[3], *both, status))
    return found


@given(rows_of_runs())
def test_written_answers_are_read_back(tmp_path: Path, rows: list[AnswerRow]) -> None:
    (tmp_path / "f.jsonl").write_bytes(judged_lines(rows) or b"\n")
    found, errors = judged(tmp_path / "f.jsonl")
    assert found == rows
    assert len(errors) == (not rows)


@given(
    st.lists(
        st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"").replace(b"\0", b""))
        | st.fixed_dictionaries(
            {},
            optional={
                key: st.none() | st.booleans() | st.integers() | finite | names
                for key in ("question_id", "run_id", "question", "answer", "truthfulness", "relevance",
                            "status", "n_input_tokens")
            },
        ).map(lambda row: json.dumps(row).encode()),
        max_size=8,
    )
)  # fmt: skip
def test_each_line_gives_an_answer_or_an_error(tmp_path: Path, lines: list[bytes]) -> None:
    (tmp_path / "f.jsonl").write_bytes(b"\n".join([json.dumps(GOOD).encode(), *lines]))
    rows, errors = judged(tmp_path / "f.jsonl")
    filled = sum(bool(line.strip()) for line in lines) + 1
    if (tmp_path / "f.jsonl").read_bytes()[:2] != b"\x1f\x8b":
        lesser = sum(
            reason.endswith(("the answer counts as unparsed", "the answer counts without it"))
            for _, _, reason in errors
        )
        assert len(rows) + len(errors) - lesser == filled
    assert all(line is not None for _, line, _ in errors)
    for row in rows:
        assert (row.status == "ok") == (row.truthfulness is not None) == (row.relevance is not None)
        assert row.truthfulness is None or 1 <= row.truthfulness <= 5
    keys = [(row.run_id, row.question_id) for row in rows if row.question_id]
    assert len(set(keys)) == len(keys)


ORIGIN = {"prompt": "p", "model": "m", "seed": 3, "time": "t", "text": "Why?"}


def test_a_block_needs_only_its_content(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "blocks.jsonl",
        {"title": "T", "content": "Heat rises.", "url": "u", "date": 2023, "lang": ["en"]},
        {"id": 7, "content": "Cold sinks."},
        {"doc_id": "a b", "content": "Air moves."},
        {"content": "Heat rises."},
    )
    assert converters.sniff(path) == "knowledge"
    blocks = list(converters.read(path))
    assert [block.block_id for block in blocks] == [
        f"block/{hashlib.md5(b'Heat rises.').hexdigest()}",
        "7",
        "a%20b",
        blocks[0].block_id,
    ]
    assert [block.number for block in blocks] == [1, 2, 3, 4]
    assert blocks[0].row["lang"] == ["en"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"title": "T"}], r":1: the block has no text"),
        ([{"content": "  "}], r":1: the block has no text"),
        ([{"content": 3}], r':1: "content" of the block is not text'),
        ([{"content": "a", "id": ""}], r':1: "id" is not an id'),
        (
            [{"content": "a", "id": 1}, {"content": "b", "id": 1}],
            r":2: block '1' is on line 1 with other",
        ),
        (["{"], r":1: not valid JSON"),
        ([], "empty"),
    ],
)
def test_a_line_that_is_not_a_block_is_reported_with_its_number(
    tmp_path: Path, rows: list[Any], reason: str
) -> None:
    with pytest.raises(ConversionError, match=reason):
        list(read_blocks(put_rows(tmp_path / "b.jsonl", *rows)))


def test_a_question_is_a_query_with_two_items_that_are_not_written_as_another_form(tmp_path: Path) -> None:
    row = {"question_id": "k1/1", "question": "Why?", "content": "Heat.", "title": "T", "origin": ORIGIN}
    path = put_rows(tmp_path / "bank.questions.jsonl", row, {**row, "question_id": "k2/1", "retired": True})
    assert converters.sniff(path) == "bank"
    items = list(converters.read(path))
    origin = Origin(**ORIGIN)
    assert items[:2] == [
        Item("k1/1", f"k1/1/{kind}", "Why?", kind, ("Heat.",), origin=origin)
        for kind in ("truthfulness", "relevance")
    ]
    assert [item.retired for item in items] == [False, False, True, True]
    assert dict(read_bank_queries(path)) == {"k1/1": "Why?", "k2/1": "Why?"}
    with pytest.raises(ValueError, match="of the kind truthfulness is not written: copy the file"):
        converters.write(items, tmp_path / "again.jsonl", "bank")


def test_questions_can_be_in_a_bank_with_other_items(tmp_path: Path) -> None:
    path = put_rows(
        tmp_path / "bank.jsonl",
        {"question_id": "q1", "question": "Why?", "content": "Heat."},
        {"query_id": "q1", "questions": [{"question_id": "q1/1", "question_text": "And how?"}]},
    )
    items = list(read_bank(path))
    assert [item.kind for item in items] == ["truthfulness", "relevance", "question"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question_id": "a b", "question": "Why?", "content": "Heat."}, "white space"),
        ({"question": 3, "content": "Heat."}, "not text"),
        ({"question": "Why?", "content": ""}, "no text"),
        ({"question": "Why?", "content": "Heat.", "retired": "yes"}, "neither true nor false"),
        ({"question": "Why?", "content": "Heat.", "origin": {"seed": "x"}}, "not a whole number"),
    ],
)
def test_a_line_that_is_not_a_question_is_reported_with_its_number(
    tmp_path: Path, row: Any, reason: str
) -> None:
    with pytest.raises(ConversionError, match=rf":1: .*{reason}"):
        list(read_bank(put_rows(tmp_path / "b.jsonl", row)))


def test_a_duplicate_question_counts_once_and_an_id_belongs_to_one_question(tmp_path: Path) -> None:
    row = {"question": "Why?", "content": "Heat."}
    said: list[ConversionError] = []
    items = list(read_bank(put_rows(tmp_path / "b.jsonl", row, {**row, "answer": "Because."}), said.append))
    assert len(items) == 2
    assert [(error.line, "occurs twice" in error.reason) for error in said] == [(2, True)]
    ids = [{**row, "question_id": "q"}, {**row, "question_id": "q", "content": "Cold."}]
    with pytest.raises(ConversionError, match="ids must differ"):
        list(read_bank(put_rows(tmp_path / "c.jsonl", *ids)))


def test_published_answers_can_be_read_as_blocks_and_as_questions() -> None:
    path = outside("ragval/K_f.baseline.jsonl.gz")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [block.content for block in read_blocks(path)] == [row["content"] for row in rows]
    left_out: list[ConversionError] = []
    items = list(read_bank(path, left_out.append))
    # Six of the 256 blocks are duplicates, with their questions.
    assert (len(items), len(left_out)) == (500, 6)
    assert {item.text for item in items} == {row["question"] for row in rows}
