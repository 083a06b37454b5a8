"""Simulations on a track, from its runs, official judgments and automatic labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from converters.label_table import read_teams
from trecexam.errors import TrecexamError
from trecexam.extensions.simulation.arithmetic.left_out import leave_out, shift
from trecexam.extensions.simulation.arithmetic.removal import remove
from trecexam.extensions.simulation.arithmetic.simulation import Simulation
from trecexam.extensions.simulation.tables import HOW, RemovalReport, RunsReport
from trecexam.extensions.simulation.ways import other_ways
from trecexam.features.fill.ways import stated
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.line.official import Official, no_overlap, official_judgments
from trecexam.line.relevance import official_measures as own_official_measures
from trecexam.scores.labels import labels
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.simulation.arithmetic.simulation import Filler
    from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike

#: Called with how many steps are done, and of how many.
Steps = Callable[[int, int], None]


@of_documents
def simulate_runs(
    track: Assessment,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    rule: RuleName | None = None,
    cuts: Mapping[int, int] | None = None,
    teams: Path | None = None,
    by: Sequence[str] = (),
    progress: Steps | None = None,
    encoding: Steps | None = None,
) -> RunsReport:
    """Leaves out the official judgments that only one run contributed, fills them, and compares ranks.

    Args:
        official_measures: in place of the track's.
        rule: how automatic labels become official ones. None or "fitted": fitted in each step on the
            judgments that remain, and where that cannot be, "identity".
        cuts: automatic label -> official label, of "thresholds", which they imply; None:
            min_rating -> min_relevant.
        teams: a file of `run<TAB>team` lines: a team is left out as a whole.
        by: other ways to treat what was dropped: "learned" (anew in each step, from the judgments that
            remain), "label:N" (the label N for all), "label" (each label above 0 in turn), "condensed" (lists
            without what was dropped).
        progress: called with how many steps are done, and of how many.
        encoding: of "learned", called with how many passages are encoded, and of how many.

    Raises:
        TrecexamError: no official judgments, a measure that cannot be computed, cuts that are no rule,
            teams of other runs, a way that is none; of "learned", as `learn`.
        ConversionError: a file cannot be read.
    """
    depth = track.config.track.depth
    named = stated(track.config.scores, rule, cuts)
    judgments = official_judgments(track)
    other_fillers = other_ways(track, judgments, by, encoding)
    simulation, notes = _simulation(track, judgments, names_of(official_measures), named, other_fillers)
    team = None
    if teams is not None:
        team, team_notes = _teams(teams, simulation.runs)
        notes += team_notes
    rows = leave_out(simulation, depth, team, track.config.scores.min_relevant, progress)
    by_measure = {name: [row for row in rows if row.measure == name] for name in simulation.measures}
    shifts = {
        name: tuple(shift(measure_rows, method) for method in (*HOW, *other_fillers))
        for name, measure_rows in by_measure.items()
    }
    first = {row.left_out: row for row in rows}.values()
    if first:
        none = sum(not row.unique for row in first)
        who = "runs" if team is None else "teams"
        notes += (
            f"{len(first) - none:,} of {len(first):,} {who} have judged passages that no other has in its "
            f"first {depth:,} ranks",
        )
    notes += _unfitted(sum(row.unfitted is not None for row in first), len(first))
    notes += _unlearned(other_fillers, len(first))
    words = _in_words(simulation, named)
    report = RunsReport(depth, rows, shifts, words, notes, tuple(other_fillers))
    return replace(report, notes=(f"labels are mapped: {words}", *notes, *report.moved()))


@of_documents
def simulate_removal(
    track: Assessment,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    rule: RuleName | None = None,
    cuts: Mapping[int, int] | None = None,
    repeats: int = 10,
    seed: int = 0,
    by: Sequence[str] = (),
    progress: Steps | None = None,
    encoding: Steps | None = None,
) -> RemovalReport:
    """Removes 10 to 90% of the official judgments at random, fills them, and compares leaderboards.

    Args:
        repeats: how often judgments are drawn; at least 1.
        seed: of the random numbers.

    The others, and what is raised, are as in `simulate_runs`.
    """
    named = stated(track.config.scores, rule, cuts)
    # As `fill` does: what is pooled since it is judged would not be there without its judgment.
    ranked = track.ranked_passages()
    judgments = official_judgments(track)
    other_fillers = other_ways(track, judgments, by, encoding)
    simulation, notes = _simulation(
        track, judgments, names_of(official_measures), named, other_fillers, ranked
    )
    rows = remove(simulation, repeats, seed, progress=progress)
    unfitted = sum(row.unfitted for row in rows if row.measure == simulation.measures[0])
    steps = sum(row.measure == simulation.measures[0] for row in rows) * repeats
    notes += (*_unfitted(unfitted, steps), *_unlearned(other_fillers, steps))
    words = _in_words(simulation, named)
    notes = (f"labels are mapped: {words}", *notes)
    if repeats > 1:
        notes += (
            f"low and high of a tau: a further repeat falls into this range in 95%, judged from {repeats:,} "
            "repeats of the same queries and runs",
        )
    return RemovalReport(repeats, seed, rows, words, notes, tuple(other_fillers))


def _simulation(
    track: Assessment,
    judgments: Official,
    measures: Sequence[str] | None,
    rule: ScaleMap | None,
    other_fillers: Mapping[str, Filler],
    fillable: Mapping[str, Collection[str]] | None = None,
) -> tuple[Simulation, tuple[str, ...]]:
    scores = track.config.scores
    # People's ratings are no measure of the grader.
    ratings = track.ratings(human=False)
    automatic = {q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers) for q in ratings}
    rankings = {
        name: {query_id: run.ranking(query_id) for query_id in judgments.judged if query_id in run}
        for name, run in track.runs.items()
    }
    names = own_official_measures(track) if measures is None else list(measures)
    try:
        simulation = Simulation(rankings, judgments.judged, automatic, names, rule, fillable, other_fillers)
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    apart = no_overlap(track, judgments)
    return simulation, _notes(track, simulation, judgments, apart)


def _notes(
    track: Assessment, simulation: Simulation, judgments: Official, apart: str | None
) -> tuple[str, ...]:
    bank = track.bank.items
    notes = [*judgments.warnings(), *([apart] if apart else [])]
    other = sum(query_id not in bank for query_id in simulation.query_ids)
    if other and not apart:
        notes.append(
            f"{other:,} of {len(simulation.query_ids):,} judged queries are not among the grader's queries: "
            f"they count in all means, and their holes cannot be filled"
        )
    if not simulation.runs:
        notes.append(f"no runs yet: drop some into {track.folder.runs}")
    elif len(simulation.runs) == 1:
        notes.append("no tau: it needs two runs or more")
    elif apart is None:
        tied = [
            name
            for name, means in zip(simulation.measures, simulation.full, strict=True)
            if (means == means[0]).all()
        ]
        if tied:
            notes.append(f"no tau: all runs are tied on {', '.join(tied)}")
    judged = len(simulation.places)
    if simulation.n_both < judged and not apart:
        notes.append(
            f"{simulation.n_both:,} of {judged:,} judged passages have an automatic label; the others "
            f"remain holes when their judgment is dropped"
        )
    return tuple(notes)


def _teams(path: Path, runs: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    team_of = read_teams(path)
    run_teams = {run: team for run, team in team_of.items() if run in runs}
    if not run_teams:
        raise TrecexamError(
            f"none of its {plural(len(team_of), 'run')} ('{next(iter(team_of))}', ...) is on the "
            f"leaderboard: use the names that `trecexam leaderboard` prints",
            path=path,
        )
    without = [run for run in runs if run not in run_teams]
    if not without:
        return run_teams, ()
    return run_teams, (
        f"{len(without):,} of {len(runs):,} runs have no team in {path}: each is left out on its own",
    )


def _in_words(simulation: Simulation, rule: ScaleMap | None) -> str:
    fill_rule, why = simulation.rule()
    if rule is not None:
        return str(fill_rule)
    return f"fitted in each step on the judgments that remain; on all of them: {why or fill_rule}"


def _unfitted(steps: int, of: int) -> tuple[str, ...]:
    if not steps:
        return ()
    return (
        f"in {steps:,} of {of:,} steps no rule could be fitted on the remaining judgments; labels are used "
        f"unchanged there",
    )


def _unlearned(other_fillers: Mapping[str, Filler], of: int) -> tuple[str, ...]:
    steps = sum(getattr(filler, "n_unlearned", 0) for filler in other_fillers.values())
    if not steps:
        return ()
    return (
        f"in {steps:,} of {of:,} steps too few judgments remained to learn from; `learned` leaves holes "
        f"there",
    )
