from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient


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
