"""How good learning is on this track: `cross-validate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from converters.label_table import read_teams
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.cross_validation import CrossValidation, Row, verdicts
from trecexam.extensions.learn.encoding import Encoded, Encoder
from trecexam.extensions.learn.graders import coverage, graders_of
from trecexam.extensions.learn.keeping import keep
from trecexam.extensions.learn.learned_pool import MORE, LearningData, gather_data, track_encoder
from trecexam.extensions.learn.splits import (
    Split,
    all_hidden,
    half_of_teams,
    most_retrieved,
    queries_left_out,
    random_share,
    teams_left_out,
)
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import of_documents
from trecexam.line.loader import TrackLoader
from trecexam.scores.correlation import MIN_DISTINCT, MIN_QUERIES
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table, Value
from trecexam.tables.text import plural, shorten_list
from trecexam.track import TrackFolder

#: Shares of the judgments that are known, and how many of a query's, unless said.
KNOWN = (0.1, 0.5)
TOP = (5, 10)


@dataclass(frozen=True)
class Validation(Result):
    """How good learning is on judgments that were hidden from it, beside plain rules.

    Attributes:
        rows: split by split, "learned" first.
        notes: what a reader must know to read the numbers; for each split whether learning is better than the
            other rules; which way to fill holes is the best, as is kept for `fill`.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """A row for each way of hiding judgments and each way of treating what is hidden."""
        figures = ("kappa", "tau", "shift", "gain")
        header = [name for figure in figures for name in (figure, f"{figure}.low", f"{figure}.high")]
        rows: Iterable[tuple[Value, ...]] = (
            (
                *(row.split, row.method, round(row.known), round(row.hidden)),
                *(
                    value
                    for estimate in (row.kappa, row.tau, row.shift, row.gain)
                    for value in (estimate.value, estimate.low, estimate.high)
                ),
            )
            for row in self.rows
        )
        layout = Layout(("split", "method"), figures)
        return {"ways": Table(("split", "method", "known", "hidden", *header), tuple(rows), layout=layout)}


@of_documents
def cross_validate(
    track: Assessment,
    *,
    known: Sequence[float] | None = None,
    top: Sequence[int] | None = None,
    teams: Path | str | None = None,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    grades: bool = True,
    repeats: int = 3,
    resamples: int = 300,
    seed: int = 0,
    progress: Encoded | None = None,
    steps: Callable[[int, int], None] | None = None,
) -> Validation:
    """Hides judgments from learning, and compares what it says of them with people and with plain rules.

    All judgments of a query are hidden; with a `source`, all of the track; then a random share of all, then
    of each query all but its most retrieved passages, then those that each team alone brought in, and those
    that half of the teams did not bring in. Beside learning stand: one label for all unjudged passages, lists
    without them, and the mean ratings of each grader that ever graded here, cut where they agree best with
    what is known. Nothing that is hidden is seen by what is fitted: regressions, kernel and cuts are fitted
    anew each time. Which way to fill holes was best is kept for `fill`, unless there is a `source`.

    Args:
        known: shares of all judgments that are known, drawn at random; between 0 and 1. None: 0.1 and 0.5.
        top: how many judged passages of each query are known, the most retrieved first. None: 5 and 10.
        teams: a file of `run<TAB>team` lines; without one each run is a team.
        repeats: how often shares, and halves of the teams, are drawn.
        resamples: how many subsets of the queries the intervals are made of.
        seed: of what is drawn.
        source: another track, whose judgments are learned from, too, but for those of queries that are asked
            here as well. Where this track has no judgments, that one is validated within itself, by the
            features that both have.
        steps: called with how many fits are done, and of how many.

    The others, and what is raised, are as of `learn`; beside it a file of teams that cannot be read.
    """
    for share in known or ():
        if not 0 < share < 1:
            raise TrecexamError(f"known = {share:g}: between 0 and 1")
    if encoder is None or isinstance(encoder, str):
        encoder = track_encoder(track, encoder)
    gathered = gather_data(track, source=source, encoder=encoder, grades=grades, progress=progress)
    hide = partial(_splits, known=known or KNOWN, top=top or TOP, teams=teams, repeats=repeats, seed=seed)
    if source is None or any((~np.isnan(query.judgments)).any() for query in gathered.queries):
        splits = hide(track, gathered.queries, source)
        validation = _validated(track, gathered, splits, resamples, seed, steps)
        # Of what is learned from another track `fill` knows nothing.
        line = None if source is not None else keep(track, gathered, validation.rows, splits)
        return validation if line is None else replace(validation, notes=(*validation.notes, line))
    with TrackLoader(TrackFolder.open(source)) as loader:
        other = loader.load()
        of_other = gather_data(other, encoder=encoder, grades=gathered.graded, progress=progress)
        splits = hide(other, of_other.queries, None)
        within = _validated(other, of_other, splits, resamples, seed, steps)
    where = (
        f"no judgments here, so all figures are of {source} within itself: `queries left out` is what "
        "carries over to other queries there; to other passages and people it may be less"
    )
    return replace(within, notes=(where, *within.notes))


