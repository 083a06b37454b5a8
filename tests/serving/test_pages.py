from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from trecexam.serving import urls


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?sort=-m1",
        "/?sort=run&q=run1",
        urls.run("run1"),
        urls.run("run1", sort="-m0"),
        urls.run_query("run1", "q1"),
        "/queries",
        urls.query("q1"),
        urls.query("q1", show="items"),
        urls.query("q1", show="runs"),
        urls.query("q1", disagree="both"),
        urls.query("q1", status="missing"),
        urls.passage("q1", "q1-d00"),
        urls.passage("q1", "q1-d00", "q1/0"),
        urls.item("q1", "q1/0"),
        urls.item("q1", "q1/0", rating=3),
        "/disagreements",
        urls.disagreements(kind="missed"),
        urls.disagreements(label=5, judgment=0),
        urls.disagreements(show="items"),
        "/holes",
        "/rejected",
        "/search",
        urls.search(q="passage 3"),
        "/state",
        "/healthz",
        "/static/style.css",
    ],
)
def test_every_page_is_there(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200, page.text
