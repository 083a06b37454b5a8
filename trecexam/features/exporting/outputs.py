"""The Rubric-Qrels in out/: labels, expected gains, and which passage reaches which item."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import numpy as np

from converters.trec_qrels import qrels_lines
from trecexam.errors import TrecexamError
from trecexam.feature import Feature
from trecexam.grades.evaluation import probable_ratings
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Tables
from trecexam.results.table import Table
from trecexam.scores.expected import gains
from trecexam.scores.labels import labels, naming
from trecexam.scores.ratings import QueryRatings

LABELS, GAINS, SUBTOPICS = "rubric.qrels", "rubric.gains.tsv", "rubric.subtopics.qrels"


def label_lines(track: GradedTrack) -> bytes:
    """Return the labels of all rated passages as a qrels file, sorted by query and document."""
    scores = track.config.scores
    parts = []
    for q in track.ratings():
        label = labels(q, scores.label, scores.min_rating, scores.min_answers)
        doc_ids = sorted(label)
        try:
            parts.append(qrels_lines(q.query_id, "0", doc_ids, map(label.__getitem__, doc_ids)))
        except ValueError as error:
            hint = "rename it in queries, bank and runs; no text is graded again"
            raise TrecexamError(f"{error}; {hint}", path=track.folder.root) from None
    return b"".join(parts)


def gain_table(track: GradedTrack) -> Table:
    """Return the expected gain of each labelled passage beside its label, sorted by query and document."""
    scores = track.config.scores
    rows = []
    for q in probable_ratings(track):
        label = labels(q, scores.label, scores.min_rating, scores.min_answers)
        gain = dict(zip(q.doc_ids, gains(q, scores.min_answers).tolist(), strict=True))
        rows += [(q.query_id, doc_id, gain[doc_id], label[doc_id]) for doc_id in sorted(label)]
    return Table(("query_id", "doc_id", "gain", "label"), tuple(rows))


def subtopic_lines(queries: Iterable[QueryRatings], min_rating: int) -> Iterator[bytes]:
    """Yield rows of `trecexam.scores.labels.subtopic_qrels` as sorted lines: query, item, document."""
    for q in queries:
        # Ids have no white space: `label_lines` refused others.
        ends = np.array([[f" {doc_id} {label}\n" for doc_id in q.doc_ids] for label in (0, 1)], object)
        reached = (q.ratings >= max(min_rating, 0)).astype(np.int8)
        has_row = naming(q.ratings, q.rated) >= 0
        for item in range(q.n_items):
            rows = np.flatnonzero(has_row[:, item])
            start, lines = f"{q.query_id} {item + 1}", ends[reached[rows, item], rows].tolist()
            yield start.join(["", *lines]).encode()


def _gains(track: GradedTrack) -> Tables | None:
    return Tables({"gains": gain_table(track)}) if track.config.scores.label == "expected" else None


def _subtopics(track: GradedTrack) -> bytes:
    # Joined at once, the lines would be in memory twice.
    content = io.BytesIO()
    content.writelines(subtopic_lines(track.ratings(), track.config.scores.min_rating))
    return content.getvalue()


EXPORTING = Feature(
    {
        LABELS: ("Rubric-Qrels: a label for each passage. trec_eval reads them.", label_lines),
        GAINS: ('Each passage\'s expected gain and label, with `label = "expected"`.', _gains),
        SUBTOPICS: (
            "Which passage reaches which item: `query_id item doc_id 0/1`. ndeval reads them.",
            _subtopics,
        ),
    }
)
