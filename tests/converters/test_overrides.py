from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.errors import ConversionError
from converters.overrides import COLUMNS, read_overrides, with_override
from converters.records import HumanRating

HEADER = "\t".join(COLUMNS) + "\n"
ID = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=12).map(
    lambda text: " ".join(text.split()) or "x"
)
DIGEST = st.binary(min_size=32, max_size=32).map(bytes.hex) | st.just("")
ROW = st.builds(
    HumanRating,
    ID,
    ID,
    ID | st.just(""),
    st.none() | st.integers(0, 5),
    TEXT,
    TEXT,
    TEXT,
    DIGEST,
    DIGEST,
    st.none() | st.floats(0, allow_infinity=False),
    st.just("") | TEXT,
    st.sampled_from(["", "adjudicated", "undone"]),
    st.just(False),
    st.sampled_from(["", "0..3"]),
).flatmap(lambda row: st.sampled_from([row, row._replace(rating=None, cannot=True)]))


def read(path: Path) -> tuple[list[HumanRating], list[str]]:
    refused: list[ConversionError] = []
    rows = [row for _, row in read_overrides(path, refused.append)]
    return rows, [str(error) for error in refused]


@given(st.lists(ROW))
def test_appended_lines_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[HumanRating]
) -> None:
    content = b""
    for row in rows:
        content = with_override(content, row)
    path = tmp_path_factory.mktemp("overrides") / "overrides.tsv"
    path.write_bytes(content)
    assert read(path) == (rows, [])


def test_later_columns_are_added_with_the_first_line_that_needs_them() -> None:
    row = HumanRating("q1", "d1", "", 3, "ann", "read it")
    old = with_override(b"", row)
    assert old == f"{HEADER}q1\td1\t\t3\tann\tread it\t\t\t\n".encode()
    timed = with_override(old, row._replace(seconds=2.5))
    assert (
        timed == old.replace(b"_sha256\n", b"_sha256\tseconds\n") + b"q1\td1\t\t3\tann\tread it\t\t\t\t2.5\n"
    )
    assert with_override(timed, row) == timed + b"q1\td1\t\t3\tann\tread it\t\t\t\t\n"


@given(st.lists(ROW), st.text(max_size=2), st.sampled_from(["\n", "\r\n", "\n \n"]))
def test_lines_that_contain_a_text_equal_those_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[HumanRating], text: str, end: str
) -> None:
    content = b"\n"
    for row in rows:
        content = with_override(content, row)
    path = tmp_path_factory.mktemp("overrides") / "overrides.tsv"
    path.write_bytes(content.replace(b"\n", end.encode()))
    lines = path.read_bytes().split(b"\n")

    def numbered(naming: list[str]) -> list[tuple[int, HumanRating]]:
        return list(read_overrides(path, lambda refused: pytest.fail(str(refused)), naming=naming))

    if rows:
        assert numbered([text]) == [row for row in numbered([]) if text.encode() in lines[row[0] - 1]]


def test_a_line_is_appended_with_the_columns_of_the_existing_header() -> None:
    row = HumanRating("q1", "d1", "", 3, "ann", "a\tb\nc")
    assert with_override(b"rating\twhy\tdoc_id\tquery_id\twho", row) == (
        b"rating\twhy\tdoc_id\tquery_id\twho\n3\ta b c\td1\tq1\tann\n"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("q1\td1\t\t6\tann\tbad", "neither 0..5 nor empty"),
        (f"q1\td1\t\t{'9' * 5000}\tann\tbad", "neither 0..5 nor empty"),
        ("q1\td1\t\tCannot\tann\tbad", "nor cannot: 'Cannot'"),
        ("q1\td1\t\t1\t\tbad", "no who"),
        ("q1\td1\t\t1\tann\tbad\t\tabc", "passage_sha256 is not a sha256"),
        ("q1\td1\t\t1\tann\tbad\t\t\t\tmore", "has 10 columns, the header line has 9"),
    ],
)
def test_a_bad_line_is_rejected_with_its_number_and_the_others_count(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "overrides.tsv"
    path.write_text(f"{HEADER}{line}\nq1\td2\t\t1\tann\tfine\n")
    rows, refused = read(path)
    assert [row.doc_id for row in rows] == ["d2"]
    assert len(refused) == 1
    assert refused[0].startswith(f"{path}:2: ")
    assert reason in refused[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("q1\td1\t\t1\tann\tno header\n", "header line lacks query_id, doc_id, who, why, rating"),
        ("query_id\tdoc_id\twho\twhy\trating\trating\n", "names rating twice"),
        ("query_id\tdoc_id\trating\twho\twhy\rq1\td1\t3\tann\tread it\r", "CR alone"),
    ],
)
def test_a_file_without_a_usable_header_is_rejected_as_a_whole(
    tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "overrides.tsv"
    path.write_bytes(content.encode())
    with pytest.raises(ConversionError, match=reason):
        read(path)


def test_an_item_rating_is_not_written_if_it_would_rate_the_whole_passage() -> None:
    with pytest.raises(ValueError, match="no item_id"):
        with_override(b"query_id\tdoc_id\trating\twho\twhy\n", HumanRating("q1", "d1", "q1/2", 3, "ann", "x"))


@pytest.mark.parametrize(
    ("later", "value", "reason"),
    [
        ("seconds", "soon", "the seconds must be a number"),
        ("seconds", "nan", "the seconds must be a number"),
        ("kind", "adjudicate", "the kind is not adjudicated, undone or empty: 'adjudicate'"),
    ],
)
def test_an_invalid_optional_column_rejects_its_line(
    tmp_path: Path, later: str, value: str, reason: str
) -> None:
    path = tmp_path / "overrides.tsv"
    path.write_text(f"query_id\tdoc_id\trating\twho\twhy\t{later}\nq1\td1\t1\tann\tx\t{value}\n")
    rows, (refused,) = read(path)
    assert rows == []
    assert reason in refused
