"""Learns labels of the pool's unjudged passages from a track's judgments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from converters.records import Qrel
from converters.trec_qrels import qrels_line
from trecexam.cli import bars
from trecexam.extensions.learn.arithmetic.check import hidings
from trecexam.extensions.learn.arithmetic.learning import Prediction, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.learned_board import CERTAIN_DIGITS as MEAN_DIGITS
from trecexam.extensions.learn.learned_board import board_of, track_digest
from trecexam.extensions.learn.learned_pool import fit_pool, gather_data
from trecexam.extensions.learn.teaching import CERTAIN_DIGITS, basis
from trecexam.extensions.learn.validation import Validation, cross_validate
from trecexam.features.leaderboard.board import leaderboard
from trecexam.files.atomic import make_folder, remove, replace_together
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress
from trecexam.inputs.official import Official
from trecexam.inputs.sources import LEARNED_IDENTITY, LEARNED_QRELS
from trecexam.results.result import Result
from trecexam.results.table import Table, rounded, to_json
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard

TABLE, BOARD = "learned.tsv", "learned-leaderboard.tsv"

#: Query, passage, gain, standard deviation, label, judged or not.
Row = tuple[str, str, float, float, int, str]


@dataclass(frozen=True, eq=False)
class LearnedLabels(Result):
    """Judged and learned labels of a pool's passages.

    Attributes:
        rows: query, passage, gain, standard deviation, label, judged or not; one for each pooled passage.
        qrels: the official judgments as they are, people's, and after them a line for each other row.
        board: the runs by expected nDCG and AP; None where there are no runs.
        validation: how well hidden judgments are predicted.
        identity: what it was learned by and from; `track` is a digest of the track's files,
            grades and settings.
        notes: what was learned and how it changes the order of the runs, then what a reader must know.
    """

    rows: tuple[Row, ...]
    qrels: bytes
    board: Leaderboard | None
    validation: Validation
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

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """The leaderboard, if there is one."""
        return (self.table if self.board is None else self.tables["leaderboard"],)

    @property
    def facts(self) -> dict[str, Any]:
        """The encoder, judgments, features and versions."""
        return {"learned": self.identity}

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write learned.tsv, learned.qrels, where there are runs learned-leaderboard.tsv, and learned.json,
        which says what they were made by and from.

        Raises:
            TrecexamError: one cannot be written.

        Returns:
            The files that changed.
        """
        contents = {TABLE: self.to_tsv().encode(), LEARNED_QRELS: self.qrels}
        stored = dict(self.identity)
        if self.board is not None:
            contents[BOARD] = self.board.to_tsv().encode()
            stored["leaderboard"] = json.loads(self.board.to_json())
        contents[LEARNED_IDENTITY] = to_json(stored).encode()
        make_folder(folder)
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
    if progress is None:
        with bars.progress("learning") as shown:
            return learn(track, source=source, progress=shown)
    show = progress

    def fitted(done: int) -> None:
        show(Progress(done, n_fits, what="fits"))

    show(Progress(0, 0, loading="the encoder"))
    data = gather_data(
        track, source=source, progress=lambda done, of: show(Progress(done, of, what="texts encoded"))
    )
    # Fits on half of the judgments come first; their pace says how long the fit on all takes.
    n_fits = len(hidings(data.queries)) + 1
    fitted(0)
    validation = cross_validate(track, data, fitted)
    learned, data = fit_pool(track, data)
    with threadpool_limits(1):
        predictions = [predict(learned, query) for query in data.queries]
    board = board_of(track, data, learned) if track.runs else None
    fitted(n_fits)
    rows = tuple(_rows(data.queries, predictions))
    identity = {
        "encoder": data.encoder,
        "judgments": {
            "source": None if data.official is None else data.official.source,
            "count": learned.n_judgments,
        },
        "features": list(learned.features),
        "versions": {name: version(name) for name in ("scikit-learn", "numpy")},
        "track": track_digest(track),
    }
    # `fill` learns from this track alone.
    if validation.rows and source is None and data.official is not None:
        identity["cross_validation"] = {
            "best": validation.best,
            "losses": validation.losses,
            "basis": basis(track, data.official),
        }
    changed = _changed(track, rows, learned.n_judgments, board)
    return LearnedLabels(
        rows, _qrels(data.official, rows), board, validation, identity, (changed, *data.notes)
    )


def _changed(track: GradedTrack, rows: Sequence[Row], n_judgments: int, board: Leaderboard | None) -> str:
    """Write in one sentence how many labels were learned, and how many runs have another rank with them."""
    learned = [label for *_, label, judged in rows if judged == "no"]
    relevant = sum(label >= track.config.scores.min_relevant for label in learned)
    labels = f"learned labels for {plural(len(learned), 'passage')} ({relevant:,} relevant)"
    sentence = f"{labels} from {plural(n_judgments, 'judgment')}"
    if board is None or track.official is None:
        return sentence
    with_labels = _ranks(board)
    judged = _ranks(leaderboard(track, [board.measures[0]], official=True))
    moved = sum(with_labels[run] != judged[run] for run in with_labels)
    return f"{sentence}; {moved:,} of {plural(len(judged), 'run')} moved from their ranks by judgments alone"


def _ranks(board: Leaderboard) -> dict[str, int]:
    """Return each run's rank by the first measure; means that agree to `MEAN_DIGITS` share a rank."""
    means = {row.run: round(row.scores[0].mean, MEAN_DIGITS) for row in board.rows}
    return {run: 1 + sum(other > mean for other in means.values()) for run, mean in means.items()}


def _rows(queries: Sequence[QueryPassages], predictions: Iterable[Prediction]) -> list[Row]:
    return [
        (query.query_id, doc_id, gain, deviation, int(label), "yes" if judged else "no")
        for query, prediction in zip(queries, predictions, strict=True)
        for doc_id, gain, deviation, label, judged in zip(
            query.doc_ids,
            prediction.gains.tolist(),
            prediction.deviations.tolist(),
            prediction.labels.tolist(),
            query.judged.tolist(),
            strict=True,
        )
    ]


def _qrels(official: Official | None, rows: Sequence[Row]) -> bytes:
    """The official lines unchanged, then people's judgments, and a line for each unjudged passage."""
    people = () if official is None else official.qrels
    judged_pairs = {(row.query_id, row.doc_id) for row in people}
    lines = [qrels_line(row) for row in people]
    lines += [
        qrels_line(Qrel(query_id, doc_id, label))
        for query_id, doc_id, _, _, label, judged in rows
        if judged == "no" and (query_id, doc_id) not in judged_pairs
    ]
    return b"".join(lines)
