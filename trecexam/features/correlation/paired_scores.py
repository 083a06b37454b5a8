"""What is compared with what: the same runs' values on the rubric labels and on the official side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import (
    judgment_cautions,
    left_out_runs,
    nothing_graded,
    order_cautions,
    rating_cautions,
    skipping_cautions,
    without_score_note,
)
from trecexam.line.evaluation import official_values, rubric_values
from trecexam.line.measure_names import MeasureLike, names_of
from trecexam.line.official import never_judged, never_judged_note, shown_error, unjudged_note, why_unjudged
from trecexam.line.official import official_judgments as official_of
from trecexam.line.official_leaderboard import HOW_TO_ADD, LEADERBOARD, of_leaderboard
from trecexam.line.rejected import not_computable
from trecexam.line.relevance import official_measures as official_measures_of
from trecexam.line.run_grades import runs_without_score
from trecexam.line.track_graders import own_measures
from trecexam.scores.correlation import MIN_DISTINCT, MIN_QUERIES, n_distinct, tops_without_interval
from trecexam.scores.measures import COVER, DIVERSITY, at_min_rating, measure
from trecexam.scores.paired_tests import MOST_RUNS
from trecexam.scores.rank_correlation.ranks import Floats, official_means
from trecexam.scores.values import MeasureValues
from trecexam.tables.notes import CHANGES, METHOD, Note
from trecexam.tables.table import Value
from trecexam.tables.text import plural, shorten_list

R = TypeVar("R")
#: The measures that are compared and, where several are, the min_rating and the query.
Key = tuple["Value", ...]
#: Two runs are in the same order or in the opposite one.
OVER_TWO_RUNS = "over two runs tau can only be -1 or 1"


class NothingToCompareError(TrecexamError):
    """A track lacks an official side, or has no run or query in common with it; it says which."""


@dataclass(frozen=True, eq=False)
class PairedScores:
    """The same runs under a rubric measure and under an official one.

    Attributes:
        min_rating: what the rubric measure was computed at; None where it was not asked for, or has no
            bearing on the measure.
        runs, query_ids: what the rows and columns of the values are.
        rubric: values of shape (n_runs, n_queries).
        official: values of the same shape; of an official leaderboard its means, or the negated ranks where
            it has these alone, shape (n_runs,).
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
        """Whether only ranks are known on the official side."""
        return self.official_measure == LEADERBOARD


@dataclass(frozen=True)
class _Variant:
    """A rubric measure at a min_rating."""

    name: str
    min_rating: int | None
    values: MeasureValues


def paired_scores(
    track: Assessment,
    measures: Sequence[str] | None = None,
    official_measures: Sequence[str] | None = None,
    min_ratings: Sequence[int] = (),
    *,
    first: bool = False,
) -> tuple[PairedScores, ...]:
    """Every rubric measure with every official one, over the runs and queries that both sides have.

    Args:
        track: a loaded one.
        measures: None for the track's own.
        official_measures: None for the track's own and, where there is one, the official leaderboard; its
            name among them is `official_leaderboard`.
        min_ratings: each measure is computed at each of these in place of the track's min_rating; a measure
            that min_rating has no bearing on is there once.
        first: of measures that are not given, take only the track's first.

    Returns:
        By measure, then official measure, then min_rating, then those with the official leaderboard; at least
        one.

    Raises:
        NothingToCompareError: there is no official side, or no run or query that both sides have.
        TrecexamError: a min_rating is not on the grader's scale, or there is no official leaderboard and it
            is requested.
        ValueError: a measure cannot be computed.
    """
    sides = _asked_sides(track, official_measures)
    queries, ranked = common_queries(track), _ranked(track)
    runs = list(track.runs)
    if not runs or not (queries or ranked):
        raise nothing_to_compare(track)
    variants = _variants(track, measures, min_ratings, first=first)
    if not track.counts.is_graded:
        raise NothingToCompareError(nothing_graded(track), path=track.folder.root)
    unscored = runs_without_score(track)
    runs, ranked = ([run for run in each if run not in unscored] for each in (runs, ranked))
    judged_measures = (
        None if official_measures is None else [n for n in official_measures if not of_leaderboard(n)]
    )
    names = [
        str(measure(n)) for n in (official_measures_of(track) if judged_measures is None else judged_measures)
    ]
    pairs: list[PairedScores] = []
    failed: tuple[str, ...] = ()
    if queries and names:
        official = official_values(track, judged_measures, set(queries))
        names = [name for name in names if name not in official.failures]
        failed = official.failure_notes
        pairs += _with_judgments(
            variants, official, names[: 1 if first and judged_measures is None else None], runs, queries
        )
    if ranked and (official_measures or not (first and pairs)):
        chosen_sides = dict(list(sides.items())[:1]) if first and not official_measures else sides
        pairs += _with_leaderboard(chosen_sides, variants, ranked, track.bank.query_ids)
    if not pairs:
        failed = (*failed, *(() if any(variants) else rubric_values(track, measures).failure_notes))
        raise (
            NothingToCompareError("; ".join(failed), path=track.folder.root)
            if failed
            else nothing_to_compare(track)
        )
    return tuple(pairs)


