"""Rank correlation of a grader's leaderboard with the official one, and of several graders' leaderboards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from trecexam.errors import TrecexamError
from trecexam.features.correlation.paired_scores import (
    OVER_TWO_RUNS,
    Key,
    NothingToCompareError,
    PairedScores,
    common_queries,
    comparison_notes,
    nothing_to_compare,
    paired_scores,
    without_interval,
)
from trecexam.grades.diagnostics import grades_notes, nothing_graded, without_score_note
from trecexam.grades.evaluation import rubric_values, scored_values, why_no_scores
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.grades.official import official_measures as official_measures_of
from trecexam.grades.official import relevance_thresholds
from trecexam.grades.run_grades import runs_without_score
from trecexam.inputs.official import LEADERBOARD, of_leaderboard
from trecexam.inputs.track_graders import Measures, each_once, listed, names_of, of_grader, own_measures
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import CHANGES, METHOD, Note, plural, shorten_list
from trecexam.scores.correlation import Coefficient, Correlation, correlate, per_query_correlations
from trecexam.scores.leaderboard import NOBODY
from trecexam.scores.rank_correlation import DEFAULT_P, QueryDraws, find_outliers
from trecexam.scores.values import MeasureValues

#: Prefix of measures on official judgments, in place of a grader's name.
OFFICIAL = "official"
#: Maximum number of runs named in the note on swapped pairs.
MOST_NAMED = 3
#: Key columns of a table of correlations, and the first columns on a terminal.
_LAYOUT = Layout(
    keys=("measure", "other_measure", "official_measure", "min_rating", "query_id"),
    first=("kendall_tau", "spearman_rho", "tau_ap", "n_runs", "tau_ap_b", "rbo", "kendall@10"),
    short={"official_measure": "official", "min_rating": "rating"},
)


def _ends(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}.{end}" for name in names for end in ("low", "high"))


_TOPS = ("kendall@10", "kendall@15", "kendall@20")
#: Columns of every table of correlations, after the key columns.
_COLUMNS = (
    *("n_runs", "kendall_tau", "spearman_rho", "tau_ap", *_ends("kendall_tau")),
    *("rbo", *_ends("spearman_rho", "tau_ap", "rbo")),
    *("tau_ap_b", *_TOPS, *_ends("tau_ap_b", *_TOPS)),
    *("pearson_r", "tau_gap"),
)


def correlation_table(pairs: Iterable[tuple[tuple[Value, ...], Correlation]], keys: tuple[str, ...]) -> Table:
    """Return a row per comparison: the key columns (`keys`), then the coefficients."""
    rows = ((*key, *(_value(c, column) for column in _COLUMNS)) for key, c in pairs)
    return Table((*keys, *_COLUMNS), tuple(rows), layout=_LAYOUT)


def _value(correlation: Correlation, column: str) -> float:
    """Return the value of a column of a correlation or of one of its coefficients."""
    name, _, end = column.replace("@", "_at_").partition(".")
    value = getattr(correlation, name)
    return float(getattr(value, end or "value")) if isinstance(value, Coefficient) else value


@dataclass(frozen=True)
class LeaderboardComparison(Result):
    """Correlations of every rubric measure with every official measure, a row per pair.

    Attributes:
        n_queries: shared queries; official values are over these queries.
        keys: the names of the parts of each pair's key.
        pairs: ((rubric measure, official measure[, min_rating][, query_id]), its correlation).
        rbo_p: the persistence of rank-biased overlap.
        notes: what was compared, and what was left out and why.
        human_ratings: the number of people's ratings, and the people.
        rejected: the graders without a leaderboard.
    """

    n_queries: int
    keys: tuple[str, ...]
    pairs: tuple[tuple[Key, Correlation], ...]
    rbo_p: float
    notes: tuple[str, ...]
    human_ratings: Mapping[str, Any] = field(default_factory=lambda: NOBODY)
    rejected: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """Declare the table with a row for each pair."""
        return {"correlations": correlation_table(self.pairs, self.keys)}

    @property
    def facts(self) -> dict[str, Any]:
        """Return the number of queries, RBO's p, and the number of people's ratings."""
        human = dict(self.human_ratings)
        return {"n_queries": self.n_queries, "rbo_p": self.rbo_p, "human_ratings": human}


def compare(
    track: GradedTrack,
    measures: Measures | None = None,
    official_measures: Measures | None = None,
    *,
    min_ratings: Sequence[int] = (),
    per_query: bool = False,
    rbo_p: float | None = None,
) -> LeaderboardComparison:
    """Correlate rubric measures with official measures, over shared runs and queries."""
    p, draws = DEFAULT_P if rbo_p is None else rbo_p, QueryDraws()
    measures, official_measures = listed(measures), listed(official_measures)
    comparisons = paired_scores(track, names_of(measures), names_of(official_measures), min_ratings)
    measures = None if measures is None else own_measures(track.folder, measures)
    if per_query:
        comparisons = tuple(scores for scores in comparisons if not of_leaderboard(scores.official_measure))
        if not comparisons:
            raise nothing_to_compare(track)
    pairs = [
        pair
        for scores in comparisons
        for pair in _correlated(scores, p, draws, per_query=per_query, at_ratings=bool(min_ratings))
    ]
    judged = track.official is not None
    lines = (
        *comparison_notes(track, comparisons, measures, official_measures),
        *([OVER_TWO_RUNS] if any(len(scores.runs) == 2 for scores in comparisons) else ()),
        *(() if per_query else swaps_note(comparisons[0])),
        *(() if per_query else without_interval(comparisons, [correlation for _, correlation in pairs])),
    )
    return LeaderboardComparison(
        len(common_queries(track) if judged else track.bank.query_ids),
        ("measure", "official_measure", *["min_rating"] * bool(min_ratings), *["query_id"] * per_query),
        tuple(pairs),
        p,
        lines,
        track.override_summary(),
    )


def compare_all(
    track: LoadedTrack,
    measures: Measures | None = None,
    official_measures: Measures | None = None,
    *,
    min_ratings: Sequence[int] = (),
    per_query: bool = False,
    rbo_p: float | None = None,
) -> LeaderboardComparison:
    """Correlate a grader's measures with official measures; with several graders, also each two columns."""
    if track.is_single:
        sides, options = (measures, official_measures), {"per_query": per_query, "rbo_p": rbo_p}
        compared = compare(track.first, *sides, min_ratings=min_ratings, **options)  # type: ignore[arg-type]
        return compared.with_notes(*grades_notes(track.first))
    if min_ratings:
        raise TrecexamError(
            f"a min_rating is of one grader's scale: choose a grader ({', '.join(track.graded_tracks)})"
        )
    if official_measures is not None:
        official_measures = [name.removeprefix(f"{OFFICIAL}:") for name in names_of(official_measures) or ()]
    p, draws = DEFAULT_P if rbo_p is None else rbo_p, QueryDraws()
    columns = list(_columns(track, measures))
    notes = dict.fromkeys(_without_scores(track))
    pairs: list[tuple[Key, Correlation]] = []
    common: dict[str, dict[str, None]] = {}
    for left, other in combinations(columns, 2):
        scores, both = _of_both(left, other), f"{left.grader} and {other.grader}"
        n_runs, n_queries = len(scores.runs), len(scores.query_ids)
        if not n_runs or not n_queries:
            common.setdefault(f"no {'queries' if n_runs else 'runs'} in common", {})[both] = None
            continue
        if left.grader != other.grader:
            over = f"over {plural(n_runs, 'run')} and {plural(n_queries, 'query')}"
            common.setdefault(over, {})[both] = None
        if n_runs == 2:
            notes[OVER_TWO_RUNS] = None
        pairs += _correlated(scores, p, draws, per_query=per_query)
    notes |= dict.fromkeys(Note(f"{over}: {', '.join(graders)}", METHOD) for over, graders in common.items())
    n_queries, lines = 0, {}
    for name, comparison in _official(track, columns, official_measures, per_query=per_query, rbo_p=rbo_p):
        n_queries, lines[name] = max(n_queries, comparison.n_queries), comparison.notes
        for (measure, official, *rest), value in comparison.pairs:
            side = official if of_leaderboard(str(official)) else f"{OFFICIAL}:{official}"
            pairs.append(((f"{name}:{measure}", side, *rest), value))
    if not pairs:
        raise _nothing(track, [f"{column.grader}:{column.measure}" for column in columns])
    if official_measures is None:
        notes |= dict.fromkeys(_own_thresholds(track, list(lines)))
    notes |= dict.fromkeys((*each_once(lines, of_grader), *track.unable_notes))
    keys = "measure", "other_measure", *["query_id"] * per_query
    return LeaderboardComparison(n_queries, keys, tuple(pairs), p, tuple(notes), rejected=track.failed)


