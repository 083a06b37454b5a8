"""A track for learning, and an encoder that needs no model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from learnable import WordEncoder, fit_once, make_learnable

import trecexam.extensions.learn.learned_pool as learning


@pytest.fixture
def learnable(tmp_path: Path) -> Path:
    return make_learnable(tmp_path / "learnable")


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> WordEncoder:
    words = WordEncoder()
    monkeypatch.setattr(learning, "track_encoder", lambda track: words)
    return words


@pytest.fixture(scope="session", autouse=True)
def fitted_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        fit_once(patch)
        yield
