"""Ids with white space, which qrels cannot hold, are one line with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import HashGrader

import trecexam
from trecexam.errors import TrecexamError


def test_a_query_id_with_white_space_is_named_with_a_remedy(small_track: Path) -> None:
    for path in (small_track / "bank.questions.jsonl", small_track / "queries.tsv"):
        if path.exists():
            path.write_text(path.read_text().replace('"q1"', '"q 1"').replace("q1\t", "q 1\t"))
    with (
        trecexam.open_track(small_track, grader=HashGrader()) as track,
        pytest.raises(TrecexamError, match=r"'q 1' is empty or has white space.*rename it"),
    ):
        track.update()
