"""The fingerprint of the code that parses answers."""

from __future__ import annotations

import pytest

from trecexam.graders import registry


def test_the_fingerprint_changes_with_a_library_that_parses_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = registry.reading_fingerprint.__wrapped__
    now = compute()
    assert now == compute()
    monkeypatch.setattr(registry, "version", lambda library: "another")
    assert compute() != now
