from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2")

from scripted_server import KEY
from support import ask, make_small_track

from trecexam.config import GraderSection
from trecexam.graders import Cell
from trecexam.graders.server import exchange
from trecexam.graders.server.grader import ServerGrader, _create

Make = Callable[..., ServerGrader]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between retries are short, and a key is set."""
    monkeypatch.setattr(exchange, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(exchange, "LONGEST_PAUSE", 0.05)
    monkeypatch.setenv("TEST_KEY", KEY)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a grader that uses a server."""

    def made(url: str, **settings: Any) -> ServerGrader:
        words = {"name": "openai", "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
        return _create(GraderSection.model_validate(words), tmp_path)

    return made


@pytest.fixture
def cells() -> list[Cell]:
    return [
        ask(f"passage {place} says this.", f"What about {number}?", number, doc_id=f"d{place}")
        for place in range(10)
        for number in range(4)
    ]


@pytest.fixture
def track(tmp_path: Path) -> Callable[..., Path]:
    """Makes a small track; settings go into [grader]."""

    def made(url: str, **settings: Any) -> Path:
        root = make_small_track(tmp_path / "track", docs=6, items=2)
        words = {"name": "openai", "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
        grader = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
        (root / "trecexam.toml").write_text(
            f"[track]\ndepth = 4\n[report]\nwrite = false\n[grader]\n{grader}[watch]\npoll = 0.1\n"
        )
        return root

    return made