class _Column(NamedTuple):
    """A grader's measure with the values of all runs."""

    grader: str
    measure: str
    values: MeasureValues


def _columns(track: LoadedTrack, measures: Measures | None) -> Iterator[_Column]:
    """Yield the columns to compare."""
    if measures is None:
        named: Mapping[str, Sequence[str]] = {n: each.columns for n, each in track.graded_tracks.items()}
    else:
        named = track.by_grader(measures)
    for name, columns in named.items():
        if why_no_scores(track[name]) is None:
            values = scored_values(track[name], rubric_values(track[name], tuple(columns)))
            yield from (_Column(name, measure, values) for measure in values.measures)


def _of_both(left: _Column, other: _Column) -> PairedScores:
    """Return the values of two columns, over shared runs and queries."""
    runs = [run for run in left.values.runs if run in set(other.values.runs)]
    queries = [query for query in left.values.query_ids if query in set(other.values.query_ids)]
    return PairedScores(
        f"{left.grader}:{left.measure}",
        f"{other.grader}:{other.measure}",
        None,
        tuple(runs),
        tuple(queries),
        left.values.matrix(left.measure, runs, queries),
        other.values.matrix(other.measure, runs, queries),
    )


def _correlated(
    scores: PairedScores, p: float, draws: QueryDraws, *, per_query: bool, at_ratings: bool = False
) -> list[tuple[Key, Correlation]]:
    """Return the key and correlation of two sides, in total or per query.

    Args:
        at_ratings: add min_rating to the key, since measures are computed at several ratings.
    """
    key: Key = scores.measure, scores.official_measure, *[scores.min_rating] * at_ratings
    if per_query:
        values = per_query_correlations(scores.rubric, scores.official, rbo_p=p)
        return [((*key, query), value) for query, value in zip(scores.query_ids, values, strict=True)]
    return [(key, correlate(scores.rubric, scores.official, rbo_p=p, draws=draws, ranks=scores.of_ranks))]


