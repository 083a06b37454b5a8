"""`trecexam erag`: evaluates runs by a model's answers from each document, from here or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ir_measures import Measure

from converters.errors import ConversionError
from converters.gold import KIND, kilt_provenance
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.erag.end_to_end import QueryCorrelation, query_correlations, read_end_to_end
from trecexam.extensions.erag.evaluation import Evaluation
from trecexam.extensions.erag.grader import DEFAULT_METRIC, EragGrader, erag_prompt, label_of
from trecexam.extensions.erag.labels import (
    OUTPUTS,
    PROVENANCE,
    SOURCES,
    Labelled,
    document_texts,
    label_provenance,
    label_texts,
    read_outputs,
    stored_outputs,
)
from trecexam.extensions.erag.metrics import Metric, contains_answer, exact_match, metric_of, scored
from trecexam.extensions.erag.retrieval import DEFAULT, Ranked, allowed, measure_values, measures_of
from trecexam.files.stamps import Rejected
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder, refuse_code
from trecexam.graders import create
from trecexam.graders.base import Estimate, Grader
from trecexam.graders.writing.create import create_writer, writing_purse
from trecexam.grades import grading
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.inputs.inputs import Needs, TrackInputs, read_inputs
from trecexam.inputs.official import never_judged, never_judged_note
from trecexam.inputs.pool import Texts
from trecexam.results.notes import LOST, Note, rejected_notes
from trecexam.results.text import plural, shorten_list
from trecexam.scores.leaderboard import leaderboard


@dataclass(frozen=True)
class EragRequest:
    """The settings of an evaluation: arguments of `track.erag.score`."""

    folder: TrackFolder
    gold: Path | None = None
    metric: str | Metric | None = None
    measures: Sequence[Measure] | None = None
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
    def metric_name(self) -> str:
        """The name of the metric, of the labels, or of the function."""
        if self.labels != OUTPUTS:
            return self.labels
        if callable(self.metric):
            return str(getattr(self.metric, "__qualname__", type(self.metric).__name__))
        named = self.folder.config.grader.metric if self.metric is None else self.metric
        return DEFAULT_METRIC if named is None else named

    def load_metric(self) -> Metric:
        """Return the metric; code must be trusted."""
        if callable(self.metric):
            return self.metric
        refuse_code(self.metric_name, self.folder.root, trusted=self.folder.trust_code)
        return metric_of(self.metric_name, self.folder.root)

    def gold_files(self) -> tuple[Path, ...]:
        """Return the files with gold outputs; refuse a track without any."""
        files = self.folder.bank(optional=True) if self.gold is None else (self.gold,)
        if not files:
            raise TrecexamError("no gold outputs: name their file with --gold", path=self.folder.root)
        return tuple(files)


class Lists(NamedTuple):
    """The runs' lists of the queries with gold outputs.

    Attributes:
        golds: query_id -> gold outputs; sorted.
        only: query_id -> all ranked documents, sorted.
        rejected: gold outputs of queries that the track does not have.
    """

    golds: Mapping[str, tuple[str, ...]]
    ranked: Ranked
    only: Mapping[str, Sequence[str]]
    rejected: tuple[Rejected, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(query_id, doc_id) of all ranked documents."""
        return [(query_id, doc_id) for query_id, doc_ids in self.only.items() for doc_id in doc_ids]


