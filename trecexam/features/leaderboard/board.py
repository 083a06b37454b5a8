"""Leaderboards of one grader or several, with notes on how to read the values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import (
    coverage_notes,
    encoder_cautions,
    grades_notes,
    judgment_cautions,
    left_out_runs,
    run_grades_notes,
)
from trecexam.grades.evaluation import (
    board_of,
    check_runs,
    values_of_runs,
    why_no_scores,
    without_probabilities,
)
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.grades.official import official_judgments
from trecexam.inputs.measures import (
    above_scale,
    order_cautions,
    printed_names,
    rating_cautions,
    weighted,
    without_vital,
)
from trecexam.inputs.official import never_judged, never_judged_note, unjudged_note
from trecexam.inputs.track_graders import (
    MeasureLike,
    Measures,
    each_once,
    listed,
    names_of,
    of_grader,
    own_measures,
)
from trecexam.results.table import Table
from trecexam.results.text import CHANGES, METHOD, Note, number, plural, shorten_list
from trecexam.scores.columns.measures.cover import ITEM
from trecexam.scores.leaderboard import NO_SCORE, Leaderboard, Row, Scores, best_first, first_column
from trecexam.scores.measures import COVER, DIVERSITY, depends_on_pool, measure
from trecexam.scores.support import SUPPORT
from trecexam.scores.values import TIE_DECIMALS


def leaderboard(
    track: GradedTrack,
    measures: Measures | None = None,
    *,
    official: bool = False,
    runs: Collection[str] | None = None,
) -> Leaderboard:
    """Return means and standard errors per run, best first, see `Track.leaderboard`.

    Means are NaN if there is nothing to score (`why_no_scores`).
    """
    measures = listed(measures)
    if measures is not None and not official:
        measures = own_measures(track.folder, measures)
    values = values_of_runs(track, measures, official=official, runs=runs)
    board = board_of(track, values, official=official)
    if official:
        official_notes = _official_notes(track, board, measures)
        return replace(board, notes=(*values.failure_notes, *official_notes))
    notes = (*values.failure_notes, *_notes(track, board, measures))
    return replace(board, notes=notes, human_ratings=track.override_summary())


@memoized
def own_leaderboard(track: GradedTrack) -> Leaderboard:
    """Return the leaderboard by the track's own measures."""
    return leaderboard(track)


def _notes(
    track: GradedTrack, board: Leaderboard, measures: Sequence[MeasureLike] | None = None
) -> tuple[str, ...]:
    """Return the notes on a leaderboard by grades; `measures` None means the track's own."""
    names = track.measures if measures is None else board.measures
    of_support = [name for name in board.measures if name in SUPPORT]
    ranked = [row for row in board.rows if row.run not in track.responses] if of_support else []
    some = f"{len(ranked):,} of {plural(len(board.rows), 'run')}"
    return (
        # Reasons for low values come first, since only a few notes are displayed.
        *left_out_runs(track),
        *run_grades_notes(track),
        *coverage_notes(track, board, track.bank.query_ids),
        *order_cautions(track.runs),
        *encoder_cautions(track),
        *without_vital(names, track.bank),
        *(_of_settings(track) if measures is None else ()),
        *without_probabilities(track, names),
        *(() if measures is None else depth_cautions(track, names)),
        *telling_cautions(track, board),
        *above_scale(board.measures, track.config, track.grader.scale.max_rating),
        *([f"{some}: no generated responses, so 0 in {', '.join(of_support)}"] if ranked else ()),
        *rating_cautions(track.config, track.measures if measures is None else measures),
        *pool_cautions(track, board.measures),
    )


def _official_notes(
    track: GradedTrack, board: Leaderboard, measures: Sequence[MeasureLike] | None
) -> Iterator[str]:
    """Yield the notes on a leaderboard on the official judgments."""
    yield from left_out_runs(track)
    yield from order_cautions(track.runs)
    why = why_no_scores(track, official=True)
    if why is not None:
        yield why
        return
    # Look up passages only for the few runs with all values 0.
    zero = [row.run for row in board.rows if not any(score.mean for score in row.scores)]
    judged = official_judgments(track).judged
    unjudged = never_judged({name: track.runs[name] for name in zero}, judged, judged)
    if unjudged:
        yield never_judged_note(unjudged, len(board.rows))
    yield from telling_cautions(track, board, official=True)
    yield from coverage_notes(track, board, sorted(judged), "judgments")
    yield from unjudged_note({row.run: track.runs[row.run] for row in board.rows}, judged)
    yield from judgment_cautions(track, measures)


