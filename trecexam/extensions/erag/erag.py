"""`trecexam erag`: evaluates runs by a model's answers from each document, from here or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.gold import KIND, kilt_provenance
from converters.records import Item, Qrel
from converters.run import Run
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.erag import labels
from trecexam.extensions.erag.downstream import read_outputs
from trecexam.extensions.erag.evaluation import Evaluation, correlated, evaluated, measures_of
from trecexam.extensions.erag.grader import DEFAULT_METRIC, EragGrader, erag_prompt, label_of
from trecexam.extensions.erag.labels import CONTAINS_ANSWER, OUTPUTS, PROVENANCE, SOURCES
from trecexam.extensions.erag.metrics import Metric, metric_of
from trecexam.extensions.erag.runs import check_runs, counted_queries, lists, refused_lines, tied_runs
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder, refuse_code
from trecexam.graders import create
from trecexam.graders.base import Grader
from trecexam.graders.meter import Usage
from trecexam.graders.writing.create import create_writer
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Graded, count_missing
from trecexam.grades.open_track import GraderView
from trecexam.inputs.inputs import Needs, TrackInputs, read_inputs
from trecexam.inputs.official import never_judged, never_judged_note
from trecexam.inputs.pool import Texts
from trecexam.results.notes import LOST, Note
from trecexam.results.text import plural


@dataclass(frozen=True)
class EragRequest:
    """The settings of an evaluation: arguments of `track.erag.score`.

    Raises:
        TrecexamError: there are no such labels, or what is named is not for them.
    """

    gold: Path | None = None
    metric: str | Metric | None = None
    measures: tuple[str, ...] | None = None
    outputs: Path | None = None
    end_to_end: Path | None = None
    labels: str = OUTPUTS

    def __post_init__(self) -> None:
        if self.labels not in SOURCES:
            hint = did_you_mean(self.labels, SOURCES, f"the labels are {', '.join(SOURCES)}")
            raise TrecexamError(f"no labels '{self.labels}'; {hint}")
        if self.labels != OUTPUTS and (self.metric or self.outputs):
            raise TrecexamError(f"labels '{self.labels}' use no outputs: leave out metric and outputs")

    @property
    def asks_model(self) -> bool:
        """Whether a model must answer."""
        return self.labels == OUTPUTS and self.outputs is None

    def metric_name(self, folder: TrackFolder) -> str:
        """The name of the metric, of the labels, or of the function."""
        if self.labels != OUTPUTS:
            return self.labels
        if callable(self.metric):
            return str(getattr(self.metric, "__qualname__", type(self.metric).__name__))
        named = folder.config.grader.metric if self.metric is None else self.metric
        return DEFAULT_METRIC if named is None else named

    def metric_of(self, folder: TrackFolder) -> Metric:
        """The metric.

        Raises:
            TrackError: it is code that is not trusted.
            GraderError: there is none of this name.
        """
        if callable(self.metric):
            return self.metric
        name = self.metric_name(folder)
        refuse_code(name, folder.root, trusted=folder.trust_code)
        return metric_of(name, folder.root)


def erag_grader(folder: TrackFolder, request: EragRequest) -> Grader:
    """The downstream model: that of [grader] if its name is `erag`, else the one that writes test banks.

    Raises:
        GraderError: there is no model, it cannot run here, or there is no such metric.
    """
    config = folder.config
    if config.grader.name == "erag":
        # The grader does not need the function, which makes labels afterwards.
        metric = None if callable(request.metric) else request.metric_name(folder)
        settings = config.grader.model_copy(update={"metric": metric})
        return create(settings, folder.root, config.cluster, trust_code=folder.trust_code)
    return EragGrader(create_writer(config, folder.root), request.metric_of(folder), erag_prompt())


@dataclass(frozen=True)
class LoadedRequest:
    """A track whose pool has the documents to evaluate."""

    track: GradedTrack
    request: EragRequest
    query_ids: tuple[str, ...]
    unknown: Rejected | None

    @property
    def missing(self) -> int:
        """Documents without an answer of the model."""
        return count_missing(self.track, self.only)

    @property
    def only(self) -> dict[str, tuple[str, ...]]:
        """The evaluated documents: query_id -> doc_ids."""
        ranked = lists(self.track.inputs, self.query_ids, self.track.config.track.depth)
        only: dict[str, list[str]] = {}
        for query_id, doc_id in labels.documents(ranked, self.query_ids):
            only.setdefault(query_id, []).append(doc_id)
        return {query_id: tuple(doc_ids) for query_id, doc_ids in only.items()}


def load(loader: GraderView, request: EragRequest) -> LoadedRequest:
    """Reads the inputs; calls no model.

    Raises:
        TrecexamError, ConversionError: with the reason.
    """
    if request.measures is not None:
        measures_of(request.measures)
    folder = loader.folder
    track = loader.load(bank_files=_gold_files(folder, request))
    query_ids, unknown = _counted(folder, track.inputs)
    return LoadedRequest(track, request, tuple(query_ids), unknown)


def from_model(loaded: LoadedRequest, graded: Graded | None, used: Mapping[str, Any] | None) -> Evaluation:
    """The evaluation on the model's stored answers.

    Args:
        graded: what came of asking it now; None where nothing was missing.
        used: what that took, see `trecexam.grades.grading.usage`.
    """
    track, request = loaded.track, loaded.request
    label = partial(label_of, request.metric) if callable(request.metric) else track.grader.label
    assert label is not None, "the track's grader is `erag`"
    ranked = lists(track.inputs, loaded.query_ids, track.config.track.depth)
    labelled = labels.from_grades(track, label, ranked, loaded.query_ids)
    inputs = track.inputs
    files = {*inputs.bank_files, *inputs.dropped.run_files.values(), track.folder.passages()}
    file_names = {track.folder.shown(path) for path in files if path is not None}
    file_names |= {"the bank", track.folder.shown(track.folder.root)}
    rejected = [row for row in track.not_taken if row.file in file_names]
    notes: list[str] = []
    if graded is not None:
        notes.append(f"the model answered from {plural(graded.cells, 'document')}")
        if graded.cut:
            notes.append(f"{plural(graded.cut, 'document')} cut at the end to fit the model")
        if graded.why:
            notes.append(Note(f"ended early: {graded.why}", LOST))
    if graded is not None and used is not None:
        counts = dict(used["this_update"])
        cost = counts.pop("cost")
        notes.append(Usage(**counts).line(cost))
    return _finished(
        loaded.request, track.folder, labelled, ranked, loaded.query_ids, track.runs,
        rejected=[*rejected, loaded.unknown], notes=notes,
        complete=graded is None or graded.complete or bool(graded.why),
    )  # fmt: skip


def without_model(folder: TrackFolder, request: EragRequest) -> Evaluation:
    """The evaluation on outputs from a file, or on a baseline's labels; calls no model.

    Raises:
        TrecexamError, ConversionError: with the reason.
    """
    if request.measures is not None:
        measures_of(request.measures)
    track = read_inputs(folder, Needs(frozenset((KIND,))), bank_files=_gold_files(folder, request))
    query_ids, unknown = _counted(folder, track)
    ranked = lists(track, query_ids)
    golds = {query_id: track.bank.items[query_id][0] for query_id in query_ids}
    refused: tuple[Rejected, ...] = ()
    notes: list[str] = []
    if request.labels == CONTAINS_ANSWER:
        own_texts = track.dropped.own_texts
        needed = {doc_id for _, doc_id in labels.documents(ranked, query_ids)} - own_texts.keys()
        texts, refused = Texts(folder).of(needed) if needed else ({}, ())
        labelled = labels.from_texts({**texts, **own_texts}, golds, ranked)
    elif request.labels == PROVENANCE:
        labelled = labels.from_provenance(_provenance(track, folder), golds.keys(), ranked)
        # KILT's gold outputs name only what is right, so they say nothing about a run without it.
        without = never_judged(track.runs, track.judged, query_ids) if track.official else ()
        if without:
            notes.append(never_judged_note(without, len(track.runs), "values"))
    else:
        labelled, refused = _by_outputs(folder, request, golds, ranked)
    files = {folder.shown(path) for path in (*track.bank_files, *track.dropped.run_files.values())}
    rejected = [row for row in track.rejected if row.file in {*files, "the bank"}]
    return _finished(
        request, folder, labelled, ranked, query_ids, track.runs,
        rejected=[*rejected, unknown, *refused], notes=notes,
    )  # fmt: skip


def _by_outputs(
    folder: TrackFolder,
    request: EragRequest,
    golds: Mapping[str, Item],
    ranked: labels.Ranked,
) -> tuple[labels.Labelled, tuple[Rejected, ...]]:
    """Labels of the outputs in a file, and rejected lines."""
    assert request.outputs is not None
    errors: list[ConversionError] = []
    labelled = labels.from_outputs(
        read_outputs(request.outputs, errors.append),
        golds,
        partial(label_of, request.metric_of(folder)),
        ranked,
        request.outputs,
        errors.append,
    )
    return labelled, refused_lines(folder.shown(request.outputs), errors)


def _provenance(track: TrackInputs, folder: TrackFolder) -> Sequence[Qrel]:
    """The official judgments, or those of KILT's gold outputs.

    Raises:
        TrecexamError, ConversionError: there are none, or they cannot be read.
    """
    if track.official is not None:
        return track.official
    rows = [row for file in track.bank_files for row in kilt_provenance(file)]
    if not rows:
        raise TrecexamError(
            "no provenance: put qrels.txt into the track, or give a KILT file as gold outputs",
            path=folder.root,
        )
    return rows


def _finished(
    request: EragRequest,
    folder: TrackFolder,
    labelled: labels.Labelled,
    ranked: labels.Ranked,
    query_ids: Sequence[str],
    runs: Mapping[str, Run],
    *,
    rejected: Sequence[Rejected | None],
    notes: Sequence[str] = (),
    complete: bool = True,
) -> Evaluation:
    measures = None if request.measures is None else measures_of(request.measures)
    evaluation = replace(
        evaluated(request.metric_name(folder), labelled, ranked, query_ids, measures),
        rejected=tuple(row for row in rejected if row),
        notes=(*notes, *tied_runs(runs, query_ids)),
        complete=complete,
    )
    if request.end_to_end is not None:
        evaluation = correlated(evaluation, request.end_to_end, folder.shown(request.end_to_end))
    return replace(evaluation, notes=(*evaluation.notes, *evaluation.told()))


def _gold_files(folder: TrackFolder, request: EragRequest) -> tuple[Path, ...]:
    if request.gold is not None:
        return (request.gold,)
    files = folder.bank(optional=True)
    if not files:
        raise TrecexamError("no gold outputs: name their file with --gold", path=folder.root)
    return files


def _counted(folder: TrackFolder, track: TrackInputs) -> tuple[list[str], Rejected | None]:
    check_runs(folder, track)
    query_ids, unknown = counted_queries(folder, track)
    if not query_ids:
        first = next(iter(track.rejected), None)
        why = "" if first is None else f" ({first})"
        raise TrecexamError(
            f"no query of the track has gold outputs{why}", path=folder.shown(track.bank_files[0])
        )
    return query_ids, unknown
