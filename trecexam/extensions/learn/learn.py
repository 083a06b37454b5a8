"""Learns labels of the pool's unjudged passages from a track's judgments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from converters.records import Qrel
from converters.trec_qrels import qrels_line
from trecexam.cli import bars
from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.learn.arithmetic.check import n_fits
from trecexam.extensions.learn.arithmetic.learning import Prediction
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.encoding import Encoder
from trecexam.extensions.learn.learned_board import CERTAIN_DIGITS as MEAN_DIGITS
from trecexam.extensions.learn.learned_board import LearnedBoard, board_of
from trecexam.extensions.learn.learned_pool import LearnedPool, fit_pool, gather_data
from trecexam.extensions.learn.validation import Validation, cross_validate, validation_basis
from trecexam.features.leaderboard.board import leaderboard
from trecexam.files.atomic import make_folder, remove, replace_together, sha256
from trecexam.files.kept import read_object, read_regular
from trecexam.graders.base import identity_json
from trecexam.grades.diagnostics import NO_RUNS
from trecexam.grades.evaluation import check_runs
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress
from trecexam.inputs.official import Official
from trecexam.inputs.sources import LEARNED_IDENTITY, LEARNED_QRELS
from trecexam.results.result import Result
from trecexam.results.table import Table, Value, rounded, to_json
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard
from trecexam.version import versions

TABLE, QRELS, IDENTITY = "learned.tsv", LEARNED_QRELS, LEARNED_IDENTITY
BOARD = "learned-leaderboard.tsv"
#: Digits after the point that are certain in gains and standard deviations. scikit-learn's LogisticRegression
#: stops at a gradient of 1e-4; going on to 1e-12 moves gains of DL 2019 by up to 6e-4, standard deviations by
#: up to 2.5e-3 (a processor with other instructions: by 1e-7).
CERTAIN_DIGITS = 2
#: What is counted while texts are encoded, and then while models are fitted.
ENCODED, FITTED = "texts encoded", "steps of fitting"
#: The time of the fit on all judgments, and of the leaderboard, in fits on half of the judgments: medians of
#: 20 to 100 queries with 200 to 1,000 passages each.
MODEL_STEPS, BOARD_STEPS = 5, 3


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

    rows: tuple[tuple[str, str, float, float, int, str], ...]
    qrels: bytes
    board: LearnedBoard | None
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
        """Writes learned.tsv, learned.qrels, where there are runs learned-leaderboard.tsv, and learned.json,
        which says what they were made by and from.

        Raises:
            TrecexamError: one cannot be written.

        Returns:
            The files that changed.
        """
        contents = {TABLE: self.to_tsv().encode(), QRELS: self.qrels}
        if self.board is not None:
            contents[BOARD] = self.board.to_tsv().encode()
        outputs = {name: sha256(content) for name, content in contents.items()}
        contents[IDENTITY] = to_json({**self.identity, "outputs": outputs}).encode()
        make_folder(folder)
        outputs_by_path = {folder / name: content for name, content in contents.items()}
        written = replace_together(outputs_by_path, into_special=False)
        if self.board is None:
            remove(folder / BOARD)
        return tuple(written)


def learn(
    track: GradedTrack,
    *,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> LearnedLabels:
    """Learns gains and labels of the whole pool from the track's judgments; grades nothing."""
    if progress is None:
        with bars.progress("learning") as shown:
            return learn(track, source=source, encoder=encoder, progress=shown)
    show = progress

    def encoded(done: int, of: int) -> None:
        show(Progress(done, of, what=ENCODED))

    def fitted(done: int) -> None:
        show(Progress(done, n + MODEL_STEPS + BOARD_STEPS, what=FITTED))

    show(Progress(0, 0, loading="the encoder"))
    data = gather_data(track, source=source, encoder=encoder, progress=encoded)
    n = n_fits(data.queries)
    # Fits on half of the judgments come first: they are short, and their pace says how long the rest takes.
    fitted(0)
    validation = cross_validate(track, data, fitted)
    pool = fit_pool(track, data)
    fitted(n + MODEL_STEPS)
    board = board_of(track, pool, validation.doubt) if track.runs else None
    fitted(n + MODEL_STEPS + BOARD_STEPS)
    rows = tuple(_rows(pool.data.queries, pool.predictions))
    identity = {**pool.identity, "track": _track_digest(track)}
    if board is not None:
        identity["leaderboard"] = {"n_queries": board.n_queries, "notes": board.notes}
    # `fill` learns from this track alone.
    if validation.rows and source is None:
        identity["cross_validation"] = _for_fill(track, pool, validation)
    return LearnedLabels(
        rows,
        _qrels(pool.data.official, rows),
        board,
        validation,
        identity,
        (_changed(track, rows, pool.identity["judgments"]["count"], board), *pool.notes),
    )