def evaluate(
    request: EragRequest,
    progress: Callable[[grading.Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Evaluation:
    """Evaluate the runs; a model is asked only if labels are made from outputs and no file has them."""
    if request.labels != OUTPUTS or request.outputs is not None:
        return _without_model(request)
    # The metric before any model: code may be refused.
    folder, metric, gold_files = request.folder, request.load_metric(), request.gold_files()
    # The settings section with the budget.
    purse = None if folder.config.grader.name == "erag" else writing_purse(folder)
    notes: list[str] = []
    complete = True
    with OpenTrack(folder) as loaders:
        view = GraderView(loaders, folder, _grader(folder), purse)
        track = view.load(bank_files=gold_files)
        lists = _lists(folder, track.inputs, track.config.track.depth)
        if grading.count_missing(track, lists.only):
            with track_lock(folder.lock_path):
                grading.refuse_lost_grades(view)
                loaders.open_to_write()
                track = view.load(bank_files=gold_files)
                lists = _lists(folder, track.inputs, track.config.track.depth)
                track, graded = grading.grade(view, track, progress, stop, only=lists.only)
            complete = graded.complete or bool(graded.why)
            notes.append(f"the model answered from {plural(graded.cells, 'document')}")
            if graded.cut:
                notes.append(f"{plural(graded.cut, 'document')} cut at the end to fit the model")
            if graded.why:
                notes.append(Note(f"ended early: {graded.why}", LOST))
            if meter := view.grader.meter:
                notes.append(meter.used.line(meter.cost(meter.used)))
        outputs = stored_outputs(track, lists.pairs)
    labelled = label_texts(outputs, lists.golds, partial(label_of, metric))
    # People's ratings may be of items other than these gold outputs.
    people = {folder.shown(folder.overrides()), folder.shown(folder.judgments())}
    rejected = [row for row in track.not_taken if row.file not in people]
    return _evaluation(request, lists, labelled, rejected, notes, complete=complete)


def _evaluation(
    request: EragRequest,
    lists: Lists,
    labelled: Labelled,
    rejected: Iterable[Rejected],
    notes: Iterable[str] = (),
    *,
    complete: bool = True,
) -> Evaluation:
    measures = measures_of(DEFAULT) if request.measures is None else request.measures
    able, refused = allowed(measures, labelled.labels)
    values = measure_values(labelled.labels, able, list(lists.golds), lists.ranked)
    answered = {run: [q for q, doc_ids in of.items() if doc_ids] for run, of in lists.ranked.items()}
    rejected = [*rejected, *lists.rejected]
    correlations: tuple[QueryCorrelation, ...] = ()
    if request.end_to_end is not None:
        errors: list[ConversionError] = []
        scores = read_end_to_end(request.end_to_end, values, errors)
        correlations = tuple(query_correlations(values, scores))
        rejected += _rejected_lines(request.folder.shown(request.end_to_end), errors)
    evaluation = Evaluation(
        request.metric_name,
        labelled,
        values,
        leaderboard(values, values.measures, values.query_ids, answered),
        () if request.measures is None else refused,
        correlations,
        tuple(rejected),
        complete=complete,
    )
    notes = (*rejected_notes(rejected), *notes, *evaluation.summary_notes())
    return replace(evaluation, notes=notes)


def estimate(request: EragRequest) -> Estimate:
    """Estimate what asking the model would take."""
    with OpenTrack(request.folder) as loaders:
        view = GraderView(loaders, request.folder, _grader(request.folder))
        track = view.load(bank_files=request.gold_files())
        _lists(request.folder, track.inputs)
        return grading.estimate(view, track)


def _grader(folder: TrackFolder) -> Grader:
    """Return the model of [grader] if its name is `erag`, else the one that writes test banks.

    Labels are made from the outputs afterwards, by the metric that was asked for.
    """
    config = folder.config
    if config.grader.name == "erag":
        settings = config.grader.model_copy(update={"metric": None})
        return create(settings, folder.root, config.elsewhere)
    return EragGrader(create_writer(config, folder.root), exact_match, erag_prompt())


def _without_model(request: EragRequest) -> Evaluation:
    folder = request.folder
    inputs = read_inputs(folder, Needs(frozenset((KIND,))), bank_files=request.gold_files())
    lists = _lists(folder, inputs)
    rejected = list(inputs.rejected)
    if request.labels == PROVENANCE:
        labelled, notes = _by_provenance(folder, inputs, lists)
        return _evaluation(request, lists, labelled, rejected, notes)
    if request.outputs is not None:
        label = partial(label_of, request.load_metric())
        errors: list[ConversionError] = []
        texts = read_outputs(request.outputs, lists.golds, lists.pairs, errors)
        rejected += _rejected_lines(folder.shown(request.outputs), errors)
    else:
        label = partial(scored, contains_answer)
        own_texts = inputs.dropped.own_texts
        needed = {doc_id for _, doc_id in lists.pairs} - own_texts.keys()
        found, unread = Texts(folder).of(needed) if needed else ({}, ())
        rejected += unread
        texts = document_texts({**found, **own_texts}, lists.pairs)
    return _evaluation(request, lists, label_texts(texts, lists.golds, label), rejected)


def _by_provenance(folder: TrackFolder, inputs: TrackInputs, lists: Lists) -> tuple[Labelled, list[str]]:
    """Return labels by the official judgments, else by KILT's gold outputs; and notes."""
    if inputs.official is not None:
        without = never_judged(inputs.runs, inputs.judged, lists.golds)
        notes = [never_judged_note(without, len(inputs.runs), "values")] if without else []
        return label_provenance(inputs.official, lists.golds, lists.pairs), notes
    # KILT's gold outputs name only what is right, so they say nothing about a run without it.
    qrels = [row for file in inputs.bank_files for row in kilt_provenance(file)]
    if not qrels:
        raise TrecexamError(
            "no provenance: put qrels.txt into the track, or give a KILT file as gold outputs",
            path=folder.root,
        )
    return label_provenance(qrels, lists.golds, lists.pairs), []


def _lists(folder: TrackFolder, inputs: TrackInputs, depth: int | None = None) -> Lists:
    """Return the runs' lists to this depth, None for all of them; refuse a track without gold or runs."""
    items, runs = inputs.bank.items, inputs.runs
    if not items:
        why = next((f": {row}" for row in inputs.rejected), "")
        raise TrecexamError(f"no gold outputs can be read{why}", path=inputs.bank_files[0])
    if not runs:
        files = {folder.shown(path) for path in folder.run_files()}
        why = next((f" (rejected: {row})" for row in inputs.rejected if row.file in files), "")
        raise TrecexamError(f"no run to evaluate in {folder.shown(folder.runs)}{why}", path=folder.root)
    known = set(inputs.own_queries).union(*(run.query_ids for run in runs.values()))
    query_ids = [query_id for query_id in inputs.bank.query_ids if query_id in known]
    unknown = [query_id for query_id in inputs.bank.query_ids if query_id not in known]
    file = folder.shown(inputs.bank_files[0]) if len(inputs.bank_files) == 1 else "the bank"
    some = f"{len(unknown):,} of its {plural(len(items), 'query')} not in the track, left out"
    rejected = Rejected(file, None, f"{some}: {shorten_list(unknown, dots=True)}", "line")
    ranked = {name: {q: run.ranking(q, depth) for q in query_ids} for name, run in sorted(runs.items())}
    return Lists(
        {q: items[q][0].gold_answers or (items[q][0].text,) for q in query_ids},
        ranked,
        {q: sorted({doc_id for lists in ranked.values() for doc_id in lists[q]}) for q in query_ids},
        (rejected,) if unknown else (),
    )


def _rejected_lines(file: str, errors: Iterable[ConversionError]) -> list[Rejected]:
    return [Rejected(file, error.line, error.reason, error.lost) for error in errors]
