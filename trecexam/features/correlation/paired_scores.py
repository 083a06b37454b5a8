"""Pairs of values to compare: of runs by rubric labels and by the official side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.grades.diagnostics import judgment_cautions, left_out_runs, nothing_graded, without_score_note
from trecexam.grades.evaluation import official_values, rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_judgments as official_of
from trecexam.grades.official import official_measures as official_measures_of
from trecexam.grades.official import shown_error, why_unjudged
from trecexam.grades.run_grades import runs_without_score
from trecexam.inputs.measures import order_cautions, rating_cautions, skipping_cautions
from trecexam.inputs.official import (
    HOW_TO_ADD,
    LEADERBOARD,
    never_judged,
    never_judged_note,
    of_leaderboard,
    unjudged_note,
)
from trecexam.inputs.track_graders import MeasureLike, names_of, own_measures
from trecexam.results.table import Value
from trecexam.results.text import CHANGES, METHOD, Note, plural, shorten_list
from trecexam.scores.correlation import MIN_DISTINCT, MIN_QUERIES, Correlation, n_distinct
from trecexam.scores.measures import at_min_rating, measure
from trecexam.scores.paired_tests import MOST_RUNS
from trecexam.scores.rank_correlation import Floats
from trecexam.scores.values import MeasureValues

#: Key of a comparison: the two measures and, if there are several, min_rating and query.
Key = tuple["Value", ...]
#: Minimum number of runs: two runs have only the same or the opposite order.
OVER_TWO_RUNS = "over two runs tau can only be -1 or 1"


class NothingToCompareError(TrecexamError):
    """Error of a track without an official side, or without a shared run or query."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Values of runs by a rubric measure and by an official measure.

    Attributes:
        min_rating: the min_rating of the rubric measure; None if not requested, or without effect on the
            measure.
        runs, query_ids: names of the rows and columns of the values.
        rubric: values of shape (n_runs, n_queries).
        official: values of the same shape; for an official leaderboard means, or else negated ranks, shape
            (n_runs,).
    """

    measure: str
    official_measure: str
    min_rating: int | None
    runs: tuple[str, ...]
    query_ids: tuple[str, ...]
    rubric: Floats
    official: Floats

    @property
    def of_ranks(self) -> bool:
        """True if only ranks are known on the official side."""
        return self.official_measure == LEADERBOARD

    @property
    def sides(self) -> tuple[tuple[str, Floats], tuple[str, Floats]]:
        """Return the name and the values of each side."""
        at = "" if self.min_rating is None else f" at min_rating {self.min_rating}"
        return (f"{self.measure}{at}", self.rubric), (f"{self.official_measure} (official)", self.official)


#: A rubric measure, its min_rating, and its values.
_Variant = tuple[str, int | None, MeasureValues]


def paired_scores(
    track: GradedTrack,
    measures: Sequence[str] | None = None,
    official_measures: Sequence[str] | None = None,
    min_ratings: Sequence[int] = (),
) -> tuple[PairedScores, ...]:
    """Pair every rubric measure with every official measure, over shared runs and queries.

    Args:
        measures: None for the track's own.
        official_measures: None for the track's own measures and, if present, the official leaderboard, whose
            name here is `official_leaderboard`.
        min_ratings: values to use in place of the track's min_rating, one after the other; a measure without
            min_rating is computed once.

    Returns:
        At least one pair, sorted by measure, official measure and min_rating; pairs with the official
        leaderboard come last.

    Raises:
        NothingToCompareError: no official side, or no shared run or query."""
    sides = _asked_sides(track, official_measures)
    queries, ranked = common_queries(track), _ranked(track)
    if not track.runs or not (queries or ranked):
        raise nothing_to_compare(track)
    variants = _variants(track, measures, min_ratings)
    if not track.counts.is_graded:
        raise NothingToCompareError(nothing_graded(track), path=track.folder.root)
    unscored = runs_without_score(track)
    runs = [run for run in track.runs if run not in unscored]
    ranked = [run for run in runs if run in ranked]
    judged = None
    if official_measures is not None:
        judged = [name for name in official_measures if not of_leaderboard(name)]
    pairs: list[PairedScores] = []
    failed: tuple[str, ...] = ()
    names = [*map(str, map(measure, official_measures_of(track) if judged is None else judged))]
    if queries and names:
        official = official_values(track, judged, set(queries))
        failed = official.failure_notes
        names = [name for name in names if name not in official.failures]
        pairs += [
            _pair(variant, name, runs, queries, official.matrix(name, runs, queries))
            for of_measure in variants
            for name in names
            for variant in of_measure
        ]
    if ranked:
        for variant in chain.from_iterable(variants):
            for name, side in sides.items():
                both = [run for run in ranked if run in side]
                means = np.array([side[run] for run in both], float)
                pairs.append(_pair(variant, name, both, track.bank.query_ids, means))
    if pairs:
        return tuple(pairs)
    failed = (*failed, *(() if any(variants) else rubric_values(track, measures).failure_notes))
    if failed:
        raise NothingToCompareError("; ".join(failed), path=track.folder.root)
    raise nothing_to_compare(track)


def _pair(
    variant: _Variant, official_measure: str, runs: Sequence[str], queries: Sequence[str], official: Floats
) -> PairedScores:
    name, min_rating, values = variant
    rubric = values.matrix(name, runs, queries)
    return PairedScores(name, official_measure, min_rating, tuple(runs), tuple(queries), rubric, official)


def _asked_sides(
    track: GradedTrack, official_measures: Sequence[str] | None
) -> dict[str, Mapping[str, float]]:
    """Return the requested measures of the official leaderboard: name -> run -> value."""
    sides = {} if track.inputs.official_leaderboard is None else track.inputs.official_leaderboard.sides
    if not official_measures:
        return sides
    leaderboard_measures = [name for name in official_measures if of_leaderboard(name)]
    if leaderboard_measures and track.inputs.official_leaderboard is None:
        raise TrecexamError(f"no official leaderboard: {HOW_TO_ADD}", path=track.folder.root)
    for name in leaderboard_measures:
        if name != LEADERBOARD and name not in sides:
            raise TrecexamError(f"the official leaderboard has no '{name}'; it has {', '.join(sides)}")
    return {
        name: side
        for name, side in sides.items()
        if LEADERBOARD in leaderboard_measures or name in leaderboard_measures
    }


def common_queries(track: GradedTrack) -> list[str]:
    """Return the bank's queries that have official judgments."""
    return [query_id for query_id in track.bank.query_ids if query_id in track.inputs.judged_queries]


