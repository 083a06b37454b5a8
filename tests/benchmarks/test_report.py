"""The report of a large track: 100 runs, 300 queries, a million grades."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from big_track import make_big_track

import trecexam
from trecexam.outputs import outputs

pytestmark = [pytest.mark.benchmark, pytest.mark.plots]


def test_the_report_is_written_in_ten_seconds_and_stays_below_five_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_big_track(tmp_path / "track")
    real, took = outputs.report_files, []

    def timed(*given: Any) -> Iterator[tuple[str, bytes]]:
        began = time.perf_counter()
        yield from list(real(*given))
        took.append(time.perf_counter() - began)

    monkeypatch.setattr(outputs, "report_files", timed)
    with trecexam.open_track(root) as track:
        track.update()
    size = (root / "out" / "report.html").stat().st_size
    print(f"report: {took[0]:.1f} s, {size:,} bytes")
    assert took[0] < 10
    assert size < 5_000_000
