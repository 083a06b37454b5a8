"""Simulations on a track, from its runs, official judgments and automatic labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from converters.label_table import read_teams
from trecexam.errors import TrecexamError
from trecexam.extension import label_source
from trecexam.extensions.simulation.arithmetic.left_out import leave_out, shifts
from trecexam.extensions.simulation.arithmetic.removal import remove
from trecexam.extensions.simulation.arithmetic.simulation import Filler, Simulation
from trecexam.features.fill.fill import automatic_labels
from trecexam.features.fill.records import LEARNED, Encoded, Labels
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress
from trecexam.grades.official import official_judgments
from trecexam.grades.official import official_measures as own_official_measures
from trecexam.inputs.official import Official, no_overlap
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.result import Tables
from trecexam.results.table import Table
from trecexam.results.text import CHANGES, METHOD, Note, plural

#: The method that leaves dropped passages out of the runs; and the start of "label:1", label 1 for all.
CONDENSED, LABEL = "condensed", "label:"


def simulate(
    track: GradedTrack,
    official_measures: Measures | None = None,
    *,
    teams: Path | None = None,
    judgments: bool = False,
    repeats: int = 10,
    seed: int = 0,
    by: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Tables:
    """Leave out official judgments, fill them, and compare leaderboards with that on all judgments."""
    official = official_judgments(track)
    show = progress or (lambda now: None)
    fillers = _fillers(track, official, by, lambda done, total: show(Progress(done, total, what="texts")))

    def step(done: int, total: int) -> None:
        show(Progress(done, total))

    rankings = {
        name: {query_id: run.ranking(query_id) for query_id in official.judged if query_id in run}
        for name, run in track.runs.items()
    }
    # As `fill` does: what is pooled since it is judged would not be there without its judgment.
    fillable = track.ranked_passages() if judgments else None
    names = names_of(official_measures) or own_official_measures(track)
    # People's ratings are no measure of the grader.
    automatic = automatic_labels(track, human=False)
    try:
        simulation = Simulation(rankings, official.judged, automatic, names, fillable, fillers)
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    rule, unfitted = simulation.rule()
    words = f"fitted in each step on the judgments that remain; on all of them: {unfitted or rule}"
    notes = [Note(f"labels are mapped: {words}", METHOD), *_notes(track, simulation, official)]
    about: dict[str, Any] = {"map": words}
    if judgments:
        table = remove(simulation, repeats, seed, progress=step)
        of_first = [row for row in table if row["official_measure"] == simulation.measures[0]]
        n_steps, n_unfitted = len(of_first) * repeats, sum(int(row["unfitted"] or 0) for row in of_first)
        tables, about = {"removal": table}, {"repeats": repeats, "seed": seed, **about}
    else:
        team, team_notes = ({}, ()) if teams is None else _teams(teams, simulation.runs)
        depth = track.config.track.depth
        table = leave_out(simulation, depth, team, track.config.scores.min_relevant, step)
        first = {row["left_out"]: row for row in table}.values()
        n_steps, n_unfitted = len(first), sum(row["unfitted"] is not None for row in first)
        tables = {"runs": table, "shifts": shifts(table, simulation.methods)}
        about = {"depth": depth, **about}
        n_unique = sum(row["unique"] != 0 for row in first)
        notes += team_notes
        if first:
            notes.append(
                f"{n_unique:,} of {len(first):,} {'runs' if teams is None else 'teams'} have judged passages "
                f"that no other has in its first {depth:,} ranks"
            )
    if n_unfitted:
        notes.append(
            f"in {n_unfitted:,} of {n_steps:,} steps no rule could be fitted on the remaining judgments; "
            "labels are used unchanged there"
        )
    unlearned = sum(getattr(filler, "n_unlearned", 0) for filler in fillers.values())
    if unlearned:
        notes.append(
            f"in {unlearned:,} of {n_steps:,} steps too few judgments remained to learn from; `learned` "
            "leaves holes there"
        )
    notes += _moved(tables["shifts"]) if "shifts" in tables else ()
    return Tables(tables, notes=tuple(notes), about=about)


def _fillers(
    track: GradedTrack, official: Official, methods: Sequence[str], encoded: Encoded
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
            if constant := re.fullmatch(rf"{LABEL}(\d{{1,9}})", name, re.ASCII):
                fillers[name] = partial(_constant, int(constant[1]))
            elif name == LEARNED:
                fillers[name] = label_source("learned").learner(track, official, encoded)
            elif name == CONDENSED:
                fillers[name] = None
            else:
                raise TrecexamError(f"--by {name} is unknown: give learned, condensed, label or label:N")
    return fillers


def _constant(label: int, dropped: Mapping[str, Collection[str]]) -> Labels:
    return {query_id: dict.fromkeys(docs, label) for query_id, docs in dropped.items()}


def _notes(track: GradedTrack, simulation: Simulation, official: Official) -> Iterator[str]:
    """Yield notes on unusual judgments, queries and runs."""
    yield from official.warnings()
    apart = no_overlap(official, track.ranked_passages(), track.config.track.unit)
    if apart:
        yield apart
    other = sum(query_id not in track.bank.items for query_id in simulation.query_ids)
    if other and not apart:
        yield (
            f"{other:,} of {len(simulation.query_ids):,} judged queries are not among the grader's queries: "
            f"they count in all means, and their holes cannot be filled"
        )
    if not simulation.runs:
        yield f"no runs yet: drop some into {track.folder.runs}"
    elif len(simulation.runs) == 1:
        yield "no tau: it needs two runs or more"
    judged, replaceable = len(simulation.places), len(simulation.replaceable)
    if replaceable < judged and not apart:
        yield (
            f"{replaceable:,} of {judged:,} judged passages have an automatic label; the others remain holes "
            "when their judgment is dropped"
        )


def _teams(path: Path, runs: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return run -> team, and a note on runs without a team."""
    team_of = read_teams(path)
    run_teams = {run: team for run, team in team_of.items() if run in runs}
    if not run_teams:
        raise TrecexamError(
            f"none of its {plural(len(team_of), 'run')} ('{next(iter(team_of))}', ...) is on the "
            f"leaderboard: use the names that `trecexam leaderboard` prints",
            path=path,
        )
    without = len(runs) - len(run_teams)
    note = f"{without:,} of {len(runs):,} runs have no team in {path}: each is left out on its own"
    return run_teams, (note,) if without else ()


def _moved(moves: Table) -> Iterator[str]:
    """Yield a note with the result of each measure."""
    for (measure,), of_measure in moves.grouped("official_measure"):
        words = {
            row["judgments"]: f"{row['mean_shift']:.2f} ranks on average"
            + (f", {row['greatest_shift']} at most ({row['run']})" if row["greatest_shift"] else "")
            for row in of_measure
        }
        holes, fill = words.pop("holes"), words.pop("fill")
        more_shifts = "".join(f"; {how}, by {shift}" for how, shift in words.items())
        moved = f"a run whose own judgments are missing moves by {holes}; filled, by {fill}{more_shifts}"
        yield Note(f"{measure}: {moved}", CHANGES)
