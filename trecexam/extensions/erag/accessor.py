"""`track.erag`: evaluates runs by a downstream model's answers from their documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trecexam.extensions.erag.erag import EragRequest, erag_grader, from_model, load, without_model
from trecexam.extensions.erag.evaluation import ALWAYS, FILES, Evaluation
from trecexam.extensions.erag.labels import OUTPUTS
from trecexam.extensions.erag.metrics import Metric
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.writing.create import writing_purse
from trecexam.grades import grading
from trecexam.grades.grading import Progress
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.inputs.protected import refuse_folder
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.track_groups import Group


class EragAccessor(Group):
    """Scores runs by a RAG system's answers from each document."""

    def score(
        self,
        gold: Path | str | None = None,
        metric: str | Metric | None = None,
        *,
        measures: Measures | None = None,
        outputs: Path | str | None = None,
        end_to_end: Path | str | None = None,
        labels: str = OUTPUTS,
        output: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Evaluation:
        """eRAG: labels each document with the score of the model's answer from it alone, like `erag`.

        Outputs are kept in the track's store, so each prompt is sent once, whatever the metric.

        Args:
            gold: the gold outputs; None for the track's bank.
            metric: em, f1, rouge-l, accuracy, module:function, or a function of output and gold outputs; None
                for the track's, else em.
            measures: names; None for P, nDCG, Success, R, AP and RR at 10, as far as the labels allow.
            outputs: `query_id, doc_id, output` lines, in place of a model.
            end_to_end: `run query_id score` lines, to correlate with.
            labels: "outputs"; or a baseline's, for which no model runs: "contains-answer", 1 where the
                document contains a gold answer, or "provenance", 1 where the track's official judgments name
                it, or KILT's gold outputs.
            output: a folder for the files; None writes none. Nothing is written where it was stopped.
            progress: called after each batch of outputs.
            stop: asked again and again; True ends it early.

        Raises:
            LockedError: another process grades this track, and there is something to ask.
            StoreError: the store is gone or an older one, and what it had would be paid for again.
        """
        folder = self._track.folder
        names = names_of(measures)
        request = EragRequest(
            _path(gold),
            metric,
            tuple(names) if names else None,
            _path(outputs),
            _path(end_to_end),
            labels,
        )
        if output is not None:
            inputs = folder.root, request.gold, request.outputs, request.end_to_end
            refuse_folder(Path(output), inputs, FILES, always=ALWAYS)
        evaluation = (
            _by_model(folder, request, progress, stop)
            if request.asks_model
            else without_model(folder, request)
        )
        if output is not None and evaluation.complete:
            evaluation.write(Path(output))
        return evaluation

    def estimate(self, gold: Path | str | None = None, *, timed: bool = False) -> Estimate:
        """Estimates the documents ("cells"), tokens and cost of `score`; calls no model.

        Args:
            timed: also how long, where the model is in this process: it answers from a few documents, and
                what it says is not kept.
        """
        request = EragRequest(gold=_path(gold))
        folder = self._track.folder
        with OpenTrack(folder) as loaders:
            loader = GraderView(loaders, folder, erag_grader(folder, request))
            track = load(loader, request).track
            estimate = grading.estimate(loader, track)
            if not timed or estimate.time is not None:
                return estimate
            return estimate._replace(time=grading.measure_time(loader, track))


def _by_model(
    folder: TrackFolder,
    request: EragRequest,
    progress: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> Evaluation:
    # The settings section with the budget.
    purse = None if folder.config.grader.name == "erag" else writing_purse(folder)
    with OpenTrack(folder) as loaders:
        loader = GraderView(loaders, folder, erag_grader(folder, request), purse)
        loaded, graded = load(loader, request), None
        if loaded.missing:
            with track_lock(folder.lock_path):
                grading.refuse_lost_grades(loader)
                loaders.open_to_write()
                loaded = load(loader, request)
                track, graded = grading.grade(loader, loaded.track, progress, stop, only=loaded.only)
                loaded = replace(loaded, track=track)
        return from_model(loaded, graded, grading.usage(loader))


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