def nothing_to_compare(track: GradedTrack) -> NothingToCompareError:
    """Return the error that nothing can be compared with an official side, with the next step."""
    folder = track.folder
    if not track.runs:
        reason = next(iter(left_out_runs(track)), "no runs to compare yet: drop some in here")
        return NothingToCompareError(reason, path=folder.runs)
    if track.official is None and track.inputs.official_ranks is None:
        for refused in _refused(track):
            return NothingToCompareError(refused.reason, path=refused.path, line=refused.line)
        return NothingToCompareError(
            "nothing to compare: it needs official judgments in qrels.txt (lines "
            f"`query_id 0 doc_id label`), or an official leaderboard; {HOW_TO_ADD}",
            path=folder.root,
        )
    unmatched = next(_unmatched_judgments(track), None)
    reason = unmatched or "an official leaderboard has no values per query"
    return NothingToCompareError(reason, path=folder.root)


def comparison_notes(
    track: GradedTrack,
    pairs: Sequence[PairedScores],
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
) -> tuple[str, ...]:
    """Return the notes on a comparison: what was compared, and what was left out.

    Args:
        measures, official_measures: the requested measures; None for the track's own.
    """
    rubric_names = track.measures if measures is None else measures
    official_names = official_measures_of(track) if official_measures is None else official_measures
    on_judgments = [name for name in map(str, official_names) if not of_leaderboard(name)]
    official_sides = {scores.official_measure for scores in pairs}
    not_compared = [name for name in on_judgments if str(measure(name)) not in official_sides]
    lines: list[str] = []
    if track.official is not None and not all(map(of_leaderboard, official_sides)):
        lines.append(Note(_compared(track, len(pairs[0].runs)), METHOD))
        queries, runs = pairs[0].query_ids, pairs[0].runs
        answered = {run: sum(query in track.runs[run] for query in queries) for run in runs}
        lines += skipping_cautions(answered, len(queries))
        lines += official_of(track).warnings()
        lines += _never_judged(track, pairs)
        judged = official_of(track).judged
        common = {query_id: judged[query_id] for query_id in common_queries(track)}
        lines += unjudged_note(track.runs, common)
    lines += [*left_out_runs(track), *order_cautions(track.runs)]
    failed: list[str] = []
    # At a given min_rating, all measures use the same threshold.
    default = {scores.measure for scores in pairs if scores.min_rating is None}
    requested = {*map(str, map(measure, rubric_names))}
    if all(scores.min_rating is None for scores in pairs) and not default >= requested:
        failed += rubric_values(track, names_of(measures)).failure_notes
    if 0 < len(not_compared) < len(on_judgments):
        failed += official_values(track, not_compared, set(common_queries(track))).failure_notes
    lines += dict.fromkeys(failed)
    unscored = runs_without_score(track).difference(*(scores.runs for scores in pairs))
    if unscored:
        lines.append(without_score_note([run for run in track.runs if run in unscored]))
    lines += [shown_error(track.folder, error) for error in _refused(track)]
    lines += _unmatched_judgments(track)
    ranked = _ranked(track)
    out = [run for run in track.runs if run not in ranked and run not in unscored]
    if out and any(map(of_leaderboard, official_sides)):
        lines.append(f"not in the official leaderboard, and so not compared with it: {shorten_list(out)}")
    several = [scores for scores in pairs if len(scores.runs) > 1]
    if len(several) < len(pairs):
        lines.append("a single run has no correlation: there is nothing to order")
    tied = dict.fromkeys(name for each in several for name, values in each.sides if n_distinct(values) == 1)
    if tied:
        line = f"no correlation where all runs are tied: on {shorten_list(list(tied), 6, quote='')}"
        lines.append(Note(line, CHANGES))
    lines += rating_cautions(track.config, [name for name in rubric_names if str(measure(name)) in default])
    lines += judgment_cautions(track, [name for name in on_judgments if name not in not_compared])
    return tuple(lines)


