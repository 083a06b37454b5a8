"""Simulations on a track, from its runs, official judgments and automatic labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from converters.label_table import read_teams
from trecexam.errors import TrecexamError
from trecexam.extension import label_source
from trecexam.extensions.simulation.arithmetic.simulation import Filler, Outcome, Simulation
from trecexam.extensions.simulation.arithmetic.tables import (
    draw_removed,
    left_out_tables,
    removal_table,
    unique_passages,
)
from trecexam.features.fill.fill import automatic_labels
from trecexam.features.fill.records import LEARNED, Encoded
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import Progress
from trecexam.grades.official import official_judgments
from trecexam.grades.official import official_measures as own_official_measures
from trecexam.inputs.official import Official, no_overlap
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.result import Tables
from trecexam.results.text import CHANGES, METHOD, Note, plural
from trecexam.scores.measures import DIVERSITY, measure


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
    official, show = official_judgments(track), progress or (lambda now: None)
    fillers = _fillers(track, official, by, lambda done, total: show(Progress(done, total, what="texts")))
    names = names_of(official_measures) or own_official_measures(track)
    parsed = (measure(name, official=True) for name in names)
    measures = {str(official_measure): official_measure for official_measure in parsed}
    if needing := [name for name, parsed_measure in measures.items() if parsed_measure.NAME in DIVERSITY]:
        raise TrecexamError(
            f"{needing[0]} needs subtopics, and dropped judgments are filled with labels of whole passages: "
            "use another measure, such as nDCG@10"
        )
    rankings = {
        name: {query_id: run.ranking(query_id) for query_id in official.judged if query_id in run}
        for name, run in sorted(track.runs.items())
    }
    judged = dict(sorted(official.judged.items()))
    # People's ratings are no measure of the grader.
    automatic = automatic_labels(track, human=False)
    # As `fill` does: what is pooled since it is judged would not be there without its judgment.
    pool = track.ranked_passages() if judgments else None
    simulation = Simulation(rankings, judged, automatic, [*measures.values()], pool, fillers)
    rule, unfitted = simulation.rule()
    words = f"fitted in each step on the judgments that remain; on all of them: {unfitted or rule}"
    notes = [Note(f"labels are mapped: {words}", METHOD), *_notes(track, simulation, official)]
    team_of = {} if teams is None else read_teams(teams)
    if teams is not None:
        notes += _team_notes(teams, team_of, simulation.rankings)
    depth, outcomes = track.config.track.depth, dict[Any, Outcome]()
    steps = draw_removed(judged, repeats, seed) if judgments else unique_passages(simulation, depth, team_of)
    for key, dropped in steps.items():
        outcomes[key] = simulation.drop(dropped)
        show(Progress(len(outcomes), len(steps)))
    if judgments:
        tables = {"removal": removal_table(simulation, outcomes)}
        about = {"repeats": repeats, "seed": seed, "map": words}
    else:
        tables = left_out_tables(simulation, outcomes, team_of, track.config.scores.min_relevant)
        about = {"depth": depth, "map": words}
        n_unique, what = sum(map(bool, steps.values())), "runs" if teams is None else "teams"
        if steps:
            notes.append(
                f"{n_unique:,} of {len(steps):,} {what} have judged passages that no other has in its first "
                f"{depth:,} ranks"
            )
        verbs = {"holes": "moves", "fill": "filled,"}
        for (name,), by_method in tables["shifts"].grouped("official_measure"):
            moves = "; ".join(
                f"{verbs.get(str(method), f'{method},')} by {mean:.2f} ranks on average"
                + (f", {greatest} at most ({run})" if greatest else "")
                for method, mean, greatest, run, *_ in by_method.rows
            )
            notes.append(Note(f"{name}: a run whose own judgments are missing {moves}", CHANGES))
    if n_unfitted := sum(outcome.unfitted is not None for outcome in outcomes.values()):
        notes.append(
            f"in {n_unfitted:,} of {len(steps):,} steps no rule could be fitted on the remaining judgments; "
            "labels are used unchanged there"
        )
    if unlearned := sum(getattr(filler, "n_unlearned", 0) for filler in fillers.values()):
        notes.append(
            f"in {unlearned:,} of {len(steps):,} steps too few judgments remained to learn from; `learned` "
            "leaves holes there"
        )
    return Tables(tables, notes=tuple(notes), about=about)


def _fillers(
    track: GradedTrack, official: Official, methods: Sequence[str], encoded: Encoded
) -> dict[str, Filler]:
    """Return method -> filler of dropped judgments.

    Raises:
        TrecexamError: an unknown method; nothing can be learned here.
    """
    fillers: dict[str, Filler] = {}
    for method in methods:
        if method == "label":
            labels = {label for judged in official.judged.values() for label in judged.values()}
            fillers |= {f"label:{label}": _constant(label) for label in sorted(labels) if label > 0}
        elif constant := re.fullmatch(r"label:(\d{1,9})", method, re.ASCII):
            fillers[method] = _constant(int(constant[1]))
        elif method == LEARNED:
            fillers[method] = label_source("learned").learner(track, official, encoded)
        elif method == "condensed":
            fillers[method] = lambda dropped: None
        else:
            raise TrecexamError(f"--by {method} is unknown: give learned, condensed, label or label:N")
    return fillers


def _constant(label: int) -> Filler:
    return lambda dropped: {query_id: dict.fromkeys(docs, label) for query_id, docs in dropped.items()}


def _notes(track: GradedTrack, simulation: Simulation, official: Official) -> Iterator[str]:
    """Yield notes on unusual judgments, queries and runs."""
    yield from official.warnings()
    apart = no_overlap(official, track.ranked_passages(), track.config.track.unit)
    if apart:
        yield apart
    other = sum(query_id not in track.bank.items for query_id in official.judged)
    if other and not apart:
        yield (
            f"{other:,} of {len(official.judged):,} judged queries are not among the grader's queries: "
            f"they count in all means, and their holes cannot be filled"
        )
    if not track.runs:
        yield f"no runs yet: drop some into {track.folder.runs}"
    elif len(track.runs) == 1:
        yield "no tau: it needs two runs or more"
    fillable = simulation.fillable(simulation.automatic, simulation.official)
    judged, n_fillable = (sum(map(len, labels.values())) for labels in (official.judged, fillable))
    if n_fillable < judged and not apart:
        yield (
            f"{n_fillable:,} of {judged:,} judged passages have an automatic label; the others remain holes "
            "when their judgment is dropped"
        )


def _team_notes(path: Path, team_of: Mapping[str, str], runs: Collection[str]) -> Iterator[str]:
    """Refuse a file with none of the runs; yield a note on runs without a team."""
    alone = sum(run not in team_of for run in runs)
    if alone == len(runs):
        raise TrecexamError(
            f"none of its {plural(len(team_of), 'run')} ('{next(iter(team_of))}', ...) is on the "
            f"leaderboard: use the names that `trecexam leaderboard` prints",
            path=path,
        )
    if alone:
        yield f"{alone:,} of {len(runs):,} runs have no team in {path}: each is left out on its own"
