"""Learns labels of the pool's unjudged passages from a track's judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from converters.records import Qrel
from converters.trec_qrels import qrels_line
from trecexam.extensions.learn.arithmetic.learning import Prediction
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.encoding import Encoded, Encoder
from trecexam.extensions.learn.learned_board import LearnedBoard, board_of
from trecexam.extensions.learn.learned_pool import learn_pool
from trecexam.files.atomic import make_folder, remove, replace_together, sha256
from trecexam.line.assessment import Assessment, Part
from trecexam.line.loaded_track import of_judgments
from trecexam.line.official import Official
from trecexam.line.sources import LEARNED_IDENTITY, LEARNED_QRELS
from trecexam.tables.result import Result
from trecexam.tables.table import Table, rounded, to_json
from trecexam.tables.text import plural

TABLE, QRELS, IDENTITY = "learned.tsv", LEARNED_QRELS, LEARNED_IDENTITY
BOARD = "learned-leaderboard.tsv"
#: Digits after the point that are certain in gains and standard deviations. scikit-learn's LogisticRegression
#: stops at a gradient of 1e-4; going on to 1e-12 moves gains of DL 2019 by up to 6e-4, standard deviations by
#: up to 2.5e-3 (a processor with other instructions: by 1e-7).
CERTAIN_DIGITS = 2
#: What of a track it depends on.
PARTS: tuple[Part, ...] = ("cells", "people", "runs", "official", "settings")


@dataclass(frozen=True, eq=False)
class LearnedLabels(Result):
    """Judged and learned labels of a pool's passages.

    Attributes:
        rows: query, passage, gain, standard deviation, label, judged or not; one for each pooled passage.
        qrels: the official judgments as they are, people's, and after them a line for each other row.
        board: the runs by expected nDCG and AP; None where there are no runs.
        identity: what it was learned by and from; `track` are digests of the track's parts.
        notes: what a reader must know, and how much was learned from how much.
        n_encoded: how many passages were encoded for it.
    """

    rows: tuple[tuple[str, str, float, float, int, str], ...]
    qrels: bytes
    board: LearnedBoard | None
    identity: dict[str, Any]
    notes: tuple[str, ...]
    n_encoded: int

    def declare(self) -> dict[str, Table]:
        """`labels`, as in learned.tsv; `leaderboard`, if there are runs."""
        labels = Table(("query_id", "doc_id", "gain", "sd", "label", "judged"), self.rows)
        return {
            "labels": rounded(labels, CERTAIN_DIGITS),
            **({} if self.board is None else self.board.tables),
        }

    @property
    def shown(self) -> tuple[str, ...]:
        """The leaderboard, if there is one."""
        return () if self.board is None else ("leaderboard",)

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


@of_judgments
def learn(
    track: Assessment,
    *,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    progress: Encoded | None = None,
) -> LearnedLabels:
    """Learns gains and labels of the whole pool from the track's judgments; grades nothing.

    Arguments, and what is raised, are those of `learn_pool`.
    """
    pool = learn_pool(track, source=source, encoder=encoder, progress=progress)
    board = board_of(track, pool) if track.runs else None
    rows = tuple(_rows(pool.data.queries, pool.predictions))
    judged = sum(row[-1] == "yes" for row in rows)
    return LearnedLabels(
        rows,
        _qrels(pool.data.official, rows),
        board if board is not None and not board.doubts else None,
        {**pool.identity, "track": {part: track.part_digests[part] for part in PARTS}},
        (
            *pool.notes,
            *(
                [f"no leaderboard by learned labels: {board.doubts}"]
                if board is not None and board.doubts
                else []
            ),
            f"learned from {plural(pool.identity['judgments']['count'], 'judgment')}: {judged:,} passages "
            f"are judged, {len(rows) - judged:,} have learned labels",
        ),
        pool.data.n_encoded,
    )


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
