"""Runs evaluated by what a downstream model makes of their documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.files.track_lock import TrackLock
from trecexam.line.loader import TrackLoader
from trecexam.track_methods.opened import Opened, names_of

if TYPE_CHECKING:
    from trecexam.features.erag.erag import EragRequest
    from trecexam.features.erag.evaluation import Evaluation
    from trecexam.graders import Grader
    from trecexam.graders.base import Estimate
    from trecexam.graders.erag.metrics import Metric
    from trecexam.line.grading import Progress
    from trecexam.track_methods.opened import MeasureLike


class Downstream(Opened):
    """Runs evaluated by what a downstream model makes of their documents."""

    def erag(
        self,
        gold: Path | str | None = None,
        metric: str | Metric | None = None,
        *,
        runs: Sequence[str | Path] = (),
        measures: Sequence[MeasureLike] | None = None,
        outputs: Path | str | None = None,
        end_to_end: Path | str | None = None,
        depth: int | None = None,
        prompt: Path | str | None = None,
        output: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        grader: Grader | None = None,
    ) -> Evaluation:
        """eRAG: a document's label is the score of what the model writes with it alone: what `erag` does.

        Outputs are kept in the track's store, so that none is asked for twice, whatever the metric.

        Args:
            gold: the gold outputs; None for the track's bank.
            metric: em, f1, rouge-l, accuracy, module:function, or a function of output and gold outputs; None
                for the track's, else em.
            runs: names of runs of the track, or files; none for all of the track.
            measures: names; None for P, nDCG, Success, R, AP and RR at 10, as far as the labels allow.
            outputs: `query_id, doc_id, output` lines, in place of a model.
            end_to_end: `run query_id score` lines, to correlate with.
            depth: documents of each list that count; None for the track's depth, with `outputs` for all.
            prompt: a file of your own.
            output: a folder for the files; None writes none. Nothing is written where it was stopped.
            progress: called after each batch of outputs.
            stop: asked again and again; True ends it early.
            grader: an `EragGrader` of your own.

        Raises:
            LockedError: another process grades this track, and there is something to ask.
            TrecexamError, ConversionError: what stands in the way.
        """
        from trecexam.features.erag.erag import erag_grader, from_model, from_outputs, load

        wanted = _wanted(gold, metric, runs, measures, outputs, end_to_end, depth, prompt)
        own = {self.folder.out: "has the track's own outputs", self.folder.runs: "is where runs are dropped"}
        for folder, why in own.items():
            if output is not None and Path(output).resolve() == folder.resolve():
                raise TrecexamError(f"{why}: give another folder", path=output)
        if wanted.outputs is not None:
            found = from_outputs(self.folder, wanted)
        else:
            with TrackLoader(self.folder, grader or erag_grader(self.folder, wanted)) as loader:
                loaded, graded = load(loader, wanted), None
                if loaded.missing:
                    with TrackLock(self.folder.lock_path):
                        loader.open_to_write()
                        loaded = load(loader, wanted)
                        track, graded = loader.grade(loaded.track, progress, stop, only=loaded.only)
                        loaded = replace(loaded, track=track)
                found = from_model(loaded, graded, loader.grading.usage())
        if output is not None and found.complete:
            found.write(Path(output))
        return found

    def estimate_erag(
        self,
        gold: Path | str | None = None,
        *,
        runs: Sequence[str | Path] = (),
        depth: int | None = None,
        prompt: Path | str | None = None,
    ) -> Estimate:
        """What `erag` would have to ask the model, in documents ("cells"), tokens and money; asks nobody."""
        from trecexam.features.erag.erag import erag_grader, load

        wanted = _wanted(gold, None, runs, None, None, None, depth, prompt)
        with TrackLoader(self.folder, erag_grader(self.folder, wanted)) as loader:
            return loader.grading.estimate(load(loader, wanted).track)


def _wanted(
    gold: Path | str | None,
    metric: str | Metric | None,
    runs: Sequence[str | Path],
    measures: Sequence[MeasureLike] | None,
    outputs: Path | str | None,
    end_to_end: Path | str | None,
    depth: int | None,
    prompt: Path | str | None,
) -> EragRequest:
    from trecexam.features.erag.erag import EragRequest

    def path(given: Path | str | None) -> Path | None:
        return None if given is None else Path(given)

    names = names_of(measures)
    return EragRequest(
        path(gold),
        metric,
        tuple(map(str, runs)),
        tuple(names) if names else None,
        path(outputs),
        path(end_to_end),
        depth,
        path(prompt),
    )
