"""Sensitivity: whether neighbours keep their order whatever measure one takes."""

from __future__ import annotations

import numpy as np

from trecexam.extensions.audit.arithmetic.choices import choices, labels_of, main_choice, main_values, values
from trecexam.extensions.audit.ranking import Neighbours
from trecexam.extensions.audit.records import AuditInputs, Finding, Part
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural, shorten_list

#: A certain order that fewer of the leaderboards keep than this is an alarm.
_FRAGILE = 0.5


def sensitivity(inputs: AuditInputs) -> Part:
    """Leaderboards over the measure's choices, on each side."""
    if len(inputs.runs) < 2:
        return Part()
    names, means = [], []
    for side in inputs.sides:
        lists = {condensed: labels_of(inputs, side, condensed=condensed) for condensed in (False, True)}
        for choice in choices(side, inputs.cutoff):
            names.append((side.name, choice.name))
            means.append(np.round(values(side, lists[choice.condensed], choice).mean(axis=1), 12))
    boards = np.stack(means, axis=1)
    main = main_values(inputs, inputs.sides[0])
    near = Neighbours([main_values(inputs, side) for side in inputs.sides])
    taus = tau_b_columns(boards, np.round(main.mean(axis=1), 12)[:, None])
    kept = (boards[near.better] > boards[near.worse]).sum(axis=1)
    n = len(names)
    pairs = tuple(
        (inputs.runs[a], inputs.runs[b], verdict, int(k), n)
        for a, b, verdict, k in zip(near.better, near.worse, near.verdicts, kept, strict=True)
    )
    tables = {
        "choices": Table(
            ("pair", "over", "verdict", "kept", "leaderboards"),
            pairs,
            layout=Layout(("pair", "over")),
            caption=f"In how many of {n} leaderboards each pair of neighbours keeps its order",
        ),
        "leaderboards": Table(
            ("judgments", "measure", "tau"),
            tuple((side, name, float(tau)) for (side, name), tau in zip(names, taus, strict=True)),
            layout=Layout(("judgments", "measure")),
            caption=f"Tau of each leaderboard with {main_choice(inputs).name} on {inputs.sides[0].name}",
        ),
    }
    always = int((kept == n).sum())
    least = int(np.argmin(np.nan_to_num(taus, nan=1.0)))
    findings = [
        Finding(
            "sensitivity",
            "kept",
            "",
            f"{always} of {plural(len(kept), 'pair')} of neighbours keep their order in all {n} leaderboards; "
            f"{names[least][1]} on {names[least][0]} is the furthest (tau {taus[least]:.2f}).",
            float(always),
            "k, threshold, binary or graded, unjudged as 0 or left out.",
            "Name the measure and its parameters; claim what the others keep, too.",
            1,
        )
    ]
    fragile = [
        i for i, verdict in enumerate(near.verdicts) if verdict == "certain" and kept[i] < _FRAGILE * n
    ]
    if fragile:
        some = [f"{inputs.runs[near.better[i]]} > {inputs.runs[near.worse[i]]}" for i in fragile]
        findings.append(
            Finding(
                "sensitivity",
                "fragile",
                some[0],
                f"{plural(len(fragile), 'order')} certain by {main_choice(inputs).name} and reversed by most "
                f"other choices: {shorten_list(some, 3, quote='')}.",
                float(len(fragile)),
                f"Fewer than half of {n} leaderboards keep the order.",
                "Do not claim it without saying that it is of this measure alone.",
                2,
            )
        )
    return Part(tuple(findings), tables)
