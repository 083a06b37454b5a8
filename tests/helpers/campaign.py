"""Tracks that assessors judge, and queries as assessors see them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trecexam
from trecexam import Track
from trecexam.extensions.campaign.plan import JudgingPlan, read_plan
from trecexam.features.override.overriding import QueryToRate
from trecexam.track import selection

SCALE = '[judging]\nscale = ["no", "somewhat", "yes"]\n'


@contextmanager
def campaign(graded: Path, settings: str = SCALE, *, official: bool = False) -> Iterator[Track]:
    """A graded track with these settings; by default judged on a scale 0..2."""
    config = graded / "trecexam.toml"
    config.write_text(config.read_text() + settings)
    if not official:
        (graded / "qrels.txt").unlink()
    with trecexam.open_track(graded) as track:
        yield track


def to_rate(track: Track, query_id: str) -> QueryToRate:
    """A query as an assessor sees it."""
    loaded = selection(track).graded()
    sheet = loaded.sheets[query_id]
    texts = {doc_id: sheet.text_of(doc_id) for doc_id in sheet.doc_ids}
    best = loaded.grader.scale.max_rating
    items, scale = loaded.bank.items[query_id], loaded.judging_scale
    return QueryToRate(query_id, items, (), texts, loaded.depth, best, scale=scale)


def planned(track: Track) -> JudgingPlan:
    """The plan in judging.tsv."""
    plan = read_plan(track.folder)
    assert plan is not None
    return plan
