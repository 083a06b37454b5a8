"""Sensitivity of the order of adjacent runs to the choice of measure."""

from __future__ import annotations

import numpy as np

from trecexam.extensions.audit.choices import choices, main_choice, main_values, values
from trecexam.extensions.audit.findings import Section, finding, table
from trecexam.extensions.audit.ranking import neighbours
from trecexam.extensions.audit.records import AuditInputs
from trecexam.results.text import shorten_list
from trecexam.scores.rank_correlation import tau_b_columns
from trecexam.scores.values import TIE_DECIMALS

#: Minimum share of leaderboards that must keep a certain order; below is an alarm.
_FRAGILE = 0.5


def sensitivity(inputs: AuditInputs) -> Section:
    """Compare leaderboards over the measure's choices, on each side."""
    if len(inputs.runs) < 2:
        return (), {}
    judgments, measures, means = [], [], []
    for side in inputs.sides:
        for choice in choices(side, inputs.cutoff):
            judgments.append(side.name)
            measures.append(choice.name)
            means.append(values(inputs, side, choice).mean(axis=1))
    boards = np.round(np.stack(means, axis=1), TIE_DECIMALS)
    near = neighbours([main_values(inputs, side) for side in inputs.sides])
    main = boards[:, measures.index(main_choice(inputs).name)]
    taus = tau_b_columns(boards, main[:, None])
    n_agreeing = (boards[near.better] > boards[near.worse]).sum(axis=1)
    n, runs = len(measures), np.array(inputs.runs, object)
    pairs = {
        "better": runs[near.better],
        "worse": runs[near.worse],
        "verdict": near.verdicts,
        "kept": n_agreeing,
    }
    name = main_choice(inputs).name
    tables = {
        "choices": table(
            f"In how many of {n} leaderboards each pair of neighbours keeps its order", 2, pairs
        ),
        "leaderboards": table(
            f"Tau of each leaderboard with {name} on {inputs.sides[0].name}",
            2,
            {"judgments": judgments, "measure": measures, "tau": taus},
        ),
    }
    least = int(np.argmin(np.nan_to_num(taus, nan=1.0)))
    far = f"{measures[least]} on {judgments[least]} is the furthest (tau {taus[least]:.2f})"
    findings = [finding("kept", (n_agreeing == n).sum(), n=len(n_agreeing), boards=n, far=far)]
    fragile = np.flatnonzero((near.verdicts == "certain") & (n_agreeing < _FRAGILE * n)).tolist()
    if fragile:
        some = [f"{runs[near.better[i]]} > {runs[near.worse[i]]}" for i in fragile]
        words = {"measure": name, "pairs": shorten_list(some, 3, quote=""), "boards": n}
        findings.append(finding("fragile", len(fragile), some[0], **words))
    return findings, tables
