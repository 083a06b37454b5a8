"""Keeps what cross-validation shows of the ways to fill holes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from trecexam.errors import TrecexamError
from trecexam.extensions.learn import verdict
from trecexam.extensions.learn.cross_validation import LEARNED, Row
from trecexam.extensions.learn.learned_pool import LearningData
from trecexam.extensions.learn.splits import Split
from trecexam.extensions.learn.verdict import SplitFigures, Verdict
from trecexam.features.fill import teaching
from trecexam.line.assessment import Assessment


def keep(track: Assessment, data: LearningData, rows: Sequence[Row], splits: Sequence[Split]) -> str | None:
    """Keeps which way to fill was best, over the splits that leave each query some of its judgments.

    A query that has holes mostly has judgments, too, and where it has none, all plain rules tie the runs.

    Returns:
        What is kept, in a line; None where no split has a tau for each way.
    """
    if data.official is None:
        return None
    own = f"grader {track.grader.identity['grader']}"
    figures = []
    for split in splits:
        ways = {way: row for row in rows if row.split == split.name and (way := _way(row.method, own))}
        if split.whole or not ways or any(math.isnan(row.tau.value) for row in ways.values()):
            continue
        tau, kappa = (
            {way: value(row).value for way, row in ways.items()}
            for value in (attrgetter("tau"), attrgetter("kappa"))
        )
        whole = not any(map(math.isnan, kappa.values()))
        figures.append(SplitFigures(split=split.name, tau=tau, kappa=kappa if whole else {}))
    if not figures:
        return None
    encoder = {name: value for name, value in data.encoder.items() if name != "model"}
    kept = Verdict(
        best=verdict.best_way(figures),
        basis=verdict.verdict_basis(track, data.official, encoder),
        grades=data.graded,
        splits=tuple(figures),
    )
    line = f"the best way to fill holes, over {len(figures)} ways of hiding: {kept.summary}"
    try:
        verdict.keep_verdict(track.folder.state, kept)
    except TrecexamError as error:
        return f"{line}; not kept for `trecexam fill`: {error}"
    return line


def _way(method: str, own: str) -> str | None:
    """How `fill` calls a way; None of one that cannot fill."""
    if method.startswith("unjudged = "):
        return f"{teaching.LABEL}{method.removeprefix('unjudged = ')}"
    return {LEARNED: teaching.LEARNED, own: teaching.GRADER}.get(method)