def _splits(
    track: Assessment,
    queries: Sequence[PooledQueryToLearn],
    source: Path | str | None,
    *,
    known: Sequence[float],
    top: Sequence[int],
    teams: Path | str | None,
    repeats: int,
    seed: int,
) -> list[Split]:
    """The ways to hide judgments.

    Raises:
        TrecexamError: no runs, or none of the teams' runs is here.
        ConversionError: the teams' file cannot be read.
    """
    if not track.runs:
        raise TrecexamError("no runs to rank: drop some first", path=track.folder.runs)
    judgments = [query.judgments for query in queries]
    ranks = [query.ranks for query in queries]
    of_teams = _teams(tuple(track.runs), teams)
    return [
        queries_left_out(judgments),
        *([] if source is None else [all_hidden(judgments, f"none known but of {Path(source).name}")]),
        *(random_share(judgments, share, repeats, seed) for share in known),
        *(most_retrieved(judgments, ranks, k) for k in top),
        teams_left_out(judgments, ranks, of_teams),
        half_of_teams(judgments, ranks, of_teams, repeats, seed),
    ]


def _validated(
    track: Assessment,
    gathered: LearningData,
    splits: Sequence[Split],
    resamples: int,
    seed: int,
    steps: Callable[[int, int], None] | None,
) -> Validation:
    graders, least = graders_of(track, gathered.queries), track.config.scores.min_relevant
    try:
        validation = CrossValidation(
            gathered.queries,
            least,
            graders,
            [query for query in gathered.others if query.query_id not in gathered.asked_here],
            resamples,
            seed,
        )
    except ValueError as error:
        raise TrecexamError(f"nothing to validate on: {error}; {MORE}", path=track.folder.root) from None
    total = sum(len(repeat) for split in splits for repeat in split.repeats)
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if steps is not None:
            steps(done, total)

    rows: list[Row] = []
    notes = [*gathered.notes, *coverage(graders)]
    judged = np.concatenate([query.judgments for query in gathered.queries])
    relevant = set(judged[~np.isnan(judged)] >= least)
    if len(relevant) == 1:
        which = "every" if True in relevant else "no"
        notes.append(
            f"{which} judgment reaches `min_relevant = {least}`, so kappa says nothing: set it in [scores]"
        )
    if gathered.asked_here:
        notes.append(
            f"{plural(len(gathered.asked_here), 'query')} "
            f"({shorten_list(sorted(gathered.asked_here), 3, dots=True)}) of the other track are asked here, "
            "too: nothing is learned from their judgments here, as they may be those that are hidden"
        )
    for split in splits:
        if not any(hidden.any() for repeat in split.repeats for part in repeat for hidden in part.hidden):
            notes.append(f"{split.name}: there is nothing to hide")
            continue
        try:
            with threadpool_limits(1):
                rows += validation.rows(split, step)
        except ValueError as error:
            notes.append(f"{split.name}: too little is left to learn from ({error})")
    if not rows:
        raise TrecexamError(f"too few judgments to validate on: {notes[-1]}; {MORE}", path=track.folder.root)
    if any(math.isnan(row.tau.low) > math.isnan(row.tau.value) for row in rows) and resamples > 0:
        notes.append(
            f"tau has no interval with fewer than {MIN_QUERIES} queries, or where the runs have fewer than "
            f"{MIN_DISTINCT} distinct values on a side"
        )
    return Validation(tuple(rows), (*notes, *verdicts(rows)))


def _teams(runs: Sequence[str], path: Path | str | None) -> dict[str, list[int]]:
    """Team -> the places of its runs; a run without a team is one by itself.

    Raises:
        TrecexamError: none of the file's runs is here.
        ConversionError: the file cannot be read.
    """
    team_of = {} if path is None else read_teams(path)
    if path is not None and not set(runs) & team_of.keys():
        raise TrecexamError(
            "none of its runs is on the leaderboard; use the names that `trecexam leaderboard` shows",
            path=Path(path),
        )
    teams: dict[str, list[int]] = {}
    for at, run in enumerate(runs):
        # A space is in no name of a run that stands for itself.
        teams.setdefault(f"team {team_of[run]}" if run in team_of else run, []).append(at)
    return teams
