"""A model's answers from each ranked document of a track."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trecexam.extensions.erag.grader import BUILT_IN, EragGrader
from trecexam.extensions.erag.inputs import NO_TEXT, Texts, text_of
from trecexam.extensions.erag.metrics import NoLabel, exact_match
from trecexam.extensions.erag.retrieval import Pair
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder
from trecexam.graders import create
from trecexam.graders.writing.create import create_writer, writing_purse
from trecexam.grades import grading
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.results.text import LOST, Note, plural


def erag_view(track: OpenTrack, folder: TrackFolder) -> GraderView:
    """Return the view of [grader]'s model if its name is `erag`, else of the model that writes banks.

    Labels are made from the outputs later, by the requested metric.
    """
    config = folder.config
    if config.grader.name == "erag":
        settings = config.grader.model_copy(update={"metric": None})
        return GraderView(track, folder, create(settings, folder.root, config.elsewhere))
    grader = EragGrader(create_writer(config, folder.root), exact_match, BUILT_IN)
    return GraderView(track, folder, grader, writing_purse(folder))


def ask_model(
    view: GraderView,
    files: Sequence[Path],
    notes: list[str],
    progress: Callable[[grading.Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> GradedTrack:
    """Have the model answer from each ranked document without an answer.

    Args:
        files: with gold outputs.
        notes: receives usage and cost.
    """
    track = view.load(bank_files=files)
    if not grading.count_missing(track, track.ranked_passages()):
        return track
    with track_lock(view.folder.lock_path):
        grading.refuse_lost_grades(view)
        view.track.open_to_write()
        track = view.load(bank_files=files)
        track, graded = grading.grade(view, track, progress, stop, only=track.ranked_passages())
    notes.append(f"the model answered from {plural(graded.cells, 'document')}")
    if graded.cut:
        notes.append(f"{plural(graded.cut, 'document')} cut at the end to fit the model")
    if graded.why:
        notes.append(Note(f"ended early: {graded.why}", LOST))
    if meter := view.grader.meter:
        notes.append(meter.used.line(meter.cost(meter.used)))
    return track


def stored_outputs(track: GradedTrack, pairs: Sequence[Pair]) -> Texts:
    """Return the outputs in the track's store; the track's pool has the ranked documents."""
    unanswered = NoLabel("unanswered", "the model did not answer yet")
    outputs: dict[Pair, str | NoLabel] = {
        (q, doc_id): NO_TEXT if doc_id in track.sheets[q].without_text else unanswered for q, doc_id in pairs
    }
    for row in track.grade_rows({query_id for query_id, _ in pairs}):
        pair = row["query_id"], row["doc_id"]
        # With pool_judged, the pool has documents that are in no run.
        if pair in outputs and row["status"] in ("ok", "unparsed"):
            outputs[pair] = text_of(row["answer"], cut="cut_at" in row)
        elif pair in outputs:
            outputs[pair] = NoLabel(row["status"], row["answer"])
    return outputs
