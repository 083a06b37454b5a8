"""Inputs of `trecexam erag`: the runs' documents, and a model's answers from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from converters.gold import kilt_provenance
from trecexam.errors import TrecexamError
from trecexam.extensions.erag.grader import DEFAULT_METRIC, EragGrader, erag_prompt
from trecexam.extensions.erag.labels import (
    NO_TEXT,
    Labelled,
    LabelTexts,
    Unlabelled,
    stored_outputs,
)
from trecexam.extensions.erag.metrics import Metric, exact_match, metric_of
from trecexam.extensions.erag.retrieval import Ranked
from trecexam.files.stamps import Rejected
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder, refuse_code
from trecexam.graders import create
from trecexam.graders.base import Estimate, Grader
from trecexam.graders.writing.create import create_writer, writing_purse
from trecexam.grades import grading
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.inputs.inputs import TrackInputs
from trecexam.inputs.official import never_judged, never_judged_note
from trecexam.inputs.pool import Texts
from trecexam.results.text import LOST, Note, plural, shorten_list


class Lists(NamedTuple):
    """Ranked lists of runs for the queries with gold outputs.

    Attributes:
        golds: query_id -> gold outputs; sorted.
        documents: query_id -> all ranked documents, sorted.
        rejected: rejected inputs, and gold outputs of queries that the track lacks.
    """

    golds: Mapping[str, tuple[str, ...]]
    ranked: Ranked
    documents: Mapping[str, Sequence[str]]
    rejected: list[Rejected]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(query_id, doc_id) of all ranked documents."""
        return [(query_id, doc_id) for query_id, doc_ids in self.documents.items() for doc_id in doc_ids]


