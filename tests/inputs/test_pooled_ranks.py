"""Joining runs with judgments through the pool equals the join of each run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support import HashGrader, write_run

from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.pooled_ranks import pooled_ranks
from trecexam.inputs.track_graders import open_folder
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import rows_at_ranks


@pytest.fixture
def root(small_track: Path) -> Path:
    """With a run that skips queries, and unjudged passages."""
    write_run(small_track / "runs" / "few.run", {"q2": ["q2-d03", "q2-d11", "q2-d00"]})
    return small_track


@contextmanager
def loaded(root: Path, depth: int) -> Iterator[GradedTrack]:
    """The track, with a pool of this depth."""
    (root / "trecexam.toml").write_text(f"[track]\ndepth = {depth}\n")
    with OpenTrack(open_folder(root), HashGrader()) as loaders:
        yield loaders.first.load()


@pytest.mark.parametrize("depth", [1, 3, None])
def test_joining_through_the_pool_equals_the_join_of_each_run(root: Path, depth: int | None) -> None:
    with loaded(root, 50) as track:
        judgments = [
            Judged.from_ratings(track.ratings()),
            Judged.from_qrels([row for row in track.official or () if row.query_id in track.pool]),
        ]
        for judged in judgments:
            runs = list(track.runs.values())[1:]
            pooled = pooled_ranks(track.pool, track.depth, track.runs, runs, judged, depth)
            assert pooled is not None
            for run, through in zip(runs, pooled, strict=True):
                own = rows_at_ranks(run, judged, depth)
                np.testing.assert_array_equal(through.offsets, own.offsets)
                np.testing.assert_array_equal(through.rows, own.rows)
                np.testing.assert_array_equal(through.n_retrieved, own.n_retrieved)


def test_beyond_the_pool_no_join_through_it_is_made(root: Path) -> None:
    with loaded(root, 2) as track:
        judged, runs = Judged.from_ratings(track.ratings()), list(track.runs.values())
        of_pool = track.pool, track.depth, track.runs, runs
        assert pooled_ranks(*of_pool, judged, 3) is None
        assert pooled_ranks(*of_pool, judged, None) is None
        assert pooled_ranks(*of_pool, judged, 2) is not None
        assert pooled_ranks(*of_pool, Judged.from_qrels([], ["another query"]), 1) is None