def _with_judgments(
    variants: Sequence[Sequence[_Variant]],
    official: MeasureValues,
    official_measures: Sequence[str],
    runs: Sequence[str],
    queries: Sequence[str],
) -> Iterator[PairedScores]:
    """The variants with each official measure, over these runs and queries."""
    for of_measure in variants:
        for name in official_measures:
            official_scores = official.matrix(name, runs, queries)
            for variant in of_measure:
                yield PairedScores(
                    variant.name,
                    name,
                    variant.min_rating,
                    tuple(runs),
                    tuple(queries),
                    variant.values.matrix(variant.name, runs, queries),
                    official_scores,
                )


def _asked_sides(
    track: Assessment, official_measures: Sequence[str] | None
) -> dict[str, Mapping[str, float]]:
    """What the official leaderboard says, of the measures that are requested.

    Raises:
        TrecexamError: there is none, or it lacks a measure that is requested.
    """
    sides = {} if track.official_leaderboard is None else track.official_leaderboard.sides
    if not official_measures:
        return sides
    leaderboard_measures = [name for name in official_measures if of_leaderboard(name)]
    if leaderboard_measures and track.official_leaderboard is None:
        raise TrecexamError(f"no official leaderboard: {HOW_TO_ADD}", path=track.folder.root)
    for name in leaderboard_measures:
        if name != LEADERBOARD and name not in sides:
            raise TrecexamError(f"the official leaderboard has no '{name}'; it has {', '.join(sides)}")
    return {
        name: side
        for name, side in sides.items()
        if LEADERBOARD in leaderboard_measures or name in leaderboard_measures
    }


def _with_leaderboard(
    sides: Mapping[str, Mapping[str, float]],
    variants: Sequence[Sequence[_Variant]],
    ranked: Sequence[str],
    queries: Sequence[str],
) -> Iterator[PairedScores]:
    """The variants with each measure of the official leaderboard, of those of these runs that it has."""
    for of_measure in variants:
        for variant in of_measure:
            for name, official in sides.items():
                runs = [run for run in ranked if run in official]
                yield PairedScores(
                    variant.name,
                    name,
                    variant.min_rating,
                    tuple(runs),
                    tuple(queries),
                    variant.values.matrix(variant.name, runs, queries),
                    np.array([official[run] for run in runs], float),
                )


def common_queries(track: Assessment) -> list[str]:
    """The bank's queries that have official judgments."""
    return [query_id for query_id in track.bank.query_ids if query_id in track.inputs.judged_queries]


def nothing_to_compare(track: Assessment) -> NothingToCompareError:
    """Why nothing can be compared with an official side, and what to do."""
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


def if_any(track: Assessment, compared: Callable[[Assessment], R]) -> R | None:
    """The result; None where there is nothing to compare, or a measure cannot be computed."""
    try:
        return compared(track) if not_computable(track) is None else None
    except NothingToCompareError:
        return None


