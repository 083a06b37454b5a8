"""The leaderboard of several graders: a row a run, and the columns of each grader side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trecexam.features.leaderboard.board import leaderboard, own_leaderboard, telling_cautions
from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import grades_notes
from trecexam.grades.evaluation import check_runs
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.loaded_track import LoadedTrack
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.notes import METHOD, Note, each_once, of_grader
from trecexam.results.table import Table
from trecexam.results.text import plural, shorten_list
from trecexam.scores import measures as of_measures
from trecexam.scores.leaderboard import NO_SCORE, Leaderboard, Row, Scores, best_first, first_column


@dataclass(frozen=True)
class JointLeaderboard(Leaderboard):
    """The leaderboard of several graders. A measure is `NAME:MEASURE`, with the grader's name.

    `n_queries` is of the first column. A run that a grader does not look at has NaN there.

    Attributes:
        graders: name -> the kind of grading, how many queries the means are over, and how much of the grades
            people gave.
    """

    graders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def _declare(self) -> dict[str, Table]:
        """Declare the table of one grader; people read in a note how many queries a run answers."""
        table = super()._declare()["leaderboard"]
        layout = replace(table.layout, keys=("run",), without=("queries",))
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

    Of several graders each mean is over that grader's own queries. A measure without a grader's name is the
    first grader's. Without measures, the columns of each grader's kind come first, which are those that a
    terminal shows, then the others.
    """
    if track.is_single:
        own = measures is None and runs is None
        board = own_leaderboard(track.first) if own else leaderboard(track.first, measures, runs=runs)
        return board.with_notes(*grades_notes(track.first))
    for error in () if track.graded_tracks else track.unable.values():
        raise error
    known_runs = {run for each in track.graded_tracks.values() for run in each.runs}
    if runs is not None and (isinstance(runs, str) or not known_runs.issuperset(runs)):
        check_runs(track.first, runs)
    boards = boards_of(track, measures)
    shown = {name: _printed(track[name], board) for name, board in boards.items() if measures is None}
    if measures is None:
        by_name = [*shown.items(), *((name, board.measures) for name, board in boards.items())]
        columns = [(name, column) for name, of_grader in by_name for column in of_grader]
    else:
        named = map(track.named, names_of(measures) or ())
        printed = [(name, str(of_measures.measure(measure))) for name, measure in named]
        columns = [(name, measure) for name, measure in printed if measure in boards[name].measures]
    columns = list(dict.fromkeys(columns))
    names = tuple(f"{name}:{measure}" for name, measure in columns)
    rows_by_grader = {name: {row.run: row for row in board.rows} for name, board in boards.items()}
    all_runs = dict.fromkeys(run for rows in rows_by_grader.values() for run in rows)
    rows = []
    for run in all_runs if runs is None else [run for run in all_runs if run in set(runs)]:
        of_run = {name: of_grader[run] for name, of_grader in rows_by_grader.items() if run in of_grader}
        scores = [of_run[name].scores[measure] if name in of_run else NO_SCORE for name, measure in columns]  # type: ignore[call-overload]
        one = next(iter(of_run.values()))
        rows.append(Row(run, one.n_queries, one.n_answered, Scores(scores, names), one.file, one.graded))
    rows.sort(key=best_first)
    first = boards[columns[0][0]]
    n_shown = sum(map(len, shown.values())) if measures is None else None
    over = ", ".join(f"{name} {board.n_queries:,}" for name, board in boards.items())
    lines_by_grader = {name: [*grades_notes(track[name]), *board.notes] for name, board in boards.items()}
    for name, (column, *_) in shown.items():
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
    """Return each grader's leaderboard, by all its measures or by those of these measures that it has."""
    if measures is None:
        return {name: _own(each) for name, each in track.graded_tracks.items()}
    return {
        name: leaderboard(track[name], of_grader) for name, of_grader in track.by_grader(measures).items()
    }


def _printed(track: GradedTrack, board: Leaderboard) -> tuple[str, ...]:
    """Return the columns of its kind as leaderboards print them: settings may name an alias."""
    return tuple(name if name in board.measures else str(of_measures.measure(name)) for name in track.columns)


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
    """Return a leaderboard with this column alone."""
    rows = (replace(row, scores=Scores((row.scores[column],), (column,))) for row in board.rows)  # type: ignore[call-overload]
    return replace(board, measures=(column,), rows=tuple(rows))


def _groups(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Yield why runs are below others that have less in some column.

    Args:
        names: the columns that are shown first.
    """
    groups: dict[int, list[str]] = {}
    for row in rows:
        groups.setdefault(first_column(row), []).append(row.run)
    # Without a run there is no group.
    first, *later_columns = sorted(groups) or [len(names)]
    for column in later_columns if first < len(names) else ():
        by = f", ordered by {names[column]}" if column < len(names) else ""
        runs = f"{plural(len(groups[column]), 'run')} without {names[first]}"
        yield f"{runs} listed below the others{by}: {shorten_list(groups[column], 3, quote='')}"


def _missing_runs(
    track: LoadedTrack, boards: Mapping[str, Leaderboard], runs: Collection[str]
) -> Iterator[str]:
    """Yield runs that a grader does not have, unless its notes say how many it leaves out, and why."""
    for name, board in boards.items():
        missing = sorted(set(runs).difference(row.run for row in board.rows))
        if len(missing) > track[name].inputs.left_out_runs:
            yield f"{name}: not of {plural(len(missing), 'run')}: {shorten_list(missing, 3)}"
