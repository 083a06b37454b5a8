"""The leaderboard of several graders: a row a run, and the first columns of each grader side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trecexam.line.assessment import Assessment
from trecexam.line.evaluation import check_runs, leaderboard, own_leaderboard
from trecexam.line.loaded_track import LoadedTrack
from trecexam.line.measure_names import names_of
from trecexam.scores.leaderboard import Leaderboard, Row, Score
from trecexam.scores.measures import short_names
from trecexam.scores.ties import TIE_DECIMALS
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from trecexam.line.measure_names import MeasureLike

_NOTHING = Score(float("nan"), float("nan"))


def joint_leaderboard(
    track: LoadedTrack,
    measures: Sequence[MeasureLike] | None = None,
    *,
    official: bool = False,
    runs: Collection[str] | None = None,
) -> Leaderboard:
    """Means and standard errors of all graders of a track, best run first by the first column.

    A measure is `NAME:MEASURE`, with the grader's name. Each mean is over that grader's own queries; a run
    that a grader does not look at has no number there (NaN). Of a track with one grader, that one's.

    Args:
        measures: None for the columns of each grader's kind, at most two of each. A name without a grader's
            before it is the first grader's.
        official: on the official judgments instead, by the first grader whose labels are of documents.
        runs: the runs that are shown, None for all.

    Raises:
        TrecexamError, ConversionError, ValueError: see `leaderboard`; or no grader can be asked about.
    """
    _ = track.first
    if official or track.is_single:
        return leaderboard(track.of_documents, measures, official=official, runs=runs)
    boards = joint_boards(track, measures)
    if runs is not None:
        _check_runs(track, runs)
    columns = [(name, at) for name, board in boards.items() for at in range(len(board.measures))]
    if measures is not None:
        columns = _in_order(track, measures, boards)
    names = tuple(f"{name}:{boards[name].measures[at]}" for name, at in columns)
    found = {name: {row.run: row for row in board.rows} for name, board in boards.items()}
    all_runs = dict.fromkeys(row.run for board in boards.values() for row in board.rows)
    rows = []
    for run in all_runs if runs is None else [run for run in all_runs if run in set(runs)]:
        of_run = [row for rows_of in found.values() if (row := rows_of.get(run)) is not None]
        scores = tuple(
            found[name][run].scores[at] if run in found[name] else _NOTHING for name, at in columns
        )
        rows.append(Row(run, of_run[0].n_queries, of_run[0].n_answered, scores))
    rows.sort(key=_best_first)
    first = boards[columns[0][0]]
    notes = (*_queries(boards), *_missing_runs(boards, all_runs), *_cautions(track, boards))
    return Leaderboard(names, first.n_queries, first.average, tuple(rows), notes)


def joint_boards(
    track: LoadedTrack, measures: Sequence[MeasureLike] | None = None
) -> Mapping[str, Leaderboard]:
    """Name -> the leaderboard of a grader's columns, or of those of these measures that are its own."""
    if measures is None:
        return {name: _own(each) for name, each in track.assessments.items()}
    asked: dict[str, list[str]] = {}
    for measure in names_of(measures) or ():
        name, own = track.named(measure)
        asked.setdefault(name, []).append(own)
    return {name: leaderboard(track[name], of_grader) for name, of_grader in asked.items()}


def all_measures(track: LoadedTrack) -> tuple[str, ...]:
    """Every measure of every grader, as the joint leaderboard names them."""
    return tuple(f"{name}:{measure}" for name, each in track.assessments.items() for measure in each.measures)


def joint_short_names(measures: Sequence[str]) -> dict[str, str]:
    """What people call these columns, where they have a shorter name."""
    short: dict[str, str] = {}
    for column in measures:
        name, _, measure = column.partition(":")
        short |= {f"{name}:{long}": f"{name}:{known}" for long, known in short_names([measure]).items()}
    return short


def _check_runs(track: LoadedTrack, runs: Collection[str]) -> None:
    """Refuses names of runs that no grader of the track looks at.

    Raises:
        TrecexamError: with one of them.
    """
    known = {run for each in track.assessments.values() for run in each.runs}
    if isinstance(runs, str) or not known.issuperset(runs):
        check_runs(track.first, runs)


def joint_json(track: LoadedTrack, board: Leaderboard) -> dict[str, Any]:
    """The joint leaderboard's JSON twin; `graders` says of each how many queries its means are over."""
    files = {
        run: each.folder.shown(path)
        for each in track.assessments.values()
        for run, path in each.run_files.items()
    }
    return {
        "measures": list(board.measures),
        "average": board.average,
        "graders": {
            name: {
                "kind": each.kind.name,
                "n_queries": len(each.bank.query_ids),
                "human_ratings": each.override_summary(),
            }
            for name, each in track.assessments.items()
        },
        "cautions": list(board.cautions),
        "runs": [
            {
                "run": row.run,
                "file": files[row.run],
                "scores": {
                    name: {"mean": score.mean, "stderr": score.stderr}
                    for name, score in zip(board.measures, row.scores, strict=True)
                },
            }
            for row in board.rows
        ],
    }


def _own(track: Assessment) -> Leaderboard:
    """The columns of a grader's kind; those that it has no measures for are evaluated now."""
    own = own_leaderboard(track)
    if set(track.columns) <= set(own.measures):
        places = [own.measures.index(name) for name in track.columns]
        rows = (
            Row(row.run, row.n_queries, row.n_answered, tuple(row.scores[at] for at in places))
            for row in own.rows
        )
        return Leaderboard(track.columns, own.n_queries, own.average, tuple(rows), own.cautions)
    return track.derived(
        "columns", ("cells", "people", "runs", "settings"), lambda: leaderboard(track, track.columns)
    )


def _in_order(
    track: LoadedTrack, measures: Sequence[MeasureLike], boards: Mapping[str, Leaderboard]
) -> list[tuple[str, int]]:
    """The columns as they were asked for."""
    places = {name: iter(range(len(board.measures))) for name, board in boards.items()}
    named = dict.fromkeys(track.named(measure) for measure in names_of(measures) or ())
    return [(name, at) for name, _ in named if (at := next(places[name], None)) is not None]


def _best_first(row: Row) -> tuple[float, str]:
    mean = row.scores[0].mean
    # A run without a number stands last.
    return (-round(mean, TIE_DECIMALS) if mean == mean else float("inf"), row.run)


def _queries(boards: Mapping[str, Leaderboard]) -> Iterator[str]:
    """Over how many queries each mean is."""
    over = ", ".join(f"{name} {board.n_queries:,}" for name, board in boards.items())
    yield f"each mean is over the queries of its grader: {over}"


def _missing_runs(boards: Mapping[str, Leaderboard], runs: Collection[str]) -> Iterator[str]:
    for name, board in boards.items():
        missing = sorted(set(runs).difference(row.run for row in board.rows))
        if missing:
            yield f"{name}: not of {plural(len(missing), 'run')}: {shorten_list(missing, 3)}"


def _cautions(track: LoadedTrack, boards: Mapping[str, Leaderboard]) -> Iterator[str]:
    """What one must know to read each grader's columns, and of whom there are none."""
    for name, board in boards.items():
        yield from (f"{name}: {line}" for line in board.cautions)
    yield from (f"{name}: nothing of it here, {error}" for name, error in track.unable.items())