def without_interval(pairs: Sequence[PairedScores], correlations: Iterable[Correlation]) -> tuple[str, ...]:
    """Return the reasons why correlations have no intervals; () if all have intervals.

    Args:
        correlations: the correlations of the pairs.
    """
    if any(0 < len(scores.query_ids) < MIN_QUERIES for scores in pairs):
        return (f"no intervals: they need at least {MIN_QUERIES} queries",)
    if any(len(scores.runs) > MOST_RUNS for scores in pairs):
        return (f"no intervals: they are computed for at most {MOST_RUNS} runs",)
    coefficients = (each for correlation in correlations for each in correlation.coefficients)
    if not any(math.isnan(each.low) and not math.isnan(each.value) for each in coefficients):
        return ()
    runs = "the runs (of kendall@k: the best k)"
    return (f"no interval where {runs} have fewer than {MIN_DISTINCT} distinct values on a side",)


def _variants(
    track: GradedTrack, measures: Sequence[str] | None, min_ratings: Sequence[int]
) -> list[list[_Variant]]:
    """Return the compared variants of each measure."""
    names = own_measures(track.folder, track.measures if measures is None else measures)
    if not min_ratings:
        values = rubric_values(track, measures)
        computed = [name for name in map(str, map(measure, names)) if name not in values.failures]
        return [[(name, None, values)] for name in computed]
    compared = [measure(name) for name in names]
    best = track.grader.scale.max_rating
    for min_rating in min_ratings:
        if not 1 <= min_rating <= best:
            raise TrecexamError(
                f"min_rating {min_rating}: 1..{best} needed, as the grader rates 0..{best}",
                path=track.folder.config_path,
            )
    counts = track.config.scores.label == "count"
    variants: list[list[_Variant]] = []
    seen: set[tuple[str, int | None]] = set()
    for rubric_measure in compared:
        variants.append([])
        for min_rating in min_ratings:
            changed = at_min_rating(rubric_measure, min_rating, counts=counts)
            name, at = str(changed or rubric_measure), None if changed is None else min_rating
            # Measures that differ only in `rel` are equal at a min_rating.
            if (name, at) in seen:
                continue
            seen.add((name, at))
            values = rubric_values(track, [name], min_rating=at)
            if name not in values.failures:
                variants[-1].append((name, at, values))
    return variants


def _compared(track: GradedTrack, n_runs: int) -> str:
    queries, judged = common_queries(track), track.inputs.judged_queries
    unjudged = [query_id for query_id in track.bank.query_ids if query_id not in judged]
    line = f"compared over {plural(len(queries), 'query')} and {plural(n_runs, 'run')}"
    if unjudged:
        line += f"; without official judgments, and left out: {shorten_list(unjudged)}"
    n_outside = len(judged) - len(queries)
    return f"{line}; judged, and not among the grader's queries: {n_outside:,}" if n_outside else line


def _refused(track: GradedTrack) -> Iterator[TrecexamError]:
    """Yield the reasons why official judgments or an official leaderboard were rejected."""
    if track.official is None and track.folder.qrels() is not None:
        try:
            official_of(track)
        except TrecexamError as error:
            yield error
    file = track.folder.official_leaderboard()
    if track.inputs.official_leaderboard is None and file is not None:
        for row in track.rejected:
            if row.file == track.folder.shown(file):
                reason = f"the official leaderboard was rejected: {row.reason}"
                yield TrecexamError(reason, path=file, line=row.line)


def _unmatched_judgments(track: GradedTrack) -> Iterator[str]:
    """Yield official judgments and leaderboards that share nothing with the track."""
    if track.official is not None:
        reason = why_unjudged(track)
        if reason:
            yield reason
    if track.inputs.official_ranks is not None and not _ranked(track):
        ranked = shorten_list([*track.inputs.official_ranks])
        here = shorten_list([*track.runs])
        yield f"the official leaderboard names none of the runs here: it has {ranked}, and here are {here}"


def _never_judged(track: GradedTrack, pairs: Sequence[PairedScores]) -> Iterator[str]:
    """Yield a line on runs without judged passages, whose official values are 0."""
    on_judgments = [scores for scores in pairs if not of_leaderboard(scores.official_measure)]
    runs = on_judgments[0].runs
    # Look up passages only for the few runs with all values 0.
    zero = np.all([(scores.official == 0).all(axis=1) for scores in on_judgments], axis=0)
    unscored = runs_without_score(track).difference(runs)
    of_zero = {name: track.runs[name] for name in (*compress(runs, zero), *sorted(unscored))}
    without = never_judged(of_zero, official_of(track).judged, common_queries(track))
    if 0 < len(without) < len(track.runs):
        yield never_judged_note(without, len(track.runs))


def _ranked(track: GradedTrack) -> list[str]:
    return [run for run in track.runs if run in (track.inputs.official_ranks or ())]