def _failed(
    track: Assessment,
    pairs: Sequence[PairedScores],
    measures: Sequence[MeasureLike] | None,
    official_measures: Sequence[MeasureLike] | None,
) -> dict[str, None]:
    """Return a line on each measure that is not compared since its provider failed."""
    lines: dict[str, None] = {}
    rubric_names = track.measures if measures is None else measures
    own = {scores.measure for scores in pairs}
    if not any(scores.min_rating for scores in pairs) and not own.issuperset(
        map(str, map(measure, rubric_names))
    ):
        lines |= dict.fromkeys(rubric_values(track, names_of(measures)).failure_notes)
    names = official_measures_of(track) if official_measures is None else official_measures
    compared = {scores.official_measure for scores in pairs}
    judged = [str(name) for name in names if not of_leaderboard(str(name))]
    missing = [name for name in judged if str(measure(name)) not in compared]
    if missing and compared.intersection(map(str, map(measure, judged))):
        lines |= dict.fromkeys(official_values(track, missing, set(common_queries(track))).failure_notes)
    return lines


def comparison_notes(
    track: Assessment,
    pairs: Sequence[PairedScores],
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
) -> tuple[str, ...]:
    """What of a comparison is not in its table, in lines for people: what was compared, and what was not.

    Args:
        measures, official_measures: as they were given; None for the track's own.
    """
    lines: list[str] = []
    if track.official is not None and any(not of_leaderboard(scores.official_measure) for scores in pairs):
        lines.append(Note(_compared(track, len(pairs[0].runs)), METHOD))
        lines += _skipping(track, pairs[0])
        lines += official_of(track).warnings()
        lines += _never_judged(track, pairs)
        judged = official_of(track).judged
        common = {query_id: judged[query_id] for query_id in common_queries(track)}
        lines += unjudged_note(track.runs, common)
    lines += [*left_out_runs(track), *order_cautions(track.runs)]
    lines += _failed(track, pairs, measures, official_measures)
    unscored = runs_without_score(track).difference(*(scores.runs for scores in pairs))
    if unscored:
        lines.append(without_score_note([run for run in track.runs if run in unscored]))
    lines += [shown_error(track.folder, error) for error in _refused(track)]
    lines += _unmatched_judgments(track)
    ranked = _ranked(track)
    out = [run for run in track.runs if run not in ranked and run not in unscored]
    if out and any(of_leaderboard(scores.official_measure) for scores in pairs):
        lines.append(f"not in the official leaderboard, and so not compared with it: {shorten_list(out)}")
    if any(len(scores.runs) == 1 for scores in pairs):
        lines.append("a single run has no correlation: there is nothing to order")
    tied: dict[str, None] = {}
    for scores in pairs:
        if len(scores.runs) > 1:
            rubric = scores.measure, scores.rubric
            official = f"{scores.official_measure} (official)", scores.official
            tied.update((name, None) for name, values in (rubric, official) if _flat(values))
    if tied:
        line = f"no correlation where all runs are tied: on {shorten_list(list(tied), 6, quote='')}"
        lines.append(Note(line, CHANGES))
    return (*lines, *_thresholds(track, pairs, measures, official_measures))


def _thresholds(
    track: Assessment,
    pairs: Sequence[PairedScores],
    measures: Sequence[MeasureLike] | None,
    official_measures: Sequence[MeasureLike] | None,
) -> Iterator[str]:
    """Lines on measures that count from another label on than the track, but at a given min_rating."""
    rubric = {scores.measure for scores in pairs if scores.min_rating is None}
    judged = {scores.official_measure for scores in pairs}
    official = official_measures_of(track) if official_measures is None else official_measures
    on_judgments = [name for name in official if not of_leaderboard(str(name))]
    rubric_measures = [
        name for name in (track.measures if measures is None else measures) if str(measure(name)) in rubric
    ]
    yield from rating_cautions(track.config, rubric_measures)
    yield from judgment_cautions(track, [name for name in on_judgments if str(measure(name)) in judged])


