"""The `teacher` of `trecexam fill`: fills holes with labels learned from the track's judgments."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.learn.arithmetic.learning import Prediction, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.learn import CERTAIN_DIGITS
from trecexam.extensions.learn.learned_pool import LearnedPool, fit_pool, gather_data, track_encoder
from trecexam.extensions.learn.validation import losses_in_words, validation_basis
from trecexam.features.fill.records import (
    GRADER,
    LEARNED,
    NOTHING,
    Advice,
    Encoded,
    HoleLabel,
    Labels,
    Machine,
    TaughtLabels,
)
from trecexam.files.kept import read_object
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import Official
from trecexam.inputs.sources import LEARNED_IDENTITY


class JudgmentsTeach:
    """Labels that a track's judgments teach, and whether they are the best way to fill."""

    def advice(self, track: GradedTrack, official: Official) -> Advice:
        stored = read_object(track.folder.out / LEARNED_IDENTITY).get("cross_validation")
        try:
            best, losses, basis = stored["best"], stored["losses"], stored["basis"]  # type: ignore[index]
            summary = losses_in_words(best, losses)
            now = validation_basis(track, official, track_encoder(track).identity)
            other = [name for name, digest in now.items() if basis.get(name) != digest]
            if best not in losses or not {LEARNED, GRADER, NOTHING}.issuperset(losses):
                raise KeyError(best)
        except (TypeError, KeyError, ValueError, AttributeError):
            # None, or damaged.
            return Advice(None)
        except TrecexamError as error:
            return Advice(None, why=f"the stored cross-validation is not used: {error}")
        why = ""
        if other:
            why = f"was made with another {' and '.join(other)}"
        elif best == GRADER and not track.counts.ok:
            why = "was made with grades that no longer exist"
        if why:
            again = f"run `trecexam learn {quoted(track.folder.root)}` again"
            return Advice(None, why=f"the stored cross-validation {why}: {again}")
        return Advice(best, summary)

    def labels(self, track: GradedTrack, official: Official, progress: Encoded | None = None) -> TaughtLabels:
        pool = fit_pool(track, gather_data(track, official=official, progress=progress))
        labels = {
            query.query_id: dict(zip(query.doc_ids, _hole_labels(prediction), strict=True))
            for query, prediction in zip(pool.data.queries, pool.predictions, strict=True)
        }
        return TaughtLabels(
            labels, _in_words(pool), Machine(LEARNED, str(pool.data.encoder["model"] or "")), pool.notes
        )

    def learner(self, track: GradedTrack, official: Official, progress: Encoded | None = None) -> PoolLearner:
        return PoolLearner(gather_data(track, official=official, progress=progress).queries)


TEACHER = JudgmentsTeach()


class PoolLearner:
    """Learns labels from the remaining judgments.

    Attributes:
        n_unlearned: how often these were too few to learn from.
    """

    def __init__(self, queries: Sequence[QueryPassages]) -> None:
        self._queries = queries
        self.n_unlearned = 0

    def __call__(self, dropped: Mapping[str, Collection[str]]) -> Labels:
        seen = [
            query.hiding(np.array([doc_id in docs for doc_id in query.doc_ids], bool))
            for query in self._queries
            for docs in [dropped.get(query.query_id, ())]
        ]
        with threadpool_limits(1):
            try:
                learned = fit(seen)
            except ValueError:
                self.n_unlearned += 1
                return {}
            return {
                query.query_id: dict(
                    zip(query.doc_ids, map(int, predict(learned, query).labels.tolist()), strict=True)
                )
                for query in seen
                if query.query_id in dropped
            }


def _hole_labels(prediction: Prediction) -> list[HoleLabel]:
    """Gains, labels, and the probability that a person gives this label."""
    return [
        HoleLabel(int(label), round(gain, CERTAIN_DIGITS), round(confidence, CERTAIN_DIGITS))
        for label, gain, confidence in zip(
            prediction.labels.tolist(),
            prediction.gains.tolist(),
            prediction.confidences.tolist(),
            strict=True,
        )
    ]


def _in_words(pool: LearnedPool) -> str:
    scale, cuts = pool.learned.scale.tolist(), pool.learned.cuts.tolist()
    # A passage gets the highest label whose cut it reaches: those below that share a cut are never given.
    highest = {cut: label for cut, label in zip(cuts, scale[1:], strict=True) if math.isfinite(cut)}
    steps = [f"from {cut:.2f}: {label:g}" for cut, label in highest.items()]
    never = [f"{label:g}" for label in scale[1:] if label not in highest.values()]
    words = f"{', '.join(never[:-1])} and {never[-1]}" if len(never) > 1 else "".join(never)
    return (
        f"learned from {pool.learned.n_judgments:,} judgments, by expected label: "
        f"{', '.join([f'below: {scale[0]:g}', *steps])}"
        + (f"; {words} {'is' if len(never) == 1 else 'are'} never given" if never else "")
    )
