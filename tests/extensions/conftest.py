"""For tests with scripted servers: pauses between retries are short, and a key is set."""

from __future__ import annotations

import pytest
from scripted_server import KEY


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trecexam.graders.server.exchange.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("trecexam.graders.server.exchange.LONGEST_PAUSE", 0.05)
    monkeypatch.setenv("TEST_KEY", KEY)