def without_interval(pairs: Sequence[PairedScores]) -> tuple[str, ...]:
    """Why correlations of these have no intervals, in lines for people; none where all have."""
    if any(0 < len(scores.query_ids) < MIN_QUERIES for scores in pairs):
        return (f"no intervals: they need at least {MIN_QUERIES} queries",)
    if any(len(scores.runs) > MOST_RUNS for scores in pairs):
        return (f"no intervals: they are computed for at most {MOST_RUNS} runs",)
    few: dict[str, int] = {}
    for scores in pairs:
        at = "" if scores.min_rating is None else f" at min_rating {scores.min_rating}"
        rubric = f"{scores.measure}{at}", scores.rubric
        official = f"{scores.official_measure} (official)", scores.official
        for name, values in (rubric, official):
            n = n_distinct(values)
            # A single one means that there is no correlation at all, which `remarks` say.
            if 1 < n < MIN_DISTINCT:
                few[name] = n
    lines: list[str] = []
    if few:
        n_runs = max(len(scores.runs) for scores in pairs)
        distinct = [f"{name} {n}" for name, n in few.items()]
        name, n = next(iter(few.items()))
        sides = shorten_list([f"{name} has {n} distinct values", *distinct[1:]], 6, quote="")
        lines.append(
            f"no interval where the runs have fewer than {MIN_DISTINCT} distinct values on a side, as the "
            f"coefficient can then take only a few values: of {plural(n_runs, 'run')}, {sides}"
        )
    tops: dict[str, None] = {}
    for scores in pairs:
        for k in tops_without_interval(scores.rubric, scores.official):
            tops[f"kendall@{k} of {scores.measure} with {scores.official_measure}"] = None
    if tops:
        lines.append(
            f"no interval where the best runs alone have fewer than {MIN_DISTINCT} distinct values on a "
            f"side: {shorten_list(list(tops), 4, quote='')}"
        )
    return tuple(lines)


def _variants(
    track: Assessment, measures: Sequence[str] | None, min_ratings: Sequence[int], *, first: bool
) -> list[list[_Variant]]:
    """For each measure, what of it is compared."""
    names = own_measures(track.folder, track.measures if measures is None else measures)
    most = 1 if first and measures is None else None
    if not min_ratings:
        values = rubric_values(track, measures)
        computed = [name for name in map(str, map(measure, names)) if name not in values.failures]
        return [[_Variant(name, None, values)] for name in computed[:most]]
    compared = [measure(name) for name in names][:most]
    _refuse_off_scale(track, min_ratings)
    counts = track.config.scores.label == "count"
    # Two measures that differ in nothing but `rel` are the same at a min_rating.
    measure_indices: dict[tuple[str, int | None], int] = {}
    for measure_index, rubric_measure in enumerate(compared):
        for min_rating in min_ratings:
            changed = at_min_rating(rubric_measure, min_rating, counts=counts)
            key = (str(rubric_measure), None) if changed is None else (str(changed), min_rating)
            measure_indices.setdefault(key, measure_index)
    # Of those that need no labels of their own all are computed in one pass over the runs.
    passes = {
        (name, rating): rating if _relabelled(name, counts=counts) else None
        for name, rating in measure_indices
    }
    values_at = {
        at: rubric_values(
            track,
            list(dict.fromkeys(name for name, rating in measure_indices if passes[name, rating] == at)),
            min_rating=at,
        )
        for at in dict.fromkeys(passes.values())
    }
    variants: list[list[_Variant]] = [[] for _ in compared]
    for (name, rating), measure_index in measure_indices.items():
        if name in values_at[passes[name, rating]].failures:
            continue
        variants[measure_index].append(_Variant(name, rating, values_at[passes[name, rating]]))
    return variants


def _refuse_off_scale(track: Assessment, min_ratings: Sequence[int]) -> None:
    best = track.grader.scale.max_rating
    for min_rating in min_ratings:
        if not 1 <= min_rating <= best:
            raise TrecexamError(
                f"min_rating {min_rating}: 1..{best} needed, as the grader rates 0..{best}",
                path=track.folder.config_path,
            )


