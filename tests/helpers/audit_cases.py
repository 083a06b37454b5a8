"""Problems that an audit must find: removed judgments, judges of known bias and thresholds."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from outside import outside

from trecexam.extensions.audit.findings import Finding
from trecexam.extensions.audit.reading import read_inputs
from trecexam.extensions.audit.records import AuditInputs, Side
from trecexam.scores.columns import UNJUDGED

COLLECTIONS = ("cranfield", "vaswani", "cisi")
#: DL 2019's runs by the first letters of their names.
_DL_TEAMS = ("ICT", "TUA1", "TUW19", "UNH", "bm25", "idst", "ms_", "p_", "runid", "srchvrs", "test1")
#: A run counts as not pooled if this many of its first ten passages lost their judgment.
LOST = 0.1


class Case(NamedTuple):
    """The audited data, and the planted (kind, about); `about` "" for any."""

    inputs: AuditInputs
    planted: frozenset[tuple[str, str]]


@lru_cache(maxsize=4)
def whole(name: str) -> AuditInputs:
    """A collection with complete judgments, or DL 2019."""
    folder = outside("dl19" if name == "dl19" else f"collections/{name}")
    teams = None if name == "dl19" else folder / "teams.tsv"
    inputs = read_inputs([min(folder.glob("qrels*"))], [folder / "runs"], teams=teams)
    if name == "dl19":
        named = (next(team for team in _DL_TEAMS if run.startswith(team)) for run in inputs.runs)
        inputs = replace(inputs, teams=np.array([*named], object))
    return inputs


def unpooled(random: np.random.Generator, folder: Path) -> Case:
    """DL 2019 without passages unique to one team in its first ten ranks, and without random ones."""
    base = whole("dl19")
    top, teams = base.rows[:, :, :10], base.teams
    while True:
        team = random.choice(np.unique(teams))
        lost = np.setdiff1d(top[teams == team], top[teams != team])
        share = np.isin(top, lost).mean(axis=(1, 2))
        if (share >= LOST).any():
            break
    chance = random.random(len(base.common)) < random.choice([0, 0.02, 0.05])
    removed = np.union1d(lost, base.common[chance])
    planted = {("not pooled", base.runs[r]) for r in np.flatnonzero(share >= LOST)}
    return Case(without(base, removed, folder), frozenset(planted))


def holes(random: np.random.Generator, folder: Path) -> Case:
    """DL 2019 without a random share of all judgments: no run is disadvantaged."""
    base = whole("dl19")
    share = random.uniform(0.1, 0.5)
    removed = base.common[random.random(len(base.common)) < share]
    return Case(without(base, removed, folder), frozenset({("holes", "")}))


def without(base: AuditInputs, removed: np.ndarray, folder: Path) -> AuditInputs:
    """Read the files without the judgments of these rows."""
    judged = base.sides[0].judged
    rest = np.setdiff1d(base.common, removed)
    docs = judged.doc_ids.to_pylist()
    rows = ((judged.query_ids[judged.query_of_row[i]], docs[i], judged.labels[i]) for i in rest.tolist())
    path = folder / "people.qrels"
    path.write_text("".join(f"{query} 0 {doc} {label}\n" for query, doc, label in rows))
    return replace(read_inputs([path], [outside("dl19") / "runs"]), teams=base.teams)


def judged(name: str, what: str, random: np.random.Generator) -> Case:
    """A collection with a simulated judge that differs from people only in this, plus noise.

    Noise: each relevant passage is one label lower with some probability, and as many others one higher.
    """
    base = whole(name)
    people = base.sides[0].judged
    labels = np.maximum(people.labels[base.common], 0)
    top, n = int(labels.max()), len(labels)
    noise = random.uniform(0.05, 0.3)
    share = (labels > 0).mean()
    up = np.full(n, noise * share / (1 - share))
    down = np.full(n, noise)
    planted: set[tuple[str, str]] = {(what, "")}
    moved = np.where(labels > 0, random.random(n) < down, random.random(n) < up)
    given = np.where(moved, np.where(labels > 0, labels - 1, 1), labels)
    run = int(random.integers(len(base.runs)))
    team = base.teams[run]
    members = [r for r, other in enumerate(base.teams) if other == team]
    if what == "threshold":
        step = int(random.choice([1, -1])) if top > 1 else 1
        raised = np.where(given > 0, given + 1, random.random(n) < random.uniform(0.1, 0.5))
        given = raised.astype(given.dtype) if step > 0 else np.maximum(given - 1, 0)
        planted = {(what, str(step))}
    if what == "unused label":
        given = np.where(given == top - 1, random.choice([top, max(0, top - 2)]), given)
    favoured = {"raised": [run], "likeness": [run], "raised team": members}.get(what)
    if favoured:
        there = np.isin(base.common, base.rows[favoured][:, :, :10])
        # DL 2019 has few queries.
        bias = 0.5 if name == "dl19" else 0.25
        given = np.where(there & (random.random(n) < bias), np.minimum(given + 1, max(top, 2)), given)
        planted = {(what, team if what == "raised team" else base.runs[run])}
    labels_of_judge = np.full_like(people.labels, UNJUDGED)
    labels_of_judge[base.common] = given
    sides = Side("people", people), Side("judge", replace(people, labels=labels_of_judge))
    own = (base.runs[run], base.rows[run]) if what in ("likeness", "clean") else None
    inputs = replace(base, sides=sides, judge_run=own)
    return Case(inputs, frozenset(planted if what != "clean" else ()))


def found(case: Case, findings: tuple[Finding, ...]) -> tuple[int, int]:
    """The number of planted problems that were found."""
    here = {(each.kind, each.about) for each in findings}
    for each in findings:
        here.add((each.kind, ""))
        if each.kind == "threshold":
            first, second = map(int, each.about.split(","))
            here.add((each.kind, str(second - first)))
    return len(case.planted & here), len(case.planted)


def neighbours_of(what: str, random: np.random.Generator) -> Case:
    """Two runs: "equal" up to chance; "certain", one without its first ranks; "reversed" by the judge."""
    base = whole(str(random.choice(COLLECTIONS)))
    labels = base.sides[0].judged.padded_labels.copy()
    gains = np.maximum(labels, 0)[base.rows[:, :, :3]].mean(axis=(1, 2))
    good = np.flatnonzero(gains >= np.median(gains))
    first, second = random.choice(good if what != "equal" else len(base.runs), 2, replace=False)
    a, b = base.rows[first].copy(), base.rows[second].copy()
    if what == "equal":
        swapped = random.random(len(a)) < 0.5
        a[swapped], b[swapped] = b[swapped], a[swapped].copy()
    else:
        b = np.concatenate([a[:, 3:], np.full_like(a[:, :3], -1)], axis=1)
    rows = np.stack([a, b])
    sides = base.sides
    if what == "reversed":
        labels[a[:, :3]] = 0
        sides = (sides[0], Side("judge", replace(sides[0].judged, labels=labels[:-1])))
    names = np.array(["a", "b"], object)
    return Case(replace(base, runs=names, teams=names, rows=rows, sides=sides), frozenset())
