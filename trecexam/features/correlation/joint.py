"""How far several graders of a track order the runs alike, and how far each agrees with the official side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from trecexam.errors import TrecexamError
from trecexam.features.correlation.comparison import LeaderboardComparison, compare
from trecexam.features.correlation.paired_scores import (
    OVER_TWO_RUNS,
    Key,
    NothingToCompareError,
    nothing_to_compare,
)
from trecexam.line.diagnostics import grades_notes, nothing_graded, without_score_note
from trecexam.line.evaluation import rubric_values, scored_values, why_no_scores
from trecexam.line.loaded_track import LoadedTrack
from trecexam.line.measure_names import names_of
from trecexam.line.official_leaderboard import LEADERBOARD, of_leaderboard
from trecexam.line.run_grades import runs_without_score
from trecexam.scores.correlation import Correlation, correlate, per_query_correlations
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.scores.rank_correlation.tau import DEFAULT_P
from trecexam.tables.notes import CHANGES, METHOD, Note, each_once, of_grader
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.measure_names import Measures
    from trecexam.scores.values import MeasureValues

#: What stands before a measure on the official judgments, where others have a grader's name.
OFFICIAL = "official"


class _Column(NamedTuple):
    grader: str
    measure: str
    values: MeasureValues

    @property
    def name(self) -> str:
        return f"{self.grader}:{self.measure}"


def compare_all(
    track: LoadedTrack,
    measures: Measures | None = None,
    official_measures: Measures | None = None,
    *,
    min_ratings: Sequence[int] = (),
    per_query: bool = False,
    rbo_p: float | None = None,
) -> LeaderboardComparison:
    """Correlate a grader's measures with official ones; of several graders, each two columns, too."""
    if track.is_single:
        compared = compare(
            track.first,
            measures,
            official_measures,
            min_ratings=min_ratings,
            per_query=per_query,
            rbo_p=rbo_p,
        )
        return compared.with_notes(*grades_notes(track.first))
    if min_ratings:
        raise TrecexamError(
            f"a min_rating is of one grader's scale: choose a grader ({', '.join(track.assessments)})"
        )
    if official_measures is not None:
        official_measures = [name.removeprefix(f"{OFFICIAL}:") for name in names_of(official_measures) or ()]
    columns = list(_columns(track, measures))
    empty = {name: why for name, each in track.assessments.items() if (why := why_no_scores(each))}
    p, draws = DEFAULT_P if rbo_p is None else rbo_p, QueryDraws()
    pairs: list[tuple[Key, Correlation]] = []
    notes: dict[str, None] = dict.fromkeys(Note(f"{name}: {why}", CHANGES) for name, why in empty.items())
    common: dict[str, list[str]] = {}
    for name, each in track.assessments.items():
        if name not in empty and (unscored := runs_without_score(each)):
            runs = [run for run in each.runs if run in unscored]
            notes[of_grader(name, without_score_note(runs))] = None
    for left, other in combinations(columns, 2):
        runs = [run for run in left.values.runs if run in set(other.values.runs)]
        queries = [query for query in left.values.query_ids if query in set(other.values.query_ids)]
        both = f"{left.grader} and {other.grader}"
        if not runs or not queries:
            common.setdefault(f"no {'queries' if runs else 'runs'} in common", []).append(both)
            continue
        if left.grader != other.grader:
            over = f"over {plural(len(runs), 'run')} and {plural(len(queries), 'query')}"
            common.setdefault(over, []).append(both)
        if len(runs) == 2:
            notes[OVER_TWO_RUNS] = None
        sides = [column.values.matrix(column.measure, runs, queries) for column in (left, other)]
        key = left.name, other.name
        if per_query:
            values = per_query_correlations(*sides, rbo_p=p)
            pairs += [((*key, query), value) for query, value in zip(queries, values, strict=True)]
        else:
            pairs.append((key, correlate(*sides, rbo_p=p, draws=draws)))
    graders = {over: ", ".join(dict.fromkeys(of)) for over, of in common.items()}
    notes |= dict.fromkeys(Note(f"{over}: {names}", METHOD) for over, names in graders.items())
    n_queries, lines = 0, {}
    for name, comparison in _official(track, columns, official_measures, per_query=per_query, rbo_p=rbo_p):
        n_queries = max(n_queries, comparison.n_queries)
        lines[name] = comparison.notes
        pairs += [
            ((f"{name}:{measure}", _official_name(str(official)), *rest), value)
            for (measure, official, *rest), value in comparison.pairs
        ]
    notes |= dict.fromkeys(each_once(lines, of_grader))
    keys = ("measure", "other_measure", "query_id") if per_query else ("measure", "other_measure")
    if not pairs and track.unable:
        why = "; ".join(("nothing to compare: no two columns have runs in common", *track.unable_notes))
        raise NothingToCompareError(why, path=track.folder.root)
    if not columns:
        raise NothingToCompareError(nothing_graded(track.first), path=track.folder.root)
    if not pairs and len(columns) == 1:
        raise NothingToCompareError(
            f"nothing to compare {columns[0].name} with: its grader has no official side; name a second "
            "measure",
            path=track.folder.root,
        )
    if not pairs:
        raise nothing_to_compare(track.of_documents)
    return LeaderboardComparison(
        n_queries,
        keys,
        tuple(pairs),
        p,
        (*notes, *(line for line in track.unable_notes if line not in notes)),
        rejected=track.failed,
    )


def _columns(track: LoadedTrack, measures: Measures | None) -> Iterator[_Column]:
    """The columns that are compared, with their values."""
    if measures is None:
        named = [(name, each.columns) for name, each in track.assessments.items()]
    else:
        named = [(name, tuple(of_grader)) for name, of_grader in track.by_grader(measures).items()]
    for name, columns in named:
        if why_no_scores(track[name]) is not None:
            continue
        values = scored_values(track[name], rubric_values(track[name], columns))
        yield from (_Column(name, measure, values) for measure in values.measures)


def _official(
    track: LoadedTrack,
    columns: Sequence[_Column],
    official_measures: Measures | None,
    *,
    per_query: bool,
    rbo_p: float | None,
) -> Iterator[tuple[str, LeaderboardComparison]]:
    """The columns of each grader with the official side: with judgments where its labels are of documents."""
    for name in dict.fromkeys(column.grader for column in columns):
        each = track[name]
        chosen_measures = official_measures
        if not each.of_documents:
            requested = (LEADERBOARD,) if official_measures is None else names_of(official_measures) or ()
            chosen_measures = [official for official in requested if of_leaderboard(official)]
            if not chosen_measures or each.official_leaderboard is None:
                continue
        grader_measures = [column.measure for column in columns if column.grader == name]
        with suppress(NothingToCompareError):
            yield name, compare(each, grader_measures, chosen_measures, per_query=per_query, rbo_p=rbo_p)


def _official_name(measure: str) -> str:
    return measure if of_leaderboard(measure) else f"{OFFICIAL}:{measure}"