def _without_scores(track: LoadedTrack) -> Iterator[str]:
    """Yield graders without scores, with reasons, then runs without scores from the other graders."""
    why = {name: why_no_scores(each) for name, each in track.graded_tracks.items()}
    yield from (Note(f"{name}: {reason}", CHANGES) for name, reason in why.items() if reason)
    for name, each in track.graded_tracks.items():
        if not why[name] and (unscored := runs_without_score(each)):
            yield of_grader(name, without_score_note([run for run in each.runs if run in unscored]))


def _official(
    track: LoadedTrack,
    columns: Sequence[_Column],
    official_measures: Measures | None,
    *,
    per_query: bool,
    rbo_p: float | None,
) -> Iterator[tuple[str, LeaderboardComparison]]:
    """Yield each document grader's name with its comparison to official judgments."""
    for name in dict.fromkeys(column.grader for column in columns):
        each, chosen_measures = track[name], official_measures
        if not each.of_documents:
            requested = (LEADERBOARD,) if official_measures is None else names_of(official_measures) or ()
            chosen_measures = [official for official in requested if of_leaderboard(official)]
            if not chosen_measures or each.inputs.official_leaderboard is None:
                continue
        grader_measures = [column.measure for column in columns if column.grader == name]
        with suppress(NothingToCompareError):
            yield name, compare(each, grader_measures, chosen_measures, per_query=per_query, rbo_p=rbo_p)


def _own_thresholds(track: LoadedTrack, names: Sequence[str]) -> Iterator[str]:
    """Yield a note if graders use different thresholds of relevance for judgments."""
    at = {name: relevance_thresholds(track[name]) for name in names if track[name].of_documents}
    if len({tuple(official_measures_of(track[name])) for name in at}) > 1:
        sides = "; ".join(f"{name}: {each.in_words} ({each.reason})" for name, each in at.items())
        line = f"graders are compared at different thresholds of the judgments: {sides}"
        yield Note(f"{line}; --official-measure sets one for all", CHANGES)


def _nothing(track: LoadedTrack, columns: Sequence[str]) -> NothingToCompareError:
    """Return the error that several graders have nothing to compare, with the next step."""
    if not columns:
        reason = nothing_graded(track.first)
    elif track.unable or len(columns) == 1:
        why = f"nothing to compare: of {shorten_list(columns, 6, quote='')} no two have runs in common"
        reason = "; ".join((why, *track.unable_notes))
    else:
        return nothing_to_compare(track.of_documents)
    return NothingToCompareError(reason, path=track.folder.root)


def swaps_note(scores: PairedScores) -> tuple[str, ...]:
    """Return a note on the number of swapped pairs of runs and the runs with the largest rank differences."""
    runs = find_outliers(scores.runs, scores.rubric, scores.official)
    pairs = list(combinations(runs, 2))
    n_swapped = sum(
        (a.rubric_rank - b.rubric_rank) * (a.official_rank - b.official_rank) < 0 for a, b in pairs
    )
    if not n_swapped:
        return ()
    moved = [run for run in runs[:MOST_NAMED] if run.rubric_rank != run.official_rank]
    ranks = ", ".join(f"{run.run} ({run.rubric_rank:g}, {run.official_rank:g})" for run in moved)
    return (
        f"{n_swapped:,} of {len(pairs):,} pairs of runs swap between {scores.measure} and "
        f"official {scores.official_measure}; largest differences (rank, official rank): {ranks}",
    )