def ask_model(
    folder: TrackFolder,
    files: Sequence[Path],
    notes: list[str],
    progress: Callable[[grading.Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> tuple[Lists, LabelTexts, bool]:
    """Return the lists, the model's outputs, and False if stopped; `notes` receives usage and cost."""
    # The settings section with the budget.
    purse = None if folder.config.grader.name == "erag" else writing_purse(folder)
    complete = True
    with OpenTrack(folder) as loaders:
        view = GraderView(loaders, folder, _grader(folder), purse)
        track = view.load(bank_files=files)
        lists = _lists_of_track(track)
        if grading.count_missing(track, lists.documents):
            with track_lock(folder.lock_path):
                grading.refuse_lost_grades(view)
                loaders.open_to_write()
                track = view.load(bank_files=files)
                lists = _lists_of_track(track)
                track, graded = grading.grade(view, track, progress, stop, only=lists.documents)
            complete = graded.complete or bool(graded.why)
            notes.append(f"the model answered from {plural(graded.cells, 'document')}")
            if graded.cut:
                notes.append(f"{plural(graded.cut, 'document')} cut at the end to fit the model")
            if graded.why:
                notes.append(Note(f"ended early: {graded.why}", LOST))
            if meter := view.grader.meter:
                notes.append(meter.used.line(meter.cost(meter.used)))
        return lists, stored_outputs(track, lists.pairs), complete


def _lists_of_track(track: GradedTrack) -> Lists:
    folder = track.folder
    # People's ratings may belong to other items than these gold outputs.
    people = {folder.shown(folder.overrides()), folder.shown(folder.judgments())}
    rejected = [row for row in track.not_taken if row.file not in people]
    return lists_of(folder, track.inputs, rejected, track.config.track.depth)


def load_metric(folder: TrackFolder, metric: str | Metric | None) -> tuple[str, Metric]:
    """Return the name and function of a metric (None: the track's); code must be trusted."""
    if callable(metric):
        return str(getattr(metric, "__qualname__", type(metric).__name__)), metric
    names = (metric, folder.config.grader.metric, DEFAULT_METRIC)
    name = next(each for each in names if each is not None)
    refuse_code(name, folder.root, trusted=folder.trust_code)
    return name, metric_of(name, folder.root)


def gold_files(folder: TrackFolder, gold: Path | None) -> tuple[Path, ...]:
    """Return the files with gold outputs; refuse a track without any."""
    files = folder.bank(optional=True) if gold is None else (gold,)
    if not files:
        raise TrecexamError("no gold outputs: name their file with --gold", path=folder.root)
    return tuple(files)


def estimate(folder: TrackFolder, gold: Path | None) -> Estimate:
    """Estimate prompts, tokens and cost of asking the model."""
    with OpenTrack(folder) as loaders:
        view = GraderView(loaders, folder, _grader(folder))
        track = view.load(bank_files=gold_files(folder, gold))
        _lists_of_track(track)
        return grading.estimate(view, track)


def _grader(folder: TrackFolder) -> Grader:
    """Return the model of [grader] if its name is `erag`, else the one that writes test banks.

    Labels are made from the outputs later, by the requested metric.
    """
    config = folder.config
    if config.grader.name == "erag":
        settings = config.grader.model_copy(update={"metric": None})
        return create(settings, folder.root, config.elsewhere)
    return EragGrader(create_writer(config, folder.root), exact_match, erag_prompt())


def texts_of_documents(folder: TrackFolder, inputs: TrackInputs, lists: Lists) -> LabelTexts:
    """Return the texts of the ranked documents."""
    own_texts = inputs.dropped.own_texts
    needed = {doc_id for _, doc_id in lists.pairs} - own_texts.keys()
    by_id, unread = Texts(folder).of(needed) if needed else ({}, ())
    lists.rejected.extend(unread)
    texts = {**by_id, **own_texts}
    return {pair: texts.get(pair[1], Unlabelled(*pair, *NO_TEXT)) for pair in lists.pairs}


def label_by_provenance(folder: TrackFolder, inputs: TrackInputs, lists: Lists, notes: list[str]) -> Labelled:
    """Label documents in the provenance with 1, ranked or not, and other ranked documents with 0.

    The provenance comes from official judgments, else from KILT's gold outputs.

    Args:
        notes: receives a note on runs without judged documents.
    """
    qrels = inputs.official
    if qrels is None:
        # KILT's gold outputs name only right documents, so they say nothing about other runs.
        qrels = tuple(row for file in inputs.bank_files for row in kilt_provenance(file))
        if not qrels:
            raise TrecexamError(
                "no provenance: put qrels.txt into the track, or give a KILT file as gold outputs",
                path=folder.root,
            )
    elif without := never_judged(inputs.runs, inputs.judged, lists.golds):
        notes.append(never_judged_note(without, len(inputs.runs), "values"))
    named = {(row.query_id, row.doc_id) for row in qrels if row.relevance > 0 and row.query_id in lists.golds}
    labels: dict[str, dict[str, float]] = {}
    for query_id, doc_id in sorted(named.union(lists.pairs)):
        labels.setdefault(query_id, {})[doc_id] = float((query_id, doc_id) in named)
    return Labelled(labels)


def lists_of(
    folder: TrackFolder, inputs: TrackInputs, rejected: Iterable[Rejected], depth: int | None = None
) -> Lists:
    """Return the runs' lists to this depth (None: whole lists); refuse a track without gold or runs."""
    items, runs = inputs.bank.items, inputs.runs
    if not items:
        why = next((f": {row}" for row in inputs.rejected), "")
        raise TrecexamError(f"no gold outputs can be read{why}", path=inputs.bank_files[0])
    if not runs:
        files = {folder.shown(path) for path in folder.run_files()}
        why = next((f" (rejected: {row})" for row in inputs.rejected if row.file in files), "")
        raise TrecexamError(f"no run to evaluate in {folder.shown(folder.runs)}{why}", path=folder.root)
    track_queries = set(inputs.own_queries).union(*(run.query_ids for run in runs.values()))
    query_ids = [query_id for query_id in inputs.bank.query_ids if query_id in track_queries]
    ranked = {name: {q: run.ranking(q, depth) for q in query_ids} for name, run in sorted(runs.items())}
    lists = Lists(
        {q: items[q][0].gold_answers or (items[q][0].text,) for q in query_ids},
        ranked,
        {q: sorted({doc_id for of in ranked.values() for doc_id in of[q]}) for q in query_ids},
        [*rejected],
    )
    if unknown := [query_id for query_id in inputs.bank.query_ids if query_id not in track_queries]:
        file = folder.shown(inputs.bank_files[0]) if len(inputs.bank_files) == 1 else "the bank"
        some = f"{len(unknown):,} of its {plural(len(items), 'query')} not in the track, left out"
        lists.rejected.append(Rejected(file, None, f"{some}: {shorten_list(unknown)}", "line"))
    return lists
