"""Labels learned from a track's judgments, for `trecexam fill` and `trecexam simulate`."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import quoted
from trecexam.extensions.learn.arithmetic.learning import Learned, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.learned_pool import fit_pool, gather_data
from trecexam.extensions.learn.settings import LearnSection
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
from trecexam.files.atomic import sha256
from trecexam.files.kept import read_object
from trecexam.graders.base import identity_json
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import Official
from trecexam.inputs.sources import LEARNED_IDENTITY

#: Certain decimals of gains and standard deviations. scikit-learn's LogisticRegression
#: stops at a gradient of 1e-4; going on to 1e-12 moves gains of DL 2019 by up to 6e-4, standard deviations by
#: up to 2.5e-3 (a processor with other instructions: by 1e-7).
CERTAIN_DIGITS = 2


class JudgmentsTeach:
    """Learned labels of a track, and the advice on the best method to fill."""

    def advice(self, track: GradedTrack, official: Official) -> Advice:
        stored = read_object(track.folder.out / LEARNED_IDENTITY).get("cross_validation")
        stored = stored if isinstance(stored, dict) else {}
        best, losses = stored.get("best"), stored.get("losses")
        if not isinstance(losses, dict) or best not in losses or losses.keys() - {LEARNED, GRADER, NOTHING}:
            # None, or damaged.
            return Advice(None)
        if stored.get("basis") != basis(track, official):
            again = f"run `trecexam learn {quoted(track.folder.root)}` again"
            why = "was made with other judgments, or another grader or encoder"
            return Advice(None, why=f"the stored cross-validation {why}: {again}")
        ordered = sorted(losses, key=lambda method: (method != best, losses[method]))
        return Advice(best, ", ".join(f"{method} {losses[method]:.3f}" for method in ordered))

    def labels(self, track: GradedTrack, official: Official, progress: Encoded | None = None) -> TaughtLabels:
        data = gather_data(track, official=official, progress=progress)
        labels: dict[str, dict[str, HoleLabel]] = {}
        with threadpool_limits(1):
            learned, data = fit_pool(track, data)
            for query in data.queries:
                rows = zip(query.doc_ids, predict(learned, query).rows(), strict=True)
                labels[query.query_id] = {
                    doc_id: HoleLabel(label, round(gain, CERTAIN_DIGITS), round(confidence, CERTAIN_DIGITS))
                    for doc_id, (gain, _, label, confidence) in rows
                }
        machine = Machine(LEARNED, str(data.encoder["model"]))
        return TaughtLabels(labels, _in_words(learned), machine, data.notes)

    def learner(self, track: GradedTrack, official: Official, progress: Encoded | None = None) -> PoolLearner:
        return PoolLearner(gather_data(track, official=official, progress=progress).queries)


TEACHER = JudgmentsTeach()


def basis(track: GradedTrack, official: Official) -> str:
    """Return a digest of the judgments, grader and encoder that a cross-validation depends on."""
    judged = {query_id: dict(of_docs) for query_id, of_docs in official.judged.items()}
    content = [
        json.dumps(judged, sort_keys=True),
        identity_json(track.grader.identity),
        track.config.section(LearnSection).encoder,
    ]
    return sha256(json.dumps(content).encode())


class PoolLearner:
    """Learner of labels from the remaining judgments.

    Attributes:
        n_unlearned: number of calls with too few judgments.
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
                    zip(query.doc_ids, predict(learned, query).labels.astype(int).tolist(), strict=True)
                )
                for query in seen
                if query.query_id in dropped
            }


def _in_words(learned: Learned) -> str:
    scale, cuts = learned.scale.tolist(), learned.cuts.tolist()
    # A passage gets the highest label whose cut it reaches, so lower labels with the same cut never occur.
    highest = {cut: label for cut, label in zip(cuts, scale[1:], strict=True) if math.isfinite(cut)}
    steps = [f"below: {scale[0]:g}", *(f"from {cut:.2f}: {label:g}" for cut, label in highest.items())]
    steps += [f"never: {label:g}" for label in scale[1:] if label not in highest.values()]
    return f"learned from {learned.n_judgments:,} judgments, by expected label: {', '.join(steps)}"
