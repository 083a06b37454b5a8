"""`trecexam ragval filter`: kept and dropped blocks with reasons, and prompts to a model."""

from __future__ import annotations

import contextlib
import gzip
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("tenacity")

from hypothesis import given
from hypothesis import strategies as st
from ragval import KEY, write_lines
from scripted_server import Exchange, serving

from trecexam.cli.main import run
from trecexam.extensions.ragval.filtering import beginning
from trecexam.graders.server import exchange

ROWS: list[dict[str, Any]] = [
    {"id": "a", "content": "Old news.", "date": "2022-05-01", "lang": "en"},
    {"id": "b", "content": "Good news.", "date": "2023-06-05 08:00", "lang": "en", "url": "http://x"},
    {"id": "c", "content": "Neue Nachrichten.", "date": 1690000000, "lang": "de"},
    {"id": "d", "content": "Undated news.", "lang": "en"},
    {"id": "e", "content": "Odd news.", "date": "04/05/2023", "lang": "en"},
    {"id": "f", "content": "Late news.", "date": "2024-01-01T00:00:00+01:00", "lang": "en"},
    {"id": "b", "content": "Good news.", "date": "2023-06-05 08:00", "lang": "en", "url": "http://x"},
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(exchange, "LONGEST_PAUSE", 0.05)
    monkeypatch.setenv("TEST_KEY", KEY)


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "blocks.jsonl", ROWS)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def track(root: Path, url: str, **settings: Any) -> Path:
    root.mkdir(exist_ok=True)
    words = {"name": "openai", "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    (root / "trecexam.toml").write_text(f"[generator]\n{text}")
    return root


def test_blocks_are_selected_by_date_and_each_dropped_one_has_a_reason(
    blocks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["ragval", "filter", str(blocks), "-o", str(out), "--after", "2023"]) == 0
    assert lines(out / "kept.jsonl") == [ROWS[1], ROWS[5]]
    dropped = {(row["id"], *row["filters"]): row["reason"] for row in lines(out / "dropped.jsonl")}
    assert dropped == {
        ("a", "after"): "after: date is 2022-05-01",
        ("c", "unreadable-date"): "unreadable-date: date '1690000000' is not an ISO date, such as 2023-06-30",
        ("d", "missing-date"): "missing-date: no date",
        ("e", "unreadable-date"): "unreadable-date: date '04/05/2023' is not an ISO date, such as 2023-06-30",
        ("b", "duplicates"): "duplicates: the same as line 2",
    }
    stats = json.loads((out / "stats.json").read_bytes())
    assert (stats["blocks"], stats["dropped"], stats["kept"]) == (7, 5, 2)
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "filter\tdropped\talone"
    assert "missing-date\t1\t1" in said.out.splitlines()


@pytest.mark.parametrize(
    ("date", "passes"),
    [
        *(("2023-06-01", True), ("2023-05-31", False), ("2023-05-31T23:59:59Z", False), ("2023-06", True)),
        *(("2023-06-01T00:00:00Z", True), ("2023-06-01T00:30:00+01:00", False), ("20230601", True)),
        # Possibly before June, possibly after.
        *(("2023", False), (2023, False), (2024, True), ("2023-W22", False), ("2023-W23", True)),
    ],
)
def test_the_whole_period_of_a_date_must_be_after_the_limit(
    tmp_path: Path, date: object, passes: bool
) -> None:
    path = write_lines(tmp_path / "blocks.jsonl", [{"content": "News.", "date": date}])
    assert run(["ragval", "filter", str(path), "-o", str(tmp_path), "--after", "2023-06"]) == (not passes)


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), st.integers(-14 * 60, 14 * 60))
def test_written_dates_are_read_exactly(moment: datetime, minutes: int) -> None:
    assert beginning(moment.isoformat()) == moment.replace(tzinfo=UTC)
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    with contextlib.suppress(OverflowError):
        expected = there.astimezone(UTC)
        assert beginning(there.isoformat()) == expected


@given(st.one_of(st.text(max_size=30), st.floats(), st.integers(), st.none(), st.lists(st.integers())))
def test_any_value_is_a_date_or_a_reason(value: object) -> None:
    with contextlib.suppress(ValueError):
        assert beginning(value).tzinfo == UTC


