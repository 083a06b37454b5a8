"""Learning of labels of the pool's unjudged passages from a track's judgments."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from converters.records import Qrel
from converters.trec_qrels import qrels_line
from trecexam.cli import bars
from trecexam.extensions.learn.arithmetic.learning import predict
from trecexam.extensions.learn.arithmetic.passages import FEATURES
from trecexam.extensions.learn.learned_board import board_of, track_digest
from trecexam.extensions.learn.learned_pool import fit_pool, gather_data
from trecexam.extensions.learn.teaching import CERTAIN_DIGITS, basis
from trecexam.extensions.learn.validation import FILL, cross_validate
from trecexam.files.atomic import remove, replace_together
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress
from trecexam.inputs.official import Official
from trecexam.inputs.sources import LEARNED_IDENTITY, LEARNED_QRELS
from trecexam.results.result import Result, Tables
from trecexam.results.table import Table, to_json
from trecexam.results.text import LOST, Note, plural
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.values import rounded

TABLE, BOARD = "learned.tsv", "learned-leaderboard.tsv"

#: Columns: query, passage, gain, standard deviation, label, judged or not.
Row = tuple[str, str, float, float, int, str]


@dataclass(frozen=True, eq=False)
class LearnedLabels(Result):
    """Judged and learned labels of a pool's passages.

    Attributes:
        rows: query, passage, gain, standard deviation, label, judged or not; one for each pooled passage.
        qrels: the official judgments unchanged, people's judgments, then a line for each other row.
        board: the runs by expected nDCG and AP; None without runs.
        validation: the cross-validation on hidden judgments.
        identity: encoder, features and versions; `track` is a digest of the track's files, grades and
            settings.
        notes: number of learned labels, then warnings.
    """

    rows: tuple[Row, ...]
    qrels: bytes
    board: Leaderboard | None
    validation: Tables
    identity: dict[str, Any]
    notes: tuple[str, ...]

    def _declare(self) -> dict[str, Table]:
        """`labels`, as in learned.tsv; `ways`, the cross-validation; `leaderboard`, if there are runs."""
        labels = Table(("query_id", "doc_id", "gain", "sd", "label", "judged"), self.rows)
        return {
            "labels": rounded(labels, CERTAIN_DIGITS),
            **self.validation.tables,
            **({} if self.board is None else self.board.tables),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """The encoder, judgments, features and versions."""
        return {"learned": self.identity}

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write learned.tsv, learned.qrels, learned.json and, if there are runs, learned-leaderboard.tsv.

        Raises:
            TrecexamError: a file cannot be written.

        Returns:
            The files that changed.
        """
        contents = {TABLE: self.to_tsv().encode(), LEARNED_QRELS: self.qrels}
        stored = dict(self.identity)
        if self.board is not None:
            contents[BOARD] = self.board.to_tsv().encode()
            stored["leaderboard"] = json.loads(self.board.to_json())
        contents[LEARNED_IDENTITY] = to_json(stored).encode()
        written = replace_together(
            {folder / name: content for name, content in contents.items()}, into_special=False
        )
        if self.board is None:
            remove(folder / BOARD)
        return tuple(written)


def learn(
    track: GradedTrack,
    *,
    source: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> LearnedLabels:
    """Learn gains and labels of the whole pool from the track's judgments; grades nothing."""
    with bars.progress("learning") if progress is None else nullcontext(progress) as show:
        show(Progress(0, 0, loading="the encoder"))
        data = gather_data(
            track, source=source, progress=lambda done, of: show(Progress(done, of, what="texts encoded"))
        )
        with threadpool_limits(1):
            validation = cross_validate(track, data, lambda done, of: show(Progress(done, of, what="fits")))
            learned, data = fit_pool(track, data)
            rows = tuple(
                (query.query_id, doc_id, gain, deviation, label, "yes" if judged else "no")
                for query in data.queries
                for doc_id, judged, (gain, deviation, label, _) in zip(
                    query.doc_ids, query.judged.tolist(), predict(learned, query).rows(), strict=True
                )
            )
            board = board_of(track, data, learned) if track.runs else None
    identity = {
        "encoder": data.encoder,
        "judgments": {"source": data.official.source or None, "count": learned.n_judgments},
        "features": [FEATURES[column] for column in learned.regression.columns],
        "versions": {name: version(name) for name in ("scikit-learn", "numpy")},
        "track": track_digest(track),
    }
    # `fill` learns from this track only.
    if validation.table.rows and source is None:
        identity["cross_validation"] = {
            "best": validation.facts["best"],
            "losses": {name: loss for used_by, name, loss, *_ in validation.table.rows if used_by == FILL},
            "basis": basis(track, data.official),
        }
    labels = [label for *_, label, judged in rows if judged == "no"]
    n_relevant = sum(label >= track.config.scores.min_relevant for label in labels)
    sentence = (
        f"learned labels for {plural(len(labels), 'passage')} ({n_relevant:,} relevant) from "
        f"{plural(learned.n_judgments, 'judgment')}"
    )
    notes = (Note(sentence, LOST), *data.notes)
    return LearnedLabels(rows, _qrels(data.official, rows), board, validation, identity, notes)


def _qrels(official: Official, rows: Sequence[Row]) -> bytes:
    """Return the official lines unchanged, then people's judgments, and a line for each other passage."""
    written_pairs = {(row.query_id, row.doc_id) for row in official.qrels}
    lines = [qrels_line(row) for row in official.qrels]
    lines += [
        qrels_line(Qrel(query_id, doc_id, label))
        for query_id, doc_id, _, _, label, _ in rows
        if (query_id, doc_id) not in written_pairs
    ]
    return b"".join(lines)
