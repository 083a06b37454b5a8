"""A person's rating of a passage as a judgment."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign import SCALE, campaign, to_rate

from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.learn.learned_pool import people_judgments


@pytest.mark.parametrize("is_official", [False, True])
def test_judgments_on_the_scale_of_the_track_are_used_unchanged(graded: Path, is_official: bool) -> None:
    qrels = graded / "qrels.txt"
    lines = qrels.read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if " q1-d01 " not in line))
    with campaign(graded, SCALE, official=is_official) as track:
        for doc_id, rating in (("q1-d00", 2), ("q1-d01", 1), ("q1-d02", "cannot")):
            query = to_rate(track, "q1")
            record_assessment(track.folder, query, doc_id, "", rating, who="ada", why="x")  # type: ignore[arg-type]
        loaded = track._loader.load()
        known = {} if loaded.official is None else {row[:2]: row.relevance for row in loaded.official}
        expected = {("q1", "q1-d00"): 2, ("q1", "q1-d01"): 1, **known}
        official, n_people = people_judgments(loaded)
        assert official is not None
        assert {row[:2]: row.relevance for row in official.qrels} == expected
        assert n_people == len(expected) - len(known)
        assert is_official or official.source == "judgments.tsv"
        # Commands that compare with official judgments see none of these.
        assert {row[:2]: row.relevance for row in loaded.official or ()} == known
