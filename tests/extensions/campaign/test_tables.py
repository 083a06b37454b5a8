from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.errors import ConversionError
from converters.records import HumanRating
from trecexam.extensions.campaign.tables import judgment_table, read_judgment_table

ID = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
TEXT = st.lists(ID, min_size=1, max_size=3).map(" ".join)
DIGEST = st.binary(min_size=32, max_size=32).map(bytes.hex) | st.just("")
KIND = st.sampled_from(["", "adjudicated", "undone"])
SECONDS = st.none() | st.floats(0, allow_infinity=False)
RATING = st.builds(
    HumanRating, ID, ID, ID | st.just(""), st.none() | st.integers(0, 5), TEXT, TEXT, TEXT | st.just(""),
    DIGEST, DIGEST, SECONDS, TEXT | st.just(""), KIND, st.just(False), st.just(""),
).flatmap(lambda row: st.sampled_from([row, row._replace(rating=None, cannot=True)]))  # fmt: skip
TABLE_ROW = st.builds(
    lambda row, scale: row._replace(scale=scale), RATING, st.sampled_from(["", "track", "grader", "0..3"])
)
ROWS = st.lists(TABLE_ROW, max_size=6)


def read(path: Path) -> tuple[list[HumanRating], list[str]]:
    refused: list[ConversionError] = []
    rows = [row for _, row in read_judgment_table(path, refused.append)]
    return rows, [str(error) for error in refused]


@given(ROWS)
def test_a_written_table_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[HumanRating]
) -> None:
    path = tmp_path_factory.mktemp("table") / "judgments.tsv"
    path.write_bytes(judgment_table(rows))
    assert read(path) == (rows, [])


def test_a_foreign_table_needs_four_columns_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(
        "rating\tassessor\tplace\tdoc_id\tquery_id\n2\tada\tx\td1\tq1\n\ncannot\tbob\tx\td1\tq1\n"
    )
    rows, refused = read(path)
    assert refused == []
    assert rows == [
        HumanRating("q1", "d1", "", 2, "ada", "imported"),
        HumanRating("q1", "d1", "", None, "bob", "imported", cannot=True),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("q1\td1\tada\t7\ttrack", "neither 0..5 nor empty"),
        ("q1\td1\t\t1\ttrack", "no assessor"),
        ("q1\td1\tada\t1\tours", "the scale is not track, grader or empty: 'ours'"),
        ("q1\td1\tada\t1\ttrack\tmore", "more columns than the header line"),
    ],
)
def test_a_bad_line_is_rejected_with_its_number_and_the_others_count(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(f"query_id\tdoc_id\tassessor\trating\tscale\n{line}\nq1\td2\tada\t1\ttrack\n")
    rows, (refused,) = read(path)
    assert [row.doc_id for row in rows] == ["d2"]
    assert refused.startswith(f"{path}:2: ")
    assert reason in refused


@pytest.mark.parametrize(
    ("header", "reason"),
    [("query_id\tdoc_id\trating", "lacks assessor"), ("query_id\tdoc_id\tassessor\trating\trating", "twice")],
)
def test_a_table_without_a_usable_header_is_rejected_as_a_whole(
    tmp_path: Path, header: str, reason: str
) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(header + "\n")
    with pytest.raises(ConversionError, match=reason):
        read(path)
