"""Planted problems that `trecexam audit` finds, and its false alarms; prints results/audit.md's tables.

    PYTHONPATH=tests/helpers python tests/benchmarks/audit.py [CASES]

The page says what is planted, tests/helpers/audit_cases.py how.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from audit_cases import COLLECTIONS, LOST, Case, found, holes, judged, neighbours_of, unpooled, whole

from trecexam.extensions.audit.audit import SECTIONS, audit
from trecexam.extensions.audit.pool import open_ranks, pool
from trecexam.extensions.audit.ranking import neighbours, ranking
from trecexam.scores.columns import UNJUDGED

Make = Callable[[np.random.Generator], Case]


def planted(section: str, make: Make, cases: int) -> tuple[int, int]:
    """Found and planted, of so many cases."""
    counts = np.zeros(2, int)
    for seed in range(cases):
        case = make(np.random.default_rng([7, seed]))
        counts += found(case, SECTIONS[section][-1](case.inputs)[0])
    return int(counts[0]), int(counts[1])


def verdicts(what: str, cases: int) -> int:
    """In how many cases two runs are said to differ for certain, or to be reversed."""
    made = [neighbours_of(what, np.random.default_rng([9, seed])).inputs for seed in range(cases)]
    if what == "reversed":
        return sum("reversed" in {each.kind for each in ranking(inputs)[0]} for inputs in made)
    return sum(neighbours(inputs)["verdict"][0] == "certain" for inputs in made)


def inside(k: int, cases: int, folder: Path) -> tuple[int, int, float, float]:
    """Of runs in cases of `unpooled`: how many there are, and how many have their true rank inside.

    Then the mean number of ranks between the bounds, of runs that lost judgments and of others.
    """
    base = replace(whole("dl19"), cutoff=k)
    complete = open_ranks(base, base.sides[0])["rank"]
    n_inside, wide = 0, ([], [])
    for seed in range(cases):
        inputs = replace(unpooled(np.random.default_rng([7, seed]), folder).inputs, cutoff=k)
        side = inputs.sides[0]
        _, best, worst = open_ranks(inputs, side).values()
        n_inside += int(((best <= complete) & (complete <= worst)).sum())
        holey = (side.judged.padded_labels[inputs.rows[:, :, :10]] == UNJUDGED).mean(axis=(1, 2)) >= LOST
        for of_kind, chosen in zip(wide, (holey, ~holey), strict=True):
            of_kind.extend((worst - best)[chosen].tolist())
    return cases * len(base.runs), n_inside, float(np.mean(wide[0])), float(np.mean(wide[1]))


def lines(cases: int) -> Iterable[str]:
    """The rows of both tables."""
    everywhere = ("dl19", *COLLECTIONS)
    yield "| data | planted | cases | planted findings | found | recall |\n|---|---|---:|---:|---:|---:|"
    with tempfile.TemporaryDirectory() as folder:
        plans: list[tuple[str, str, str, Make]] = [
            ("dl19", "not pooled", "pool", lambda random: unpooled(random, Path(folder))),
            ("dl19", "holes", "pool", lambda random: holes(random, Path(folder))),
        ]
        for what in ("threshold", "unused label", "raised", "raised team", "likeness"):
            section = "judge" if what in ("raised", "raised team", "likeness") else "scales"
            # A label between two others needs more than two of them.
            for name in everywhere if what != "unused label" else everywhere[:2]:
                make = lambda random, name=name, what=what: judged(name, what, random)  # noqa: E731
                plans.append((name, what, section, make))
        for name, what, section, make in plans:
            hit, n = planted(section, make, cases)
            yield f"| {name} | {what} | {cases} | {n} | {hit} | {hit / n:.2f} |"
    for what in ("certain", "reversed"):
        hit = verdicts(what, cases)
        yield f"| three collections | {what} pair | {cases} | {cases} | {hit} | {hit / cases:.2f} |"
    header = "measure | runs of all cases | rank by all judgments inside the bounds | open ranks | of others"
    yield f"\n| {header} |\n|---|---:|---:|---:|---:|"
    with tempfile.TemporaryDirectory() as folder:
        for k in (10, 5):
            n, hit, of_lost, of_others = inside(k, cases, Path(folder))
            yield f"| nDCG@{k} | {n:,} | {hit:,} ({hit / n:.4f}) | {of_lost:.1f} | {of_others:.1f} |"
    yield "\n| data | clean cases | with an alarm | share | which |\n|---|---:|---:|---:|---|"
    for name in everywhere:
        made = (
            audit(judged(name, "clean", np.random.default_rng([8, seed])).inputs) for seed in range(cases)
        )
        alarms = [", ".join(sorted({each.kind for each in of.alarms})) for of in made if of.alarms]
        kinds = "; ".join(f"{kind} {alarms.count(kind)}" for kind in sorted(set(alarms)))
        yield f"| {name} | {cases} | {len(alarms)} | {len(alarms) / cases:.3f} | {kinds} |"
    with tempfile.TemporaryDirectory() as folder:
        made = (holes(np.random.default_rng([6, seed]), Path(folder)).inputs for seed in range(cases))
        wrong = sum("not pooled" in {each.kind for each in pool(inputs)[0]} for inputs in made)
    yield f"| dl19, judgments lost at random | {cases} | {wrong} | {wrong / cases:.3f} | not pooled {wrong} |"
    equal = verdicts("equal", cases)
    yield f"| two equal runs | {cases} | {equal} | {equal / cases:.3f} | certain {equal} |"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        print(line, flush=True)
