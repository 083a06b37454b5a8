from __future__ import annotations

from pathlib import Path

import pytest
from support import make_small_track


@pytest.fixture
def small_track(tmp_path: Path) -> Path:
    """Without a report, which takes a fourth of an update; `with_report` switches it on."""
    return make_small_track(tmp_path / "track", config="[track]\ndepth = 8\n[report]\nwrite = false\n")


@pytest.fixture
def with_report(small_track: Path) -> None:
    (small_track / "trecexam.toml").write_text("[track]\ndepth = 8\n")
