from __future__ import annotations

from starlette.testclient import TestClient


def test_the_leaderboard_names_every_run(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    for run in ("run0", "run1", "run2"):
        assert run in page.text


def test_it_is_served_for_real(served) -> None:
    import urllib.request

    assert b"run0" in urllib.request.urlopen(served.url).read()