def pool_cautions(track: GradedTrack, measures: Iterable[MeasureLike]) -> Iterator[str]:
    """Yield a note on pool-dependent measures, if the pool is of the track's runs only."""
    names = printed_names(each for each in map(measure, measures) if depends_on_pool(each))
    judged = track.inputs.judged_queries if track.config.track.pool_judged else ()
    alone = [query_id for query_id in track.bank.query_ids if query_id not in judged]
    # Graders that identify passages by id have all of them pooled.
    if not names or not alone or not track.runs or track.grader.known_passages is not None:
        return
    where = ""
    if track.config.track.pool_judged:
        where = f" for {len(alone):,} of {plural(len(track.bank.query_ids), 'query')}"
        helps = "`pool_judged` in [track] adds nothing there, for lack of official judgments"
    elif track.official is None:
        helps = "report how many runs were pooled, and to which depth"
    else:
        helps = "`pool_judged = true` in [track] adds the passages of official judgments"
    line = (
        f"values of {', '.join(names)} depend on this pool of {plural(len(track.runs), 'run')}{where}; "
        f"do not compare them with values from other pools; {helps}"
    )
    yield Note(line, METHOD)


def depth_cautions(track: GradedTrack, measures: Iterable[MeasureLike]) -> Iterator[str]:
    """Yield a note on requested measures deeper than the pool, if runs have passages there."""
    track_measures = {*printed_names(map(measure, (*track.measures, *track.columns)))}
    deeper = [each for each in map(measure, measures) if each.params.get("cutoff", 0) > track.depth]
    names = [name for name in printed_names(deeper) if name not in track_measures]
    # Qrels used as grades grade all their passages.
    if not names or track.grader.known_passages is not None:
        return
    if any(run.count(query) > track.depth for run in track.runs.values() for query in run.query_ids):
        caution = f"deeper than the pool (depth {track.depth}), outside which nothing is relevant"
        yield Note(f"{caution}: {', '.join(names)}", CHANGES)


def telling_cautions(track: GradedTrack, board: Leaderboard, *, official: bool = False) -> Iterator[str]:
    """Yield a note if no run has as many ranks as the cutoff of P, or all runs have equal values.

    Generated responses have no ranks.
    """
    measures = [*map(measure, board.measures)]
    means = [row.scores[0].mean for row in board.rows if measures and row.scores[0].exists]
    ranked = [track.runs[row.run] for row in board.rows if row.run not in track.responses]
    precision = next((each for each in measures if each.NAME == "P"), None)
    parts, other, n_ranks = [], None, 0
    if not means:
        return
    lengths = (run.count(query) for run in ranked for query in run.query_ids)
    if precision is not None and ranked and all(length < precision["cutoff"] for length in lengths):
        n_ranks = max((run.count(query) for run in ranked for query in run.query_ids), default=0)
        share, other = number(n_ranks / precision["cutoff"]), precision(cutoff=n_ranks) if n_ranks else None
        parts.append(f"no run has more than {plural(n_ranks, 'rank')}, so {precision} is at most {share}")
    if len(means) > 1 and len({round(mean, TIE_DECIMALS) for mean in means}) == 1:
        depth = n_ranks or measures[0].params.get("cutoff", 10)
        other = measure(f"nDCG@{depth}") if track.of_documents and measures[0].NAME != "nDCG" else None
        parts.append(f"all {len(means):,} runs have the same {board.measures[0]}")
    if parts:
        grader = f"{track.name}:" if track.folder.grader and not official else ""
        see = "" if other is None else f": ask for {grader}{other}"
        yield Note(f"{'; '.join(parts)}{see}", CHANGES)


