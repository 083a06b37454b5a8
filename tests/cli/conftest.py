from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import RECORDED, HashGrader, make_small_track

import trecexam
from trecexam.cli.main import run


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """A track that the `recorded` grader has graded; every pooled cell is in the recording."""
    root = make_small_track(tmp_path / "track")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in track.grades()))
    shutil.rmtree(root / "out")
    shutil.rmtree(root / ".trecexam")
    (root / "trecexam.toml").write_text(RECORDED)
    assert run(["watch", str(root), "--once"]) == 0
    return root
