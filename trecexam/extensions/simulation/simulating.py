"""Simulations on a track, from its runs, official judgments and automatic labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path

from converters.label_table import read_teams
from trecexam.errors import TrecexamError
from trecexam.extensions.simulation.arithmetic.left_out import LeftOut, Shift, leave_out, shift
from trecexam.extensions.simulation.arithmetic.removal import Removed, remove
from trecexam.extensions.simulation.arithmetic.simulation import Filler, Simulation
from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
from trecexam.features.fill.teaching import LABEL, LEARNED, Encoded, Labels, the_teacher
from trecexam.features.fill.ways import constant_label, stated
from trecexam.line.assessment import Assessment
from trecexam.line.grading import Progress
from trecexam.line.measure_names import Measures, names_of
from trecexam.line.official import Official, no_overlap, official_judgments
from trecexam.line.relevance import official_measures as own_official_measures
from trecexam.scores.labels import labels
from trecexam.tables.notes import CHANGES, METHOD, Note
from trecexam.tables.result import Tables
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural

#: The method that leaves dropped passages out of the runs.
CONDENSED = "condensed"


def simulate(
    track: Assessment,
    official_measures: Measures | None = None,
    *,
    teams: Path | None = None,
    judgments: bool = False,
    repeats: int = 10,
    seed: int = 0,
    rule: RuleName | None = None,
    cuts: Mapping[int, int] | None = None,
    by: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Tables:
    """Leave out official judgments, fill them, and compare leaderboards with that on all judgments."""
    named = stated(track.config.scores, rule, cuts)
    official = official_judgments(track)
    show = progress or (lambda now: None)
    fillers = _fillers(track, official, by, lambda done, of: show(Progress(done, of, what="texts")))

    def step(done: int, of: int) -> None:
        show(Progress(done, of))

    # As `fill` does: what is pooled since it is judged would not be there without its judgment.
    fillable = track.ranked_passages() if judgments else None
    simulation, notes = _simulation(track, official, names_of(official_measures), named, fillers, fillable)
    methods, words = ("holes", "fill", *fillers), _in_words(simulation, named)
    depth = track.config.track.depth
    if judgments:
        removed = remove(simulation, repeats, seed, progress=step)
        of_first = [row for row in removed if row.measure == simulation.measures[0]]
        n_steps, unfitted = len(of_first) * repeats, sum(row.unfitted for row in of_first)
        tables = {"removal": removal_table(removed, methods, repeats)}
        settings: dict[str, object] = {"repeats": repeats, "seed": seed}
        closing = [
            f"low and high of a tau: a further repeat falls into this range in 95%, judged from {repeats:,} "
            "repeats of the same queries and runs"
        ] * (repeats > 1)
    else:
        team, team_notes = ({}, ()) if teams is None else _teams(teams, simulation.runs)
        left_out = leave_out(simulation, depth, team, track.config.scores.min_relevant, step)
        first = {row.left_out: row for row in left_out}.values()
        n_steps, unfitted = len(first), sum(row.unfitted is not None for row in first)
        shifts = {
            name: {how: shift([row for row in left_out if row.measure == name], how) for how in methods}
            for name in simulation.measures
        }
        tables = {"runs": runs_table(left_out, methods), "shifts": shifts_table(shifts)}
        settings = {"depth": depth}
        notes += team_notes
        if first:
            n_unique = sum(row.unique > 0 for row in first)
            notes += (
                f"{n_unique:,} of {len(first):,} {'runs' if teams is None else 'teams'} have judged passages "
                f"that no other has in its first {depth:,} ranks",
            )
        closing = [*moved(shifts)] if first else []
    if unfitted:
        notes += (
            f"in {unfitted:,} of {n_steps:,} steps no rule could be fitted on the remaining judgments; "
            f"labels are used unchanged there",
        )
    unlearned = sum(getattr(filler, "n_unlearned", 0) for filler in fillers.values())
    if unlearned:
        notes += (
            f"in {unlearned:,} of {n_steps:,} steps too few judgments remained to learn from; `learned` "
            f"leaves holes there",
        )
    notes = (Note(f"labels are mapped: {words}", METHOD), *notes, *(Note(line, CHANGES) for line in closing))
    return Tables(tables, notes=notes, about={**settings, "map": words})


def _fillers(
    track: Assessment, official: Official, methods: Sequence[str], encoded: Encoded
) -> dict[str, Filler]:
    """Return the filler of dropped judgments of each method.

    Raises:
        TrecexamError: an unknown method; nothing can be learned here.
    """
    positive = sorted(
        {label for judged in official.judged.values() for label in judged.values() if label > 0}
    )
    fillers: dict[str, Filler] = {}
    for method in methods:
        for name in [f"{LABEL}{label}" for label in positive] if method == "label" else [method]:
            constant = constant_label(name)
            if constant is not None:
                fillers[name] = partial(_constant, constant)
            elif name == LEARNED:
                fillers[name] = the_teacher().learner(track, official, encoded)
            elif name == CONDENSED:
                fillers[name] = None
            else:
                raise TrecexamError(f"--by {name} is unknown: give learned, condensed, label or label:N")
    return fillers


def _constant(label: int, dropped: Mapping[str, Collection[str]]) -> Labels:
    return {query_id: dict.fromkeys(docs, label) for query_id, docs in dropped.items()}


def _simulation(
    track: Assessment,
    judgments: Official,
    measures: Sequence[str] | None,
    rule: ScaleMap | None,
    other_fillers: Mapping[str, Filler],
    fillable: Mapping[str, Collection[str]] | None,
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


def runs_table(rows: Sequence[LeftOut], methods: Sequence[str]) -> Table:
    """Return a row per measure and run: its rank and mean with all judgments and by each method."""
    header = ("official_measure", "run", "left_out", "unique", "relevant", "filled")
    first = ("rank.full", "rank.holes", "rank.fill", "tau.holes", "tau.fill")
    standings = ("full", *methods)
    columns = (f"{what}.{how}" for what in ("rank", "mean") for how in standings)
    return Table(
        (*header, *columns, *(f"tau.{how}" for how in methods), "map", "unfitted"),
        tuple(
            (
                *(row.measure, row.run, row.left_out, row.unique, row.relevant, row.filled),
                *(row.by[how].rank for how in standings),
                *(row.by[how].mean for how in standings),
                *(row.by[how].tau for how in methods),
                str(row.rule),
                row.unfitted,
            )
            for row in rows
        ),
        layout=Layout(header[:2], first, without=("map", "unfitted")),
    )


def shifts_table(shifts: Mapping[str, Mapping[str, Shift]]) -> Table:
    """Return a row per measure and method: how far runs move without their own judgments."""
    return Table(
        (
            *("official_measure", "judgments", "mean_shift", "greatest_shift", "run", "difference"),
            *("tau", "least_tau"),
        ),
        tuple((measure, how, *astuple(shift)) for measure, of in shifts.items() for how, shift in of.items()),
        layout=Layout(("official_measure", "judgments")),
    )


def moved(shifts: Mapping[str, Mapping[str, Shift]]) -> Iterator[str]:
    """Yield a note with the result of each measure."""
    for measure, of_measure in shifts.items():
        holes, fill, *others = (
            f"{shift.mean:.2f} ranks on average"
            + (f", {shift.greatest} at most ({shift.run})" if shift.greatest else "")
            for shift in of_measure.values()
        )
        more = (f"; {how}, by {other}" for how, other in zip([*of_measure][2:], others, strict=True))
        yield (
            f"{measure}: a run whose own judgments are missing moves by {holes}; filled, by {fill}"
            + "".join(more)
        )


def removal_table(rows: Sequence[Removed], methods: Sequence[str], repeats: int) -> Table:
    """Return a row per measure and share of removed judgments: the agreement by each method."""
    keys = ("official_measure", "removed")
    columns = ("tau.{}", "tau.{}.low", "tau.{}.high", "tau_ap.{}", "difference.{}")
    header = (column.format(how) for how in methods for column in columns)
    return Table(
        (*keys, "n_removed", "filled", *header, "unfitted"),
        tuple(
            (
                *(row.measure, row.removed, row.n_removed, row.filled),
                *(value for how in methods for value in astuple(row.by[how])),
                row.unfitted,
            )
            for row in rows
        ),
        layout=Layout(
            keys,
            ("tau.holes", "tau.fill"),
            without=("unfitted",),
            interval=f"95% range of a further repeat, from {plural(repeats, 'repeat')}",
        ),
    )
