"""The leaderboard by expected nDCG and AP, with learned labels for unjudged passages."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.learn.arithmetic.learning import Learned
from trecexam.extensions.learn.arithmetic.passages import FEATURES
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.extensions.learn.learned_pool import LearningData
from trecexam.files.atomic import sha256
from trecexam.files.kept import read_object
from trecexam.graders.base import identity_json
from trecexam.grades.diagnostics import NO_RUNS
from trecexam.grades.evaluation import check_runs
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.sources import LEARNED_IDENTITY
from trecexam.results.text import plural, shorten_list
from trecexam.scores.encoder_likeness import agreements_of_runs, runs_like_encoder
from trecexam.scores.leaderboard import Leaderboard, Row, Score, Scores, best_first, leaderboard
from trecexam.scores.values import MeasureValues
from trecexam.version import versions

#: Cutoff of nDCG; smaller for a shallower pool.
K = 10
#: Certain decimals of expected means: the stopping point of the regressions (see `learn`) moves means of DL
#: 2019 by up to 2e-4. Means equal to these decimals share a rank.
CERTAIN_DIGITS = 3


def board_of(track: GradedTrack, data: LearningData, learned: Learned) -> Leaderboard:
    """Return the learned leaderboard of a track with runs, best expected nDCG first.

    Judged passages have their judgments. Labels of other passages are drawn repeatedly from the learned
    probabilities; scores are means over draws. Ranks beyond the pool's depth are ignored: AP is AP@depth. A
    query without judgments has only predicted labels; a query without a pooled passage is left out.
    """
    queries, min_relevant, k = data.queries, track.config.scores.min_relevant, min(K, track.depth)
    scores = expected_scores(learned, queries, k, min_relevant)
    retrieved = [query.ranks[:, :k] >= 0 for query in queries]
    judged = [np.append(query.judged, False)[query.ranks[:, :k]].sum(axis=1) for query in queries]
    shares = [of / np.maximum(ranked.sum(axis=1), 1) for of, ranked in zip(judged, retrieved, strict=True)]
    array = np.stack([*scores, np.column_stack(shares)], axis=-1)
    measures = (f"nDCG@{k}", f"AP(rel={min_relevant})@{track.depth}", f"Judged@{k}")
    names, query_ids = tuple(track.runs), tuple(query.query_id for query in queries)
    answered = {
        run: [query_id for query_id, ranked in zip(query_ids, retrieved, strict=True) if ranked[at].any()]
        for at, run in enumerate(names)
    }
    values = MeasureValues(names, query_ids, measures, array)
    board = leaderboard(values, measures, query_ids, answered)
    n_judged = sum(int(query.judged.sum()) for query in queries)
    n_pooled = sum(len(query.doc_ids) for query in queries)
    summary = (
        f"expected over {plural(len(queries), 'query')}, with learned labels for unjudged passages "
        f"({n_judged / n_pooled:.0%} of the pool is judged); standard errors are over queries, and leave out "
        "what is uncertain in the labels"
    )
    cosine = FEATURES.index("cosine")
    agreements = agreements_of_runs(
        np.append(query.features[:, cosine], math.nan)[query.ranks] for query in queries
    )
    alike = [names[at] for at in runs_like_encoder(agreements)]
    line = (
        f"passages much in the order of the encoder of these labels: {shorten_list(alike, quote='')}; their "
        "ranks may be far too high or too low: judge their first passages"
    )
    rows = []
    for row in board.rows:
        figures = (
            Score(round(each.mean, CERTAIN_DIGITS), round(each.stderr, CERTAIN_DIGITS)) for each in row.scores
        )
        rows.append(replace(row, scores=Scores(figures, measures)))
    return replace(
        board,
        rows=tuple(sorted(rows, key=best_first)),
        notes=(*([line] if alike else ()), *data.notes, summary),
    )


def stored_board(track: GradedTrack) -> Leaderboard | None:
    """Return the leaderboard stored by `learn`; None if missing or outdated."""
    learned = read_object(track.folder.out / LEARNED_IDENTITY)
    stored = learned.get("leaderboard")
    if stored is None or learned["track"] != track_digest(track):
        return None
    measures, n_queries = tuple(stored["measures"]), stored["n_queries"]
    rows = []
    for row in stored["runs"]:
        figures = [(row["scores"][name]["mean"], row["scores"][name]["stderr"]) for name in measures]
        # A single query has no standard error.
        scores = (Score(mean, math.nan if error is None else error) for mean, error in figures)
        rows.append(Row(row["run"], n_queries, row["n_answered"], Scores(scores, measures)))
    return Leaderboard(measures, n_queries, "all", tuple(rows), tuple(stored["notes"]))


def track_digest(track: GradedTrack) -> str:
    """Return a digest of grades, settings and all input files except the official leaderboard."""
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


def learned_leaderboard(track: GradedTrack, runs: Collection[str] | None = None) -> Leaderboard:
    """Return the leaderboard stored by `learn`, with only these runs.

    Raises:
        TrecexamError: nothing was learned for the current track, or an unknown run.
    """
    check_runs(track, runs)
    if not track.runs:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    board = stored_board(track)
    if board is None:
        again = (track.folder.out / LEARNED_IDENTITY).exists()
        why = "runs, grades or judgments changed since labels were learned" if again else "no learned labels"
        raise TrecexamError(
            f"{why}: run `trecexam learn {quoted(track.folder.root)}`", path=track.folder.root
        )
    return replace(board, rows=tuple(row for row in board.rows if runs is None or row.run in runs))