def _of_settings(track: GradedTrack) -> Iterator[str]:
    """Yield notes on the track's own measures that say little about its runs or ignore weights."""
    of_items = {str(each) for each in weighted(track.measures) if each["weights"] == ITEM}
    plain = [name for name in track.measures if str(measure(name)) not in of_items]
    if plain and track.bank.n_against:
        yield (
            f"{track.bank.n_against:,} of {len(track.bank):,} items have a negative weight, and count "
            f"against in measures with weights={ITEM!r} alone: for labels and for {', '.join(plain)} they "
            "are like others"
        )
    generated, first = track.inputs.dropped.generated.intersection(track.runs), measure(track.measures[0])
    by_ranks = track.config.scores.measures is None and track.kind.ranks
    if by_ranks and first.NAME not in COVER | DIVERSITY and 0 < len(generated) < len(track.runs):
        cover = next(name for name in track.measures if measure(name).NAME in COVER)
        yield (
            f"generated responses ({len(generated):,} of {len(track.runs):,} runs) fill few ranks and have "
            f"little {first} whatever they say: compare them with ranked runs by {cover}"
        )


@dataclass(frozen=True)
class JointLeaderboard(Leaderboard):
    """The leaderboard of several graders. A measure is `NAME:MEASURE`, with the grader's name.

    `n_queries` is that of the first column. A run that a grader does not grade has NaN in its columns.

    Attributes:
        graders: name -> kind of grading, number of queries of the means, and counts of people's ratings.
    """

    graders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def _declare(self) -> dict[str, Table]:
        """Declare the table of one grader, without the number of queries per run, which is in a note."""
        table = super()._declare()["leaderboard"]
        first, *other_keys = table.layout.keys
        layout = replace(table.layout, keys=(first,), without=tuple(other_keys))
        return {"leaderboard": replace(table, layout=layout)}

    @property
    def facts(self) -> dict[str, Any]:
        """Return how means were computed, and facts about each grader."""
        graders = {name: dict(each) for name, each in self.graders.items()}
        return {"measures": list(self.measures), "average": self.average, "graders": graders}


def track_leaderboard(
    track: LoadedTrack,
    measures: Measures | None = None,
    *,
    runs: Collection[str] | None = None,
) -> Leaderboard:
    """Return means and standard errors of a track's graders, best run first by the first column.

    With several graders, each mean is over the queries of its grader. A measure without a grader's name is
    the first grader's. Without measures, the columns of each grader's kind come first and are displayed on a
    terminal; other columns follow.
    """
    if track.is_single:
        is_default = measures is None and runs is None
        board = own_leaderboard(track.first) if is_default else leaderboard(track.first, measures, runs=runs)
        return board.with_notes(*grades_notes(track.first))
    for error in () if track.graded_tracks else track.unable.values():
        raise error
    known_runs = {run for each in track.graded_tracks.values() for run in each.runs}
    if runs is not None and (isinstance(runs, str) or not known_runs.issuperset(runs)):
        check_runs(track.first, runs)
    boards = boards_of(track, measures)
    printed_names = {name: _printed(track[name], board) for name, board in boards.items() if measures is None}
    if measures is None:
        by_name = [*printed_names.items(), *((name, board.measures) for name, board in boards.items())]
        columns = [(name, column) for name, of_grader in by_name for column in of_grader]
    else:
        named = map(track.named, names_of(measures) or ())
        printed = [(name, str(measure(each))) for name, each in named]
        columns = [(name, each) for name, each in printed if each in boards[name].measures]
    columns = list(dict.fromkeys(columns))
    names = tuple(f"{name}:{measure}" for name, measure in columns)
    rows_by_grader = {name: {row.run: row for row in board.rows} for name, board in boards.items()}
    all_runs = dict.fromkeys(run for rows in rows_by_grader.values() for run in rows)
    rows = []
    for run in all_runs if runs is None else [run for run in all_runs if run in set(runs)]:
        of_run = {name: of_grader[run] for name, of_grader in rows_by_grader.items() if run in of_grader}
        scores = [of_run[name].scores[measure] if name in of_run else NO_SCORE for name, measure in columns]  # type: ignore[call-overload]
        any_board = next(iter(of_run.values()))
        rows.append(replace(any_board, scores=Scores(scores, names)))
    rows.sort(key=best_first)
    first = boards[columns[0][0]]
    n_shown = sum(map(len, printed_names.values())) if measures is None else None
    over = ", ".join(f"{name} {board.n_queries:,}" for name, board in boards.items())
    lines_by_grader = {name: [*grades_notes(track[name]), *board.notes] for name, board in boards.items()}
    for name, (column, *_) in printed_names.items():
        if column in boards[name].measures[1:]:
            lines_by_grader[name] += telling_cautions(track[name], _only(boards[name], column))
    return JointLeaderboard(
        names,
        first.n_queries,
        first.average,
        tuple(rows),
        (
            Note(f"means are over each grader's queries: {over}", METHOD),
            *_groups(rows, names[:n_shown]),
            *_missing_runs(track, boards, all_runs),
            *each_once(lines_by_grader, of_grader),
            *track.unable_notes,
        ),
        _n_shown=n_shown,
        rejected=track.failed,
        graders={
            name: {
                "kind": track[name].kind.name,
                "n_queries": board.n_queries,
                "human_ratings": track[name].override_summary(),
            }
            for name, board in boards.items()
        },
    )


