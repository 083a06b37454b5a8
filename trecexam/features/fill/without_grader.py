"""Fills holes with labels that the track's own judgments teach."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trecexam.extensions.learn.learned_pool import LearnedPool, learn_pool
from trecexam.extensions.learn.verdict import LEARNED
from trecexam.features.fill.arithmetic.merging import HoleLabel, Machine, merge_labels
from trecexam.features.fill.filled import Filled, HolesToFill
from trecexam.line.grading import Progress
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.learn.arithmetic.learning import Prediction
    from trecexam.extensions.learn.encoding import Encoded
    from trecexam.line.assessment import Assessment
    from trecexam.line.official import Official


@dataclass(frozen=True)
class TaughtLabels:
    """Learned labels of a track's pool.

    Attributes:
        labels: query_id -> doc_id -> what it gets; of pooled passages with a text.
        rule: how a gain becomes a label, in words.
        machine: what encoded the texts.
        notes: what a reader must know, a line each.
    """

    labels: dict[str, dict[str, HoleLabel]]
    rule: str
    machine: Machine
    notes: tuple[str, ...]


def taught_labels(
    track: Assessment, official: Official, *, grades: bool, progress: Encoded | None = None
) -> TaughtLabels:
    """What the pooled passages with a text would be judged, learned from these judgments.

    Raises:
        TrecexamError: as `learn_pool`.
    """
    pool = learn_pool(track, official=official, grades=grades, progress=progress)
    labels = {
        query.passages.query_id: dict(
            zip(query.passages.doc_ids, _hole_labels(prediction, pool), strict=True)
        )
        for query, prediction in zip(pool.data.queries, pool.predictions, strict=True)
    }
    return TaughtLabels(
        labels, _in_words(pool), Machine(LEARNED, str(pool.data.encoder["model"] or "")), pool.notes
    )


def merged_without_grader(
    track: Assessment, to_fill: HolesToFill, progress: Callable[[Progress], None] | None = None
) -> Filled:
    """Merges learned labels into the official judgments.

    Raises:
        TrecexamError: as `taught_labels`.
    """
    official = to_fill.official
    encoded = None if progress is None else (lambda done, of: progress(Progress(done, of)))
    taught = taught_labels(track, official, grades=to_fill.grades, progress=encoded)
    rows = merge_labels(
        official.rows,
        to_fill.holes,
        taught.labels,
        taught.machine,
        as_unjudged=to_fill.request.as_unjudged,
    )
    new = len(rows) - len(official.rows)
    rated = {(q, doc) for q, doc, _ in track.overrides.ratings if doc in to_fill.holes.get(q, ())}
    notes = (
        f"{plural(len(rated), 'hole')} that people rated in the grader's place: these ratings are on its "
        "scale, and count with --by grader only",
    )
    return Filled(
        to_fill,
        rows,
        taught.rule,
        0,
        new,
        to_fill.n_holes - new,
        0,
        0,
        (*taught.notes, *(notes if rated else ())),
    )


def _hole_labels(prediction: Prediction, pool: LearnedPool) -> Sequence[HoleLabel]:
    """Gains and labels as they are; the confidence of a label is the probability that a person's judgment,
    normal with the gain as mean, is nearest to it among the labels of the scale.
    """
    from scipy.special import ndtr

    scale = pool.learned.steps.scale
    borders = np.concatenate([[-np.inf], (scale[1:] + scale[:-1]) / 2, [np.inf]])
    at = np.searchsorted(scale, prediction.labels)
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = ndtr((borders[at + 1] - prediction.gains) / prediction.deviations) - ndtr(
            (borders[at] - prediction.gains) / prediction.deviations
        )
    return [
        HoleLabel(int(label), gain, chance if math.isfinite(chance) else None)
        for label, gain, chance in zip(
            prediction.labels.tolist(), prediction.gains.tolist(), chances.tolist(), strict=True
        )
    ]


def _in_words(pool: LearnedPool) -> str:
    scale, cuts = pool.learned.steps.scale.tolist(), pool.learned.cuts.tolist()
    steps = [
        f"from {cut:.2f}: {label:g}" for cut, label in zip(cuts, scale[1:], strict=True) if math.isfinite(cut)
    ]
    return (
        f"learned from {pool.learned.n_judgments:,} judgments, by expected label: "
        f"{', '.join([f'below: {scale[0]:g}', *steps])}"
    )