def test_without_filters_only_duplicates_are_dropped(
    blocks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ragval", "filter", str(blocks), "-o", str(tmp_path / "out")]) == 0
    assert lines(tmp_path / "out" / "kept.jsonl") == ROWS[:-1]
    packed = tmp_path / "blocks.jsonl.gz"
    packed.write_bytes(gzip.compress(blocks.read_bytes()))
    assert run(["ragval", "filter", str(packed), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "kept.jsonl").read_bytes() == (tmp_path / "out" / "kept.jsonl").read_bytes()


def test_if_no_block_is_left_the_status_says_so(blocks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["ragval", "filter", str(blocks), "-o", str(out), "--after", "2030"]) == 1
    assert (out / "kept.jsonl").read_bytes() == b""


def answer_known(exchange: Exchange) -> None:
    """Knows old news and no other; gives no clear answer on "odd" ones."""
    text = exchange.prompt
    known = "maybe" if "Odd" in text else "yes" if "Old" in text else "no"
    exchange.say(json.dumps({"known": known}) if "response_format" in exchange.body else f"{known.title()}.")


@pytest.mark.parametrize("plain", [False, True])
def test_blocks_that_the_model_knows_are_dropped_with_one_request_each(
    blocks: Path, tmp_path: Path, plain: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with serving(answer_known) as server:
        root = track(tmp_path / "track", server.url, price_in=1.0, price_out=1.0)
        if plain:
            (root / "trecexam.toml").write_text(
                (root / "trecexam.toml").read_text() + '[grader]\nstructured = "none"\n'
            )
        words = ["ragval", "filter", str(blocks), "-o", str(out), "--known", str(root)]
        assert run([*words, "--estimate"]) == 0
        header, row = capsys.readouterr().out.splitlines()
        assert header.startswith("prompts\t")
        assert row.startswith("6\t")
        assert not out.exists()
        assert not server.bodies
        assert run(words) == 0
        assert len(server.bodies) == 6
        schema = server.bodies[0].get("response_format", {}).get("json_schema", {}).get("schema")
        assert (schema is None) == plain
        assert run(words) == 0
        assert len(server.bodies) == 6
    dropped = {row["id"]: row["reason"] for row in lines(out / "dropped.jsonl")}
    assert dropped == {
        "a": "known: tiny says that it knows it",
        "b": "duplicates: the same as line 2",
    }
    assert [row["id"] for row in lines(out / "kept.jsonl")] == ["b", "c", "d", "e", "f"]
    stats = json.loads((out / "stats.json").read_bytes())["known"]
    assert {key: stats[key] for key in ("yes", "no", "unparsed")} == {"yes": 1, "no": 4, "unparsed": 1}
    said = capsys.readouterr().err
    assert "neither yes nor no in 1 answer: these blocks are kept" in said
    assert "cost" in said


def test_an_unreachable_server_drops_nothing(
    blocks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = track(tmp_path / "track", "http://127.0.0.1:9/v1", retries=0)
    words = ["--known", str(root)]
    assert run(["ragval", "filter", str(blocks), "-o", str(tmp_path / "out"), *words]) in (1, 2)
    kept = tmp_path / "out" / "kept.jsonl"
    assert not kept.exists() or lines(kept) == ROWS[:-1]
    assert KEY not in capsys.readouterr().err


def test_an_estimate_for_a_filter_without_a_model_is_zero(
    blocks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ragval", "filter", str(blocks), "-o", str(tmp_path / "out"), "--estimate"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("0")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--after", "soon"], "'soon' is not an ISO date, such as 2023-06-30"),
        (["--known", "nowhere"], "no such track folder"),
    ],
)
def test_contradictory_options_are_reported(
    blocks: Path, tmp_path: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ragval", "filter", str(blocks), "-o", str(tmp_path / "out"), *words]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_block_is_counted_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "blocks.jsonl", [{"content": "News."}])
    assert run(["ragval", "filter", str(path), "-o", str(tmp_path / "out")]) == 0
    assert f"1 block: 0 dropped, 1 kept: {tmp_path}/out" in capsys.readouterr().err.splitlines()


def test_an_empty_file_is_no_error_of_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("")
    for more in ([], ["--after", "2023"]):
        assert run(["ragval", "filter", str(path), "-o", str(tmp_path / "out"), *more]) == 2
        assert capsys.readouterr().err == f"trecexam: {path}: the file is empty\n"


def test_blocks_are_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "kept.jsonl", ROWS)
    assert run(["ragval", "filter", str(path), "-o", str(tmp_path)]) == 2
    assert "is an input of this command; name another folder" in capsys.readouterr().err
    assert lines(path) == ROWS


def test_lines_that_are_not_blocks_are_reported_and_the_others_are_filtered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [ROWS[0], "{half", {"title": "nothing"}, {"id": "a", "content": "Other news."}, ROWS[1]]
    path = write_lines(tmp_path / "blocks.jsonl", rows)
    assert run(["ragval", "filter", str(path), "-o", str(tmp_path / "out"), "--after", "2023"]) == 1
    assert lines(tmp_path / "out" / "kept.jsonl") == [ROWS[1]]
    stats = json.loads((tmp_path / "out" / "stats.json").read_bytes())
    assert (stats["blocks"], stats["dropped"], stats["kept"], stats["rejected"]) == (2, 1, 1, 3)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"rejected: {path}:2: not valid JSON")
    assert said[1].startswith(f"rejected: {path}:3: the block has no")
    assert said[2].startswith(f"rejected: {path}:4: block 'a' is on line 1 with other content")
    write_lines(path, ["{half"] * 30 + [ROWS[1]])
    assert run(["ragval", "filter", str(path), "-o", str(tmp_path / "out")]) == 1
    assert "rejected: 10 more lines" in capsys.readouterr().err
    write_lines(path, ["{half"])
    assert run(["ragval", "filter", str(path), "-o", str(tmp_path / "out")]) == 2
    assert "blocks.jsonl:1: not valid JSON" in capsys.readouterr().err
