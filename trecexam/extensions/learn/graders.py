"""The graders that ever graded a track's pool: what each says of a passage is one of the ways to treat it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.ratings import cell_ratings, mean_ratings
from trecexam.graders.base import Grader, identity_digest, identity_json
from trecexam.line.assessment import Assessment
from trecexam.line.sheets import Sheet
from trecexam.line.stored_grades import StoredGrades


@dataclass(frozen=True)
class _FormerGrader:
    """A grader as the store knows it, which can grade no more."""

    identity: Mapping[str, Any]


def graders_of(track: Assessment, queries: Sequence[PooledQueryToLearn]) -> Mapping[str, tuple[Floats, ...]]:
    """The mean ratings of each grader that rated any of these passages, the track's own first.

    They are read from the store; nothing is graded. Of other graders than the track's the rating counts that
    an answer had when it was stored.

    Returns:
        "grader NAME" -> of each query the means of its `doc_ids`, NaN where there is none. Of several with a
        name the track's has it alone, the others with the first 8 digits of their identity's digest.
    """
    own = track.grader.identity
    name = f"grader {own['grader']}"
    means = {name: tuple(query.mean_ratings for query in queries)} if track.counts.ok else {}
    sheets = [track.sheets[query.passages.query_id] for query in queries]
    former: list[tuple[str, str, tuple[Floats, ...]]] = []
    for _, text in track.grades.store.graders():
        identity = json.loads(text)
        if text == identity_json(own):
            continue
        grades = StoredGrades(track.grades.store, cast(Grader, _FormerGrader(identity)))
        of_queries = _means(track, sheets, grades)
        if any(not np.isnan(of_query).all() for of_query in of_queries):
            former.append(
                (f"grader {identity.get('grader')}", identity_digest(identity).hex()[:8], of_queries)
            )
    names = Counter([name, *(name for name, _, _ in former)])
    for name, digest, of_queries in sorted(former, key=lambda each: each[:2]):
        means[name if names[name] == 1 else f"{name} ({digest})"] = of_queries
    return means


def coverage(means: Mapping[str, Sequence[Floats]]) -> Iterator[str]:
    """Which graders rated only a part of the passages, a line each."""
    for name, of_queries in means.items():
        rated = ~np.isnan(np.concatenate(of_queries))
        if not rated.all():
            yield f"{name}: {rated.sum():,} of {rated.size:,} passages have a rating, the others count as 0"


def _means(track: Assessment, sheets: Sequence[Sheet], grades: StoredGrades) -> tuple[Floats, ...]:
    means = [np.full(len(sheet.doc_ids), np.nan) for sheet in sheets]
    # A grader may have gone by ids, where the track's goes by texts.
    for keys in (
        lambda sheet: sheet.texts,
        lambda sheet: tuple(map(track.texts.get, sheet.doc_ids)),
        lambda sheet: sheet.doc_ids,
    ):
        asked = [replace(sheet, texts=keys(sheet)) for sheet in sheets]
        found = grades.codes([sheet.shape for sheet in asked])
        for at, (sheet, codes) in enumerate(zip(asked, found, strict=True)):
            ratings, _ = cell_ratings(replace(sheet, codes=codes), grades, track.config.scores.unparsed)
            means[at] = np.where(np.isnan(means[at]), mean_ratings(ratings), means[at])
    return tuple(means)
