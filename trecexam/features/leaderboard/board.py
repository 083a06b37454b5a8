"""The leaderboard of one grader, with the notes on how its values are to be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import (
    coverage_notes,
    encoder_cautions,
    judgment_cautions,
    left_out_runs,
    run_grades_notes,
)
from trecexam.grades.evaluation import board_of, values_of_runs, why_no_scores, without_probabilities
from trecexam.grades.graded_track import GradedTrack
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
from trecexam.inputs.track_graders import MeasureLike, Measures, listed, own_measures
from trecexam.results.notes import CHANGES, STANDING, Note
from trecexam.results.text import number, plural
from trecexam.scores.columns.measures.cover import ITEM
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.measures import COVER, DIVERSITY, depends_on_pool, measure
from trecexam.scores.support import SUPPORT
from trecexam.scores.values import TIE_DECIMALS

#: Measures that people are shown of those that nobody asked for.
SHOWN = 3


def leaderboard(
    track: GradedTrack,
    measures: Measures | None = None,
    *,
    official: bool = False,
    runs: Collection[str] | None = None,
) -> Leaderboard:
    """Return means and standard errors per run, best first, see `Track.leaderboard`.

    Where there is nothing to score (`why_no_scores`), means are NaN.
    """
    measures = listed(measures)
    if measures is not None and not official:
        measures = own_measures(track.folder, measures)
    values = values_of_runs(track, measures, official=official, runs=runs)
    board = replace(board_of(track, values, official=official), _n_shown=SHOWN if measures is None else None)
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
    """Return the notes on a leaderboard on the grades; `measures` were asked for, None for the own ones."""
    names = track.measures if measures is None else board.measures
    of_support = [name for name in board.measures if name in SUPPORT]
    ranked = [row for row in board.rows if row.run not in track.responses] if of_support else []
    some = f"{len(ranked):,} of {plural(len(board.rows), 'run')}"
    return (
        # What makes a value too low comes first: people are shown a few notes.
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
    # Few runs have 0 throughout; only the passages of these are looked up.
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
    """Yield a note on measures that depend on the pool, where the pool is of the track's runs alone."""
    names = printed_names(each for each in map(measure, measures) if depends_on_pool(each))
    judged = track.inputs.judged_queries if track.config.track.pool_judged else ()
    alone = [query_id for query_id in track.bank.query_ids if query_id not in judged]
    # A grader that knows passages by id has all of them pooled.
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
    yield Note(line, STANDING)


def depth_cautions(track: GradedTrack, measures: Iterable[MeasureLike]) -> Iterator[str]:
    """Yield a note on measures deeper than the pool, but the track's own, where runs have passages there."""
    track_measures = {*printed_names(map(measure, (*track.measures, *track.columns)))}
    deeper = [each for each in map(measure, measures) if each.params.get("cutoff", 0) > track.depth]
    names = [name for name in printed_names(deeper) if name not in track_measures]
    # Of qrels that are grades all passages that they name are graded.
    if not names or track.grader.known_passages is not None:
        return
    if any(run.count(query) > track.depth for run in track.runs.values() for query in run.query_ids):
        caution = f"deeper than the pool (depth {track.depth}), outside which nothing is relevant"
        yield Note(f"{caution}: {', '.join(names)}", CHANGES)


def telling_cautions(track: GradedTrack, board: Leaderboard, *, official: bool = False) -> Iterator[str]:
    """Yield a note where no run has as many ranks as P looks at, or all runs have an equal value.

    Generated responses have no ranks.
    """
    measures = [measure(name) for name in board.measures]
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
    """Yield notes on the track's own measures, where they say little of its runs or ignore weights."""
    of_items = {str(each) for each in weighted(track.measures) if each["weights"] == ITEM}
    others = [name for name in track.measures if str(measure(name)) not in of_items]
    if others and track.bank.n_against:
        yield (
            f"{track.bank.n_against:,} of {len(track.bank):,} items have a negative weight, and count "
            f"against in measures with weights={ITEM!r} alone: for labels and for {', '.join(others)} they "
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
