"""Readers of invalid and unusual input: all that is there, or a one-line error with path, line and reason."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_files import put

import converters
from converters import ConversionError
from converters.lines import MAX_LINE, iter_lines
from trecexam.files.stamps import Rejected

GOOD = {
    "run": b"q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\n",
    "qrels": b"q1 0 d1 1\nq1 0 d2 0\n",
    "queries": b"q1\tfirst query\nq2\tsecond query\n",
    "passages": b'{"docid": "d1", "text": "one"}\n{"docid": "d2", "text": "two"}\n',
    "bank": b'{"query_id": "q1", "questions": [{"question_id": "a", "question_text": "x?"}]}\n'
    b'{"query_id": "q2", "questions": [{"question_id": "b", "question_text": "y?"}]}\n',
    "rubric": b'["q1", [{"paragraph_id": "d1", "text": "t"}]]\n["q2", []]\n',
    "grades": b'{"query_id": "q1", "doc_id": "d", "item_id": "i", "rating": 3}\n'
    b'{"query_id": "q1", "doc_id": "d", "item_id": "j", "rating": null}\n',
}
GOOD["leaderboard"] = b'{"run1": 1,\n "run2": 2}\n'
FORMATS = sorted(GOOD)
#: Formats in which each line is independent, so that one can be appended.
BY_LINE = [name for name in FORMATS if name != "leaderboard"]


def refused(path: Path, name: str) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, name))
    error = caught.value
    assert error.path == str(path)
    assert "\n" not in str(error)
    assert str(error).startswith(f"{path}:{error.line}: " if error.line else f"{path}: ")
    return error


@pytest.mark.parametrize("name", FORMATS)
def test_gzip_is_recognised_by_content_not_by_name(tmp_path: Path, name: str) -> None:
    plain = put(tmp_path, GOOD[name], "plain.gz")
    packed = put(tmp_path, gzip.compress(GOOD[name]), "packed.txt")
    assert list(converters.read(plain)) == list(converters.read(packed))


@pytest.mark.parametrize("name", FORMATS)
def test_crlf_a_byte_order_mark_and_no_final_newline_make_no_difference(tmp_path: Path, name: str) -> None:
    expected = list(converters.read(put(tmp_path, GOOD[name], "a")))
    changed = b"\xef\xbb\xbf" + GOOD[name].replace(b"\n", b"\r\n").rstrip(b"\r\n")
    assert list(converters.read(put(tmp_path, changed, "b"))) == expected


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", [b"", b"\n", b" \n\t\n"])
def test_an_empty_file_is_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    assert refused(put(tmp_path, content), name).line is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_truncated_gzip_is_rejected(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(GOOD[name] + random.Random(1).randbytes(5000).hex().encode())
    assert "ends early" in refused(put(tmp_path, packed[:-900]), name).reason


@pytest.mark.parametrize("name", BY_LINE)
def test_binary_junk_is_rejected_with_a_line_number(tmp_path: Path, name: str) -> None:
    error = refused(put(tmp_path, GOOD[name] + b"\x00\x01\x02\xff" * 50 + b"\n"), name)
    assert error.line == 3
    assert "NUL" in error.reason


@pytest.mark.parametrize("name", FORMATS)
def test_latin_1_is_rejected_with_a_remedy(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, GOOD[name] + GOOD[name].splitlines()[0].replace(b"1", b"\xe9") + b"\n")
    error = refused(path, name)
    assert error.line == 3
    assert "iconv" in error.reason


@pytest.mark.parametrize("name", FORMATS)
def test_utf_16_is_rejected_with_a_remedy(tmp_path: Path, name: str) -> None:
    error = refused(put(tmp_path, GOOD[name].decode().encode("utf-16")), name)
    assert "UTF-16" in error.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_100_mb_line_is_rejected_in_bounded_memory(tmp_path: Path, name: str) -> None:
    import tracemalloc

    path = tmp_path / "long.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(GOOD[name])
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    error = refused(path, name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.line == 3
    assert "longer than 64 MiB" in error.reason
    assert peak < 3 * MAX_LINE


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_file_and_a_folder_are_rejected(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path / "nowhere", name).reason == "no such file"
    assert "folder" in refused(tmp_path, name).reason


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("run", "q1 Q0 d3 3 high tag", "the score (column 5) is not a number: 'high'"),
        ("run", "q1 Q0 d1 3 0.5 tag", "document 'd1' occurs twice for query 'q1' (first on line 1)"),
        ("qrels", "q1 0 d3", "has 3 columns, a qrels line has 4"),
        ("qrels", "q1 0 d3 999999999", "the label (column 4) is above 1,000,000: '999999999'"),
        ("qrels", "q1 0 d2 1", "document 'd2' is judged twice for query 'q1' (first on line 2)"),
        ("queries", "q3 no tab", "no tab"),
        ("queries", "q3\t ", "query 'q3' has no text"),
        ("queries", "\ttext", "no query id"),
        ("queries", "q2\tagain", "query 'q2' occurs twice (first on line 2)"),
        ("passages", '{"docid": "d3"}', "passage 'd3' has no text"),
        ("passages", '{"text": "x"}', 'no "pid" or "docid" or "doc_id"'),
        ("passages", '{"docid": "d3", "text": 5}', "is not text"),
        ("bank", '{"query_id": "q3", "questions": []}', "query 'q3' has no questions"),
        ("bank", GOOD["bank"].decode().splitlines()[0], "item id 'a' occurs twice (first on line 1)"),
        ("bank", '{"query_id": "q3", "qid": "z", "question": "x?", "choices": 5}', '"choices" must be'),
        ("rubric", '{"query_id": "q3"}', "as graded pools have it"),
        ("rubric", '["q3", [{"text": "no id"}]]', 'no "paragraph_id"'),
        ("grades", '{"query_id": "q", "doc_id": "d", "item_id": "i", "rating": 6}', "neither 0..5 nor null"),
        ("grades", '{"query_id": "q", "doc_id": "d", "rating": 3}', 'no "item_id"'),
    ],
)  # fmt: skip
def test_a_bad_line_is_reported(tmp_path: Path, name: str, line: str, reason: str) -> None:
    error = refused(put(tmp_path, GOOD[name] + line.encode() + b"\n"), name)
    assert error.line == 3
    assert reason in error.reason


@pytest.mark.parametrize("rating", [6, -1, "4", 3.5, True])
def test_a_recorded_rating_outside_0_to_5_is_rejected(tmp_path: Path, rating: object) -> None:
    grading = {"llm": "m", "self_ratings": [{"question_id": "i", "self_rating": rating}]}
    line = json.dumps(["q1", [{"paragraph_id": "d1", "text": "t", "exam_grades": [grading]}]])
    assert "the rating is not 0..5" in refused(put(tmp_path, line.encode()), "rubric").reason


def test_an_unknown_format_lists_the_known_ones_and_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"in none of the supported formats \(run, qrels"):
        converters.read(put(tmp_path, b"Dear all,\nplease find attached\n"))
    with pytest.raises(ConversionError, match="did you mean 'qrels'"):
        converters.read(put(tmp_path, GOOD["qrels"]), "qrel")
    with pytest.raises(ConversionError, match="only read"):
        converters.write([], tmp_path / "x", "rubric")


@pytest.mark.parametrize(
    ("name", "records", "reason"),
    [
        ("run", [converters.RunEntry("q 1", "d", 1, 1.0, "t")], "white space"),
        ("run", [converters.RunEntry("q1", "", 1, 1.0, "t")], "empty"),
        ("qrels", [converters.Qrel("q1", "d\v1", 1)], "white space"),
        ("qrels", [converters.Qrel("q1", "d", 1), converters.Qrel("q1", "d", 2)], "occurs twice"),
        ("queries", [converters.Query("q\t1", "text")], "TSV"),
    ],
)
def test_records_that_a_format_cannot_hold_are_not_written(
    tmp_path: Path, name: str, records: list[Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        converters.write(records, tmp_path / "x", name)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("run", "q1 Q0 d{} 1 2 t\n", "q1 Q0 d{}\n"),
        ("qrels", "q1 0 d{} 1\n", "q1 0 d{} x\n"),
        ("queries", "q{}\twhat is it\n", "q{}\n"),
        ("bank", '{{"query_id": "q{}", "question": "what?"}}\n', '{{"query_id": "q{}"}}\n'),
    ],
)
def test_the_first_20_bad_lines_are_reported_and_the_rest_counted(
    tmp_path: Path, name: str, good: str, bad: str
) -> None:
    lines = [bad.format(n) if n in (2, 4) else good.format(n) for n in range(1, 7)]
    error = refused(put(tmp_path, "".join(lines).encode()), name)
    assert error.line == 2
    assert error.reason.endswith("; also bad: line 4")
    lines = [good.format(1), *(bad.format(n) for n in range(2, 32))]
    error = refused(put(tmp_path, "".join(lines).encode()), name)
    assert error.line == 2
    named = ", ".join(map(str, range(3, 22)))
    assert error.reason.endswith(f"; also bad: lines {named} and 10 more")


# Input that readers could misread: aligned columns, carriage returns, unusual names, cut first lines.


@pytest.mark.parametrize("delimiter", [" ", "\t"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_doubled_delimiters_on_every_line_do_not_shift_the_score_column(
    tmp_path: Path, delimiter: str, pack: type[bytes]
) -> None:
    lines = (delimiter.join(("q", "Q0", f"d{n}", "", str(n), str(9 - n), "t\n")) for n in (1, 2, 3))
    run = converters.read(put(tmp_path, pack("".join(lines).encode())), "run")
    assert [(e.doc_id, e.score, e.run) for e in run] == [("d1", 8, "t"), ("d2", 7, "t"), ("d3", 6, "t")]


@pytest.mark.slow
def test_doubled_delimiters_across_two_blocks_are_found(tmp_path: Path) -> None:
    block = 4 * 1024 * 1024
    head = "q Q0 d1 1 9 " + "t" * 60 + "\n"
    lines = "".join(f"q{n} Q0 d 1 1 t\n" for n in range(block // 16))
    filler = lines[: block - 200].rpartition("\n")[0] + "\n"
    start = head + filler
    for shift in (0, 1):
        pad = f"x Q0 {'d' * (block - len(start) - len('x Q0 ') - 1 + shift)}"
        bad = start + pad + "  1 1 t\n"
        with pytest.raises(ConversionError, match="has 5 columns"):
            converters.read(put(tmp_path, bad.replace("  1 1 t", "  1 t"), f"{shift}.run"), "run")


@pytest.mark.parametrize(
    ("name", "line"), [("run", "q Q0 {} 1 1 t"), ("qrels", "q 0 {} 1"), ("run", "q\tQ0\t{}\t1\t1\tt")]
)
@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_cr_line_ends_are_rejected_and_not_read_as_one_line(
    tmp_path: Path, name: str, line: str, end: str
) -> None:
    path = put(tmp_path, line.format("d0") + end + line.format("d1") + "\r" + line.format("d2") + end)
    with pytest.raises(ConversionError, match="carriage return") as caught:
        list(converters.read(path, name))
    assert caught.value.line == (1 if end == "\r" else 2)


def test_a_pipe_is_rejected_without_hanging(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (converters.sniff, lambda path: list(converters.read(path, "qrels")), converters.read):
        with pytest.raises(ConversionError, match="is a pipe or a device; write it to a file"):
            read(pipe)
    with pytest.raises(ConversionError, match="is a pipe or a device"):
        converters.read(pipe, "run")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_longer_and_shorter_than_the_read_buffer_are_read_whole(tmp_path: Path, ending: str) -> None:
    lines = ["", "a" * 300_000, "b", "", "c" * 600_000, *("d" * (n % 7) for n in range(100_000)), "e"]
    for end in (ending, ""):
        path = put(tmp_path, ending.join(lines) + end)
        assert list(iter_lines(path)) == [(n, line.encode()) for n, line in enumerate(lines, 1)]
    lines[80_000] = "\0"
    with pytest.raises(ConversionError, match=":80001: a NUL byte"):
        list(iter_lines(put(tmp_path, ending.join(lines))))


@given(st.text(), st.text(min_size=1).filter(lambda text: "/" not in text and "\0" not in text))
def test_an_error_is_one_line_without_terminal_control_characters(reason: str, name: str) -> None:
    error = ConversionError(name, 3, reason)
    for text in (str(error), error.reason, str(Rejected(name, 3, reason, "line"))):
        assert not any(sign in text for sign in "\n\r\x00\x1b\x7f\x9b\u202e\u2028\u2066")
        text.encode()
    assert ConversionError(*error.args).reason == error.reason
    assert error.path == name


def test_a_file_name_that_is_not_utf8_is_accepted(tmp_path: Path) -> None:
    path = put(tmp_path, "q Q0 d 1 1 t\n", os.fsdecode(b"a\xff.run"))
    assert len(converters.read(path)) == 1