def _changed(
    track: GradedTrack,
    rows: Sequence[tuple[str, str, float, float, int, str]],
    n_judgments: int,
    board: LearnedBoard | None,
) -> str:
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


def stored_board(track: GradedTrack) -> LearnedBoard | None:
    """Read the leaderboard that `learn` wrote; None if it is missing, or of another state of the track."""
    learned = read_object(track.folder.out / IDENTITY)
    try:
        content = read_regular(track.folder.out / BOARD)
        digests = learned["outputs"][BOARD], learned["track"]
        n_queries = int(learned["leaderboard"]["n_queries"])
        notes = tuple(map(str, learned["leaderboard"]["notes"]))
    except (OSError, KeyError, TypeError, ValueError):
        return None
    if digests != (sha256(content), _track_digest(track)):
        return None
    header, *lines = content.decode().splitlines()
    rows: list[tuple[Value, ...]] = []
    for line in lines:
        run, *figures = line.split("\t")
        rows.append((run, *(float(figure) if figure else math.nan for figure in figures)))
    values = rounded(Table(tuple(header.split("\t")), tuple(rows)), MEAN_DIGITS)
    return LearnedBoard.of(values, n_queries, notes)


def _track_digest(track: GradedTrack) -> str:
    """Return a digest of grades, settings and all input files but the official leaderboard."""
    ranks = track.folder.official_leaderboard()
    not_learned_from = None if ranks is None else track.folder.shown(ranks)
    files = {file: digest for file, digest in track.digests.items() if file != not_learned_from}
    settings = track.config.values()
    content = [
        files,
        [sheet.digest.hex() for sheet in track.sheets.values()],
        [run.query_texts for run in track.inputs.dropped.run_contents.values()],
        [settings, track.measures, identity_json(track.grader.identity), versions()],
    ]
    return sha256(json.dumps(content, sort_keys=True, default=str).encode())


def learned_leaderboard(track: GradedTrack, runs: Collection[str] | None = None) -> LearnedBoard:
    """Return the leaderboard that `learn` wrote, of these runs.

    Raises:
        TrecexamError: nothing was learned, or from another state of the track; there is no such run.
    """
    check_runs(track, runs)
    if not track.runs:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    board = stored_board(track)
    if board is None:
        again = (track.folder.out / IDENTITY).exists()
        why = "runs, grades or judgments changed since labels were learned" if again else "no learned labels"
        raise TrecexamError(
            f"{why}: run `trecexam learn {quoted(track.folder.root)}`", path=track.folder.root
        )
    if runs is None:
        return board
    values = replace(board.values, rows=tuple(row for row in board.values.rows if row[0] in set(runs)))
    return LearnedBoard.of(values, board.n_queries, board.notes)


def _for_fill(track: GradedTrack, pool: LearnedPool, validation: Validation) -> dict[str, Any]:
    """Return what `fill` needs of a cross-validation, see `trecexam.extensions.learn.teaching`."""
    assert pool.data.official is not None
    encoder = {name: value for name, value in pool.data.encoder.items() if name != "model"}
    basis = validation_basis(track, pool.data.official, encoder)
    return {"best": validation.best, "losses": validation.losses, "basis": basis}


def _rows(
    queries: Sequence[QueryPassages], predictions: Sequence[Prediction]
) -> list[tuple[str, str, float, float, int, str]]:
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


def _qrels(official: Official | None, rows: Sequence[tuple[str, str, float, float, int, str]]) -> bytes:
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
