"""`track.erag`: evaluates runs by a downstream model's answers from their documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trecexam.extensions.erag.erag import EragRequest, estimate, evaluate
from trecexam.extensions.erag.evaluation import ALWAYS, FILES, Evaluation
from trecexam.extensions.erag.labels import OUTPUTS
from trecexam.extensions.erag.metrics import Metric
from trecexam.extensions.erag.retrieval import measures_of
from trecexam.graders.base import Estimate
from trecexam.grades.grading import Progress
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
        folder, names = self._track.folder, names_of(measures)
        request = EragRequest(
            folder,
            _path(gold),
            metric,
            measures_of(names) if names else None,
            _path(outputs),
            _path(end_to_end),
            labels,
        )
        if output is not None:
            inputs = folder.root, request.gold, request.outputs, request.end_to_end
            refuse_folder(Path(output), inputs, FILES, always=ALWAYS)
        evaluation = evaluate(request, progress, stop)
        if output is not None and evaluation.complete:
            evaluation.write(Path(output))
        return evaluation

    def estimate(self, gold: Path | str | None = None) -> Estimate:
        """Estimates the documents ("cells"), tokens and cost of `score`; calls no model."""
        return estimate(EragRequest(self._track.folder, _path(gold)))


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
