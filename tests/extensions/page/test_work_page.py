from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from trecexam.extensions.page.live import PACE_SECONDS, Pace


def test_the_speed_is_that_of_the_last_minutes() -> None:
    pace = Pace()
    assert pace.cells_a_second(0.0) is None
    pace.note(100, 0.0)
    assert pace.cells_a_second(10.0) is None
    pace.note(150, 10.0)
    assert pace.cells_a_second(10.0) == 5
    # Without progress the speed decreases, and finally there is none.
    assert pace.cells_a_second(50.0) == 1
    assert pace.cells_a_second(PACE_SECONDS + 20) is None
    pace.note(180, PACE_SECONDS + 20)
    pace.note(190, PACE_SECONDS + 30)
    assert pace.cells_a_second(PACE_SECONDS + 30) == pytest.approx(1)
    # A bank with other items: the earlier speed does not apply.
    pace.note(3, PACE_SECONDS + 40)
    assert pace.cells_a_second(PACE_SECONDS + 41) is None


def cells(html: str) -> dict[str, int]:
    """The page's first table."""
    rows = re.findall(r'<tr><th scope="row"[^>]*><bdi>([^<]+)</bdi></th><td class="n">([\d,]+)</td>', html)
    return {name: int(count.replace(",", "")) for name, count in rows}


def test_the_page_counts_every_cell_by_its_status(client: TestClient) -> None:
    html = client.get("/work").text
    counts = cells(html)
    assert "Nothing is left to grade" in html
    assert counts["graded"] == sum(counts.values()) > 0


def test_remaining_work_and_cost_are_shown(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.get("/work")
    live = client.app.state.live  # type: ignore[attr-defined]
    live.wait_for(lambda track: track.work is not None)
    usage = {"requests": 1200, "tokens_in": 34567, "tokens_out": 89, "cost": 1.234}
    monkeypatch.setattr(live, "work", live.work._replace(graded=0, cells=600, usage=usage))
    monkeypatch.setattr(live.pace, "cells_a_second", lambda: 2.0)
    html = client.get("/work").text
    assert "120 cells per minute" in html
    assert "600 cells are left, about 5.0 minutes" in html
    for text in ("1,200", "34,567", "89", "1.23"):
        assert f'<td class="n">{text}</td>' in html
    monkeypatch.setattr(live.pace, "cells_a_second", lambda: None)
    assert "none was graded in the last minutes" in client.get("/work").text
