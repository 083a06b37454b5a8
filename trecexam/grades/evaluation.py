"""The runs of a loaded track evaluated: on the rubric labels, and on the official judgments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.grades.diagnostics import nothing_graded, without_score_note
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_judgments, official_measures, why_unjudged
from trecexam.grades.run_grades import cited_values, partly_graded, runs_without_score
from trecexam.inputs.measures import check_importance, printed_names
from trecexam.inputs.pooled_ranks import pooled_ranks
from trecexam.inputs.track_graders import Measures, names_of, own_measures
from trecexam.results.text import shorten_list
from trecexam.scores.columns.evaluator import Evaluator
from trecexam.scores.columns.judged import Judged
from trecexam.scores.expected import with_probabilities
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.leaderboard import leaderboard as leaderboard_of
from trecexam.scores.measures import measure, measures_on_qrels
from trecexam.scores.ratings import QueryRatings
from trecexam.scores.support import SUPPORT
from trecexam.scores.value_cache import Stale, ValueCache
from trecexam.scores.values import MeasureValues


def needing(track: GradedTrack, measures: Iterable[str | Measure]) -> list[str]:
    """Return the measures that look at probabilities of ratings."""
    kinds = {"ECover", "nDCG"} if track.config.scores.label == "expected" else {"ECover"}
    return [str(each) for each in map(measure, measures) if each.NAME in kinds]


def probable_ratings(track: GradedTrack, query_ids: Sequence[str] | None = None) -> Sequence[QueryRatings]:
    """Return the ratings of these queries, or of all of the bank, with `QueryRatings.at_least`.

    A cell that a person rated, and one whose grade has no probabilities, is certain.
    """
    return [_with_certainty(track, q)[0] for q in (track.bank.query_ids if query_ids is None else query_ids)]


def without_probabilities(track: GradedTrack, measures: Iterable[str | Measure]) -> Iterator[str]:
    """Yield a note on ratings that are certain, where these measures look at their probabilities."""
    names = needing(track, measures)
    counts = [_with_certainty(track, query_id)[1] for query_id in track.bank.query_ids] if names else []
    certain, rated = (sum(of) for of in zip(*counts, strict=True)) if counts else (0, 0)
    if certain:
        yield (
            f"{certain:,} of the grader's {rated:,} ratings have no probabilities, and count as certain in "
            f"{', '.join(names)}"
        )


def _with_certainty(track: GradedTrack, query_id: str) -> tuple[QueryRatings, tuple[int, int]]:
    """Return a query's ratings, and (certain ones, all) of the grader.

    The store is read once while the query's cells are the same.
    """
    sheet = track.sheets[query_id]
    if _with_certainty not in sheet.memo:
        stated = track.grades.distributions(sheet, read=True)
        graded = sheet.matrix() >= 0
        stated[~graded] = np.nan
        for doc_id, item_id in sheet.overrides.cells if sheet.overrides else ():
            cell = sheet.row_of[doc_id], sheet.column_of[item_id]
            stated[cell], graded[cell] = np.nan, False
        certain = int((graded & np.isnan(stated).any(axis=2)).sum())
        (q,) = track.ratings([query_id])
        sheet.memo[_with_certainty] = with_probabilities(q, stated), (certain, int(graded.sum()))
    result: tuple[QueryRatings, tuple[int, int]] = sheet.memo[_with_certainty]
    return result


def rubric_values(
    track: GradedTrack, measures: Sequence[str] | None = None, *, min_rating: int | None = None
) -> MeasureValues:
    """Return the runs' values on the rubric labels, over all queries of the bank.

    A passage without a label is not relevant. A run without a grade (`runs_without_score`) has NaN.

    Args:
        measures: None for the track's own.
        min_rating: in place of the track's setting.
    """
    names = own_measures(track.folder, track.measures if measures is None else measures)
    check_importance(map(str, names), track.bank, track.inputs.bank_files)
    computed = [*map(measure, names)]
    _check_kind(track, computed)
    at = track.config.scores.min_rating if min_rating is None else min_rating
    key = rubric_values, tuple(map(str, names)), at
    if key not in track.memo:
        cache = track.run_values["rubric"] if measures is None and min_rating is None else ValueCache()
        if track.asked.citing is None:
            track.memo[key] = _label_values(track, cache, computed, at)
        else:
            columns = [SUPPORT.index(name) for name in printed_names(computed)]
            track.memo[key] = _kept(
                track, cache, computed, track.sheets, lambda part: cited_values(track, *part)[:, :, columns]
            )
    values: MeasureValues = track.memo[key]
    return _blank(values, runs_without_score(track))


def _blank(values: MeasureValues, runs: Collection[str]) -> MeasureValues:
    """Replace the values of these runs by NaN."""
    if not runs:
        return values
    blank = np.array([run in runs for run in values.runs], np.bool_)
    return replace(values, array=np.where(blank[:, None, None], np.nan, values.array))


def scored_values(track: GradedTrack, values: MeasureValues) -> MeasureValues:
    """Return the values of the runs that have a score; TrecexamError with the reason where none has."""
    why = why_no_scores(track)
    if why is not None:
        raise TrecexamError(why, path=track.folder.root)
    unscored = runs_without_score(track)
    return values.of_runs([run for run in values.runs if run not in unscored])


def _label_values(
    track: GradedTrack, cache: ValueCache, measures: Sequence[Measure], min_rating: int
) -> MeasureValues:
    scores, probable = track.config.scores, needing(track, measures)

    def prepare(query_ids: Sequence[str]) -> Evaluator:
        ratings = probable_ratings(track, query_ids) if probable else track.ratings(query_ids)
        return Evaluator(measures, Judged.from_ratings(ratings, scores.label, min_rating, scores.min_answers))

    return _values(track, cache, measures, track.sheets, prepare)


def _check_kind(track: GradedTrack, measures: Sequence[Measure]) -> None:
    """Refuse measures of another kind of grader."""
    cites = track.asked.citing is not None
    wrong = next((each for each in measures if (each.NAME in SUPPORT) != cites), None)
    if wrong is None:
        return
    if cites:
        reason = (
            f"needs labels of documents, but the grader {track.name} labels citations: its measures are "
            f"{', '.join(SUPPORT)}"
        )
    else:
        reason = (
            f"is computed from citations, which the grader {track.name} does not grade: add a section "
            "[graders.support] to trecexam.toml, and give --grader support"
        )
    raise TrecexamError(f"{wrong} {reason}", path=track.folder.config_path)


def official_values(
    track: GradedTrack, measures: Sequence[str] | None = None, query_ids: Collection[str] | None = None
) -> MeasureValues:
    """Return values by the official judgments, by the own measures and over all judged queries for None."""
    official = official_judgments(track)
    # Without any judgment there are no scores; queries without are named all the same.
    judged_queries = sorted(official.judged or {row.query_id for row in official.rows})
    queries = [q for q in judged_queries if query_ids is None or q in query_ids]
    names = official_measures(track) if measures is None else list(measures)
    computed = measures_on_qrels(names, official.rows)

    def prepare(query_ids: Sequence[str]) -> Evaluator:
        index = {query_id: number for number, query_id in enumerate(query_ids)}
        rows = [row for row in official.rows if row.query_id in index]
        # ndeval adds up gains in the order in which it meets items.
        rows.sort(key=lambda row: index[row.query_id])
        return Evaluator(computed, Judged.from_qrels(rows, query_ids))

    part = "official" if query_ids is None else "official, some queries"
    cache = ValueCache() if measures is not None else track.run_values[part]
    tokens = dict.fromkeys(queries, track.digests.get(official.source))
    return _values(track, cache, computed, tokens, prepare)


def check_runs(track: GradedTrack, runs: Collection[str] | None) -> None:
    """Refuse names of runs that the track does not have, and a name in place of a list."""
    if isinstance(runs, str):
        raise TrecexamError(f"runs: give a list, as [{runs!r}]")
    for run in () if runs is None else runs:
        if run not in track.runs:
            hint = did_you_mean(run, track.runs, f"there are {shorten_list(track.runs) or 'none'}")
            raise TrecexamError(f"no run '{run}'; {hint}", path=track.folder.root)


def values_of_runs(
    track: GradedTrack,
    measures: Measures | None = None,
    *,
    official: bool = False,
    runs: Collection[str] | None = None,
) -> MeasureValues:
    """Return the values that `leaderboard` averages; NaN where there is nothing to score."""
    check_runs(track, runs)
    names = names_of(measures)
    values = official_values(track, names) if official else rubric_values(track, names)
    if official and why_no_scores(track, official=True) is not None:
        values = _blank(values, values.runs)
    return values if runs is None else values.of_runs([run for run in values.runs if run in set(runs)])


def why_no_scores(track: GradedTrack, *, official: bool = False) -> str | None:
    """Return why no run has a score, as nothing is graded (official: judged); None where runs have.

    Zeros would say that no run found anything good.
    """
    if official:
        return why_unjudged(track)
    if not track.counts.is_graded:
        return nothing_graded(track)
    unscored = runs_without_score(track)
    # What is graded may be of people, or of judged passages, and of no run.
    return without_score_note(list(track.runs)) if track.runs and unscored.issuperset(track.runs) else None


def board_of(track: GradedTrack, values: MeasureValues, *, official: bool = False) -> Leaderboard:
    """Return means and standard errors per run, best first, without notes.

    Args:
        values: of `values_of_runs`.
    """
    answered = {name: [q for q in values.query_ids if q in run] for name, run in track.runs.items()}
    board = leaderboard_of(
        values, values.measures, values.query_ids, answered, average=track.config.scores.average
    )
    files = {name: track.folder.shown(path) for name, path in track.inputs.dropped.run_files.items()}
    partly = {} if official else partly_graded(track)
    rows = tuple(replace(row, file=files[row.run], graded=partly.get(row.run)) for row in board.rows)
    return replace(board, rows=rows)


def _values(
    track: GradedTrack,
    cache: ValueCache,
    measures: Sequence[Measure],
    tokens: Mapping[str, Hashable],
    prepare: Callable[[Sequence[str]], Evaluator],
) -> MeasureValues:
    """Return the values of all runs by an evaluator, which is kept for the next run."""
    key = printed_names(measures), list(tokens.items())

    def evaluator_on(query_ids: Sequence[str]) -> Evaluator:
        if len(query_ids) < len(tokens):
            return prepare(query_ids)
        if cache.evaluator is None or cache.evaluator[0] != key:
            cache.evaluator = key, prepare(query_ids)
        evaluator: Evaluator = cache.evaluator[1]
        return evaluator

    def evaluated(part: Stale) -> Iterator[NDArray[np.float64]]:
        evaluator, runs = evaluator_on(part.query_ids), [track.runs[run] for run in part.runs]
        ranked = pooled_ranks(track.pool, track.depth, track.runs, runs, evaluator.judged, evaluator.depth)
        yield from map(evaluator.values, runs, ranked) if ranked else map(evaluator.values, runs)
        cache.failures.update(evaluator.failures)

    return _kept(track, cache, measures, tokens, evaluated).without_failed(cache.failures)


def _kept(
    track: GradedTrack,
    cache: ValueCache,
    measures: Sequence[Measure],
    tokens: Mapping[str, Hashable],
    compute: Callable[[Stale], Iterable[NDArray[np.float64]]],
) -> MeasureValues:
    """Return the values of all runs, kept ones and those that are computed now."""
    contents, names = track.inputs.dropped.run_contents, printed_names(measures)
    computed = ((part, compute(part)) for part in cache.stale(contents, names, tokens))
    return cache.put(contents, names, tokens, computed)
