from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import client_of
from starlette.testclient import TestClient

from trecexam.extensions.page import urls

TABLES = [
    "/",
    urls.run("run1"),
    urls.run_query("run1", "q1"),
    "/queries",
    urls.query("q1"),
    urls.query("q1", show="items"),
    urls.query("q1", show="runs"),
    urls.item("q1", "q1/0"),
    "/disagreements",
    urls.disagreements(show="items"),
    "/holes",
    "/rejected",
]


@pytest.fixture(scope="module")
def reading(graded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The page of a track with two files that are rejected."""
    track = shutil.copytree(graded, tmp_path_factory.mktemp("rejecting") / "track")
    for name in ("notes.run", "empty line.run"):
        (track / "runs" / name).write_text("no run\n")
    with client_of(track) as client:
        yield client


@pytest.mark.parametrize("path", TABLES)
def test_every_table_can_be_downloaded_whole_as_csv_and_json(reading: TestClient, path: str) -> None:
    html = reading.get(path).text
    total = int(re.search(r"<p>(?:\d\W\d+ of )?(\d+) (?:run|quer|passage|item|line)", html)[1])  # type: ignore[index]
    links = re.findall(r'href="([^"]+format=(?:csv|json)[^"]*)"', html)
    as_csv, as_json = (reading.get(link.replace("&amp;", "&")) for link in links)
    assert as_csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert re.fullmatch(r'attachment; filename="\w+\.csv"', as_csv.headers["content-disposition"])
    rows = list(csv.DictReader(io.StringIO(as_csv.text)))
    records = json.loads(as_json.text)
    assert len(rows) == len(records) == total
    assert rows == [
        {name: "" if value is None else str(value) for name, value in record.items()} for record in records
    ]


def test_the_leaderboard_download_has_the_values_of_the_tsv(reading: TestClient, graded: Path) -> None:
    lines = (graded / "out" / "leaderboard.tsv").read_text().splitlines()
    expected = list(csv.DictReader(lines, delimiter="\t"))
    records = reading.get("/?format=json").json()
    assert [record["run"] for record in records] == [row["run"] for row in expected]
    for record, row in zip(records, expected, strict=True):
        for name, value in row.items():
            if name != "run":
                assert f"{record[name]:.6f}" == value


def test_a_download_has_the_filter_and_order_of_the_page_and_all_rows(reading: TestClient) -> None:
    records = reading.get("/?q=run1&sort=-run&format=json&size=25&page=7").json()
    assert {record["run"] for record in records} == {"run1"}
    runs = [record["run"] for record in reading.get("/?sort=-run&format=json").json()]
    assert runs == sorted(runs, reverse=True)


def test_an_unknown_format_shows_the_page(reading: TestClient) -> None:
    assert "<h1" in reading.get("/?format=xlsx").text
    # A page without a table is shown, too.
    assert "<h1" in reading.get(urls.passage("q1", "q1-d00") + "?format=csv").text


def test_tables_without_pagination_can_be_downloaded_too(reading: TestClient) -> None:
    html = reading.get("/work").text
    links = re.findall(r'href="([^"]+format=(?:csv|json)[^"]*)"', html)
    as_csv, as_json = (reading.get(link.replace("&amp;", "&")) for link in links)
    assert as_csv.headers["content-disposition"] == 'attachment; filename="outcomes.csv"'
    rows = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert [row["cells"] for row in rows] == [record["cells"] for record in as_json.json()]
    assert sum(int(row["number"]) for row in rows) > 0
    assert reading.get("/work?table=none&format=csv").headers["content-type"].startswith("text/html")