def _relabelled(name: str, *, counts: bool) -> bool:
    """Whether min_rating makes other labels, or subtopics, for this measure to be computed on."""
    kind = measure(name).NAME
    return kind in DIVERSITY or (counts and kind not in COVER)


def _skipping(track: Assessment, scores: PairedScores) -> Iterator[str]:
    """Name the runs that answer fewer of the compared queries than others do."""
    answered = {run: sum(query in track.runs[run] for query in scores.query_ids) for run in scores.runs}
    return skipping_cautions(answered, len(scores.query_ids))


def _compared(track: Assessment, n_runs: int) -> str:
    queries, judged = common_queries(track), track.inputs.judged_queries
    unjudged = [query_id for query_id in track.bank.query_ids if query_id not in judged]
    line = f"compared over {plural(len(queries), 'query')} and {plural(n_runs, 'run')}"
    if unjudged:
        line += f"; without official judgments, and left out: {shorten_list(unjudged)}"
    n_outside = len(judged) - len(queries)
    return f"{line}; judged, and not among the grader's queries: {n_outside:,}" if n_outside else line


def _refused(track: Assessment) -> Iterator[TrecexamError]:
    """Why official judgments or an official leaderboard that are there were rejected."""
    if track.official is None and track.folder.qrels() is not None:
        try:
            official_of(track)
        except TrecexamError as error:
            yield error
    file = track.folder.official_leaderboard()
    if track.official_leaderboard is None and file is not None:
        for row in track.rejected:
            if row.file == track.folder.shown(file):
                reason = f"the official leaderboard was rejected: {row.reason}"
                yield TrecexamError(reason, path=file, line=row.line)


def _unmatched_judgments(track: Assessment) -> Iterator[str]:
    """Official judgments and leaderboards that have nothing in common with what is here."""
    if track.official is not None:
        reason = why_unjudged(track)
        if reason:
            yield reason
    if track.inputs.official_ranks is not None and not _ranked(track):
        file = track.folder.official_leaderboard()
        if file is not None and list(track.inputs.official_ranks) == [file.stem]:
            yield (
                "the official leaderboard names no run: a file in the format `trec_eval` is of one run, and "
                "cannot be the leaderboard; use a format with a column for the run, see `trecexam formats`"
            )
            return
        ranked, runs = (shorten_list(list(names)) for names in (track.inputs.official_ranks, track.runs))
        yield f"the official leaderboard names none of the runs here: it has {ranked}, and here are {runs}"


def _never_judged(track: Assessment, pairs: Sequence[PairedScores]) -> Iterator[str]:
    """A line on runs of which nothing is judged, so that their official values are 0."""
    on_judgments = [scores for scores in pairs if not of_leaderboard(scores.official_measure)]
    runs = on_judgments[0].runs
    # Few runs have 0 throughout; only the passages of these are looked up.
    zero = np.all([(scores.official == 0).all(axis=1) for scores in on_judgments], axis=0)
    unscored = runs_without_score(track).difference(runs)
    of_zero = {name: track.runs[name] for name in (*itertools.compress(runs, zero), *sorted(unscored))}
    without = never_judged(of_zero, official_of(track).judged, common_queries(track))
    if 0 < len(without) < len(track.runs):
        yield never_judged_note(without, len(track.runs))


def _ranked(track: Assessment) -> list[str]:
    return [run for run in track.runs if run in (track.inputs.official_ranks or ())]


def _flat(values: Floats) -> bool:
    means = official_means(values)
    return bool((means == means[0]).all())


def compared_by(min_ratings: Sequence[int]) -> tuple[str, ...]:
    """The names of the parts of each pair's key."""
    return ("measure", "official_measure", "min_rating") if min_ratings else ("measure", "official_measure")


def key_of(scores: PairedScores, min_ratings: Sequence[int]) -> Key:
    """What is compared: both measures, and the rating from which on items count where there are several."""
    names = scores.measure, scores.official_measure
    return (*names, scores.min_rating) if min_ratings else names
