"""What a track's `erag` and `estimate_erag` do: gather what is asked for, have it answered, and evaluate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.erag.baselines import OUTPUTS
from trecexam.extensions.erag.erag import EragRequest, erag_grader, from_model, load, without_model
from trecexam.extensions.erag.evaluation import Evaluation
from trecexam.extensions.erag.metrics import Metric
from trecexam.files.track_lock import TrackLock
from trecexam.graders import Grader
from trecexam.graders.base import Estimate
from trecexam.graders.writing.create import writing_purse
from trecexam.line.grading import Progress
from trecexam.line.grading_time import measure_time
from trecexam.line.loader import TrackLoader
from trecexam.line.lost_grades import refuse_lost_grades
from trecexam.line.measure_names import names_of
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.line.measure_names import MeasureLike


def erag(
    folder: TrackFolder,
    gold: Path | str | None = None,
    metric: str | Metric | None = None,
    *,
    runs: Sequence[str | Path] = (),
    measures: Sequence[MeasureLike] | None = None,
    outputs: Path | str | None = None,
    end_to_end: Path | str | None = None,
    depth: int | None = None,
    prompt: Path | str | None = None,
    labels: str = OUTPUTS,
    provenance: Path | str | None = None,
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
        labels: "outputs"; or a baseline's, for which no model runs: "contains-answer", 1 where the document
            contains a gold answer, or "provenance", 1 where `provenance` names it.
        provenance: qrels, or a KILT file; None for the track's official judgments, else what the gold outputs
            name.
        output: a folder for the files; None writes none. Nothing is written where it was stopped.
        progress: called after each batch of outputs.
        stop: asked again and again; True ends it early.
        grader: an `EragGrader` of your own.

    Raises:
        LockedError: another process grades this track, and there is something to ask.
        StoreError: the store is gone or an older one, and what it had would be paid for again.
        TrecexamError, ConversionError: what stands in the way.
    """
    names = names_of(measures)
    request = EragRequest(
        _path(gold),
        metric,
        tuple(map(str, runs)),
        tuple(names) if names else None,
        _path(outputs),
        _path(end_to_end),
        depth,
        _path(prompt),
        labels,
        _path(provenance),
    )
    own = {folder.out: "has the track's own outputs", folder.runs: "is where runs are dropped"}
    for place, why in own.items():
        if output is not None and Path(output).resolve() == place.resolve():
            raise TrecexamError(f"{why}: give another folder", path=output)
    if not request.asks_model:
        evaluation = without_model(folder, request)
    else:
        asked, purse = grader or erag_grader(folder, request), _purse(folder, grader)
        with TrackLoader(folder, asked, purse=purse) as loader:
            loaded, graded = load(loader, request), None
            if loaded.missing:
                with TrackLock(folder.lock_path):
                    refuse_lost_grades(loader)
                    loader.open_to_write()
                    loaded = load(loader, request)
                    track, graded = loader.grade(loaded.track, progress, stop, only=loaded.only)
                    loaded = replace(loaded, track=track)
            evaluation = from_model(loaded, graded, loader.grading.usage())
    if output is not None and evaluation.complete:
        evaluation.write(Path(output))
    return evaluation


def estimate_erag(
    folder: TrackFolder,
    gold: Path | str | None = None,
    *,
    runs: Sequence[str | Path] = (),
    depth: int | None = None,
    prompt: Path | str | None = None,
    timed: bool = False,
) -> Estimate:
    """What `erag` would have to ask the model, in documents ("cells"), tokens and money; asks nobody.

    Args:
        timed: also how long, where the model is in this process: it answers from a few documents, and what it
            says is not kept.
    """
    request = EragRequest(gold=_path(gold), runs=tuple(map(str, runs)), depth=depth, prompt=_path(prompt))
    with TrackLoader(folder, erag_grader(folder, request)) as loader:
        track = load(loader, request).track
        estimate = loader.grading.estimate(track)
        if not timed or estimate.time is not None:
            return estimate
        return estimate._replace(time=measure_time(loader, track))


def _purse(folder: TrackFolder, grader: Grader | None) -> str | None:
    """The section whose budget pays; None for that of the track's grader."""
    own = grader is not None or folder.config.grader.name == "erag"
    return None if own else writing_purse(folder)


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
