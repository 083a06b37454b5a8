from __future__ import annotations

from pathlib import Path

from campaign import campaign, to_rate

from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.progress import judging_progress
from trecexam.track import selection


def test_progress_shows_per_assessor_and_topic_what_is_left_and_the_speed(graded: Path) -> None:
    with campaign(graded) as track:
        plan = track.judging.plan(["ada", "bob"], overlap=0.1).plan
        first, second, third, *_ = plan.tasks("ada")
        for (query_id, doc_id), rating, seconds in (
            (first, 2, 10.0), (second, "cannot", 2.0), (third, 1, None),
        ):  # fmt: skip
            record_assessment(
                track.folder, to_rate(track, query_id), doc_id, "", rating,  # type: ignore[arg-type]
                who="ada", why="x", seconds=seconds,
            )  # fmt: skip
        # Unplanned judgments are not part of the plan.
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "", 1, who="zoe", seconds=1.0)
        found = judging_progress(selection(track).graded())
        ada, bob = found.assessors
        n = len(plan.tasks("ada"))
        assert ada == ("ada", "", n, 3, n - 3, 3, 1, 6.0, 2 * 3600 / 12.0)
        assert bob == ("bob", "", len(plan.tasks("bob")), 0, len(plan.tasks("bob")), 0, 0, None, None)
        assert [(row.assessor, row.query_id) for row in found.topics] == [
            (name, query_id)
            for name in plan.assessors
            for query_id in dict.fromkeys(query_id for query_id, _ in plan.tasks(name))
        ]
        for name in ("tasks", "done", "left", "judgments", "cannot"):
            of_ada = [getattr(row, name) for row in found.topics if row.assessor == "ada"]
            assert sum(of_ada) == getattr(ada, name)