def boards_of(track: LoadedTrack, measures: Measures | None) -> Mapping[str, Leaderboard]:
    """Return each grader's leaderboard, by all its measures or by the given measures that it has."""
    if measures is None:
        return {name: _own(each) for name, each in track.graded_tracks.items()}
    return {
        name: leaderboard(track[name], of_grader) for name, of_grader in track.by_grader(measures).items()
    }


def _printed(track: GradedTrack, board: Leaderboard) -> tuple[str, ...]:
    """Return the columns of the grader's kind under their printed names: settings may use an alias."""
    return tuple(name if name in board.measures else str(measure(name)) for name in track.columns)


@memoized
def _own(track: GradedTrack) -> Leaderboard:
    """Return a grader's leaderboard with all columns of its kind."""
    board = own_leaderboard(track)
    missing = [name for name in _printed(track, board) if name not in board.measures]
    if not missing:
        return board
    more = leaderboard(track, missing)
    scores = {row.run: row.scores for row in more.rows}
    names = (*board.measures, *more.measures)
    rows = (replace(row, scores=Scores((*row.scores, *scores[row.run]), names)) for row in board.rows)
    notes = tuple(dict.fromkeys((*board.notes, *more.notes)))
    return replace(board, measures=names, rows=tuple(rows), notes=notes)


def _only(board: Leaderboard, column: str) -> Leaderboard:
    """Return a leaderboard with only this column."""
    rows = (replace(row, scores=Scores((row.scores[column],), (column,))) for row in board.rows)  # type: ignore[call-overload]
    return replace(board, measures=(column,), rows=tuple(rows))


def _groups(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Yield reasons why a run is below another run with a smaller value in some column.

    Args:
        names: the columns displayed first.
    """
    groups: dict[int, list[str]] = {}
    for row in rows:
        groups.setdefault(first_column(row), []).append(row.run)
    # No group without a run.
    first, *later_columns = sorted(groups) or [len(names)]
    for column in later_columns if first < len(names) else ():
        by = f", ordered by {names[column]}" if column < len(names) else ""
        runs = f"{plural(len(groups[column]), 'run')} without {names[first]}"
        yield f"{runs} listed below the others{by}: {shorten_list(groups[column], 3, quote='')}"


def _missing_runs(
    track: LoadedTrack, boards: Mapping[str, Leaderboard], runs: Collection[str]
) -> Iterator[str]:
    """Yield runs that a grader lacks, unless its notes name the number and the reason."""
    for name, board in boards.items():
        missing = sorted(set(runs).difference(row.run for row in board.rows))
        if len(missing) > track[name].inputs.left_out_runs:
            yield f"{name}: not of {plural(len(missing), 'run')}: {shorten_list(missing, 3)}"
