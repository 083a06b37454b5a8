"""Input that readers could misread: aligned columns, carriage returns, unusual names, cut first lines."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pytest

import converters
from converters import ConversionError, Qrel
from converters.lines import iter_lines
from converters.trec_qrels import write_qrels


def put(tmp_path: Path, content: str | bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("delimiter", [" ", "\t"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_doubled_delimiters_on_every_line_do_not_shift_the_score_column(
    tmp_path: Path, delimiter: str, pack: type[bytes]
) -> None:
    lines = (delimiter.join(("q", "Q0", f"d{n}", "", str(n), str(9 - n), "t\n")) for n in (1, 2, 3))
    run = converters.read(put(tmp_path, pack("".join(lines).encode())), "run")
    assert [(e.doc_id, e.score, e.run) for e in run] == [("d1", 8, "t"), ("d2", 7, "t"), ("d3", 6, "t")]


@pytest.mark.parametrize("line", ["q  d2 2 1 t", "q Q0 d2  1 t", "q Q0 d2 2 1 "])
def test_a_line_of_five_columns_is_reported_whichever_column_is_missing(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConversionError, match=r":2: has 5 columns"):
        converters.read(put(tmp_path, f"q Q0 d1 1 2 t\n{line}\n"), "run")


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


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\x1c", "\x85"])
def test_unicode_white_space_is_allowed_in_ids(tmp_path: Path, space: str) -> None:
    doc_id = f"d{space}1"
    (entry,) = converters.read(put(tmp_path, f"q Q0 {doc_id} 1 1 t\n"), "run")
    file = io.BytesIO()
    write_qrels([Qrel(entry.query_id, entry.doc_id, 1)], file)
    assert list(converters.read(put(tmp_path, file.getvalue()), "qrels")) == [Qrel("q", doc_id, 1)]


def test_a_file_name_that_is_not_utf8_is_accepted(tmp_path: Path) -> None:
    path = put(tmp_path, "q Q0 d 1 1 t\n", os.fsdecode(b"a\xff.run"))
    assert len(converters.read(path)) == 1


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"docid": "d", "text": "word {[ \" " * 20_000}, "passages"),
        ({"title": {"text": "x" * 70_000}, "docid": "d", "text": "y"}, None),
        ({"qid": "q", "text": "word " * 20_000}, "queries"),
        ({"query_id": "q", "doc_id": "d", "item_id": "i", "rating": 1, "answer": "a" * 70_000}, "grades"),
        ({"query_id": "q", "questions": [{"question_text": "word " * 20_000}]}, "bank"),
    ],
)  # fmt: skip
def test_a_very_long_first_line_is_recognised_by_its_keys(
    tmp_path: Path, row: dict[str, object], kind: str | None
) -> None:
    path = put(tmp_path, json.dumps(row) + "\n")
    if kind is None:
        with pytest.raises(ConversionError, match="in none of the supported formats"):
            converters.sniff(path)
    else:
        assert converters.sniff(path) == kind


@pytest.mark.parametrize(
    "name",
    # For each way to read lines.
    ["run", "qrels", "bank", "workbench", pytest.param("responses", marks=pytest.mark.slow)],
)
def test_a_decompression_bomb_is_rejected_at_a_stated_limit(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bomb.gz"
    # 100 MB in 100 kB, without a line end.
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(b"a" * 1_000_000)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, name))
    assert "64 MiB" in caught.value.reason


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
