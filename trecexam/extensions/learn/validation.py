"""Cross-validation: learned labels and simple methods on hidden judgments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from trecexam.errors import quoted
from trecexam.extensions.learn.arithmetic.check import (
    Way,
    best,
    compare,
    condensed,
    expectations,
    hidings,
    labels,
    most_retrieved,
    zeros,
)
from trecexam.extensions.learn.arithmetic.learning import Learned
from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages
from trecexam.extensions.learn.learned_pool import MORE, LearningData
from trecexam.features.fill.fill import automatic_labels
from trecexam.features.fill.records import GRADER, LEARNED, NOTHING
from trecexam.features.fill.rules import fitted, thresholds
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import CHANGES, METHOD, Note
from trecexam.scores.kappa import kappa

#: Columns of a cross-validation, and values of the first column.
HEADER = ("used_by", "way", "loss", "kappa", "kappa.low", "kappa.high", "used")
BOARD, FILL = "leaderboard", "fill"
#: Methods to order runs beside learned labels.
ZERO, CONDENSED = "unjudged = 0", "condensed"
#: Rankings by each of these methods.
_INSTEAD = {
    ZERO: "`trecexam leaderboard {root} --official`, which counts unjudged passages as not relevant",
    CONDENSED: "lists without unjudged passages: `nDCG(judged_only=True)@10` with ir_measures",
}
#: Description of the hidden half; key: the most retrieved passages are judged.
_HIDDEN = {
    True: "the judged passages are the most retrieved ones, so of each query the less retrieved half was "
    "hidden; loss: by how much hiding changes nDCG@10 of a run relative to the other runs",
    False: "a random half of the judgments was hidden, again and again; loss: 1 - tau of the leaderboard "
    "with the hidden half's judgments",
}
#: How `best` chooses.
RULE = "learned labels, unless another method has a lower loss beyond chance (95%, over queries)"


def cross_validate(
    track: GradedTrack, data: LearningData, fitted: Callable[[int, int], None] = lambda done, of: None
) -> Tables:
    """Hide half of the track's judgments, and compare their predicted labels with them.

    Only judged passages are used. The leaderboard by learned labels is compared with counting unjudged
    passages as 0 and with leaving them out; labels of `fill` with leaving holes, and with the grader's
    labels, cut for best agreement with the known judgments. Fits never see hidden judgments. Learned labels
    are the best method, unless another one is significantly better.

    Args:
        fitted: as for `compare`.

    Returns:
        The table `ways` with a row for each method, first the methods of the leaderboard, then those of
        `fill`; no rows with too few judgments to hide half. Facts: `judged` and `hidden`, the numbers of
        judgments and of those hidden at once; and `best`, the best method to fill ("learned", "grader" or
        "none").
    """
    queries, least = data.queries, track.config.scores.min_relevant
    judged = sum(int(query.judged.sum()) for query in queries)
    ways: dict[tuple[str, str], Way] = {
        (BOARD, LEARNED): expectations,
        (BOARD, ZERO): zeros,
        (BOARD, CONDENSED): condensed,
        (FILL, LEARNED): labels,
        (FILL, NOTHING): zeros,
    }
    by_query = automatic_labels(track, human=False)
    automatic = [
        np.array([by_query.get(query.query_id, {}).get(doc, math.nan) for doc in query.doc_ids])
        for query in queries
    ]
    if any((~np.isnan(of)).any() for of in automatic):
        ways[FILL, GRADER] = partial(_by_grader, automatic)
    why, hidden = "" if track.runs else "there are no runs", 0.0
    try:
        compared = compare(queries, ways, least, data.other_queries, fitted)
        hidden = float(compared[BOARD, LEARNED].counts.sum()) / len(hidings(queries))
        if hidden < 1:
            why = f"judge at least two passages of a query; {MORE}"
    except ValueError as error:
        why = f"too few judgments to hide half of them: {error} then; {MORE}"
    rows: list[tuple[Value, ...]] = []
    chosen: dict[str, str] = {}
    for used_by in () if why else (BOARD, FILL):
        of_ways = {name: result for (user, name), result in compared.items() if user == used_by}
        chosen[used_by] = best(of_ways, LEARNED)
        for name, result in of_ways.items():
            agreed = kappa(result.counts) if used_by == FILL and name != NOTHING else (math.nan,) * 3
            rows.append((used_by, name, result.loss, *agreed, "yes" if name == chosen[used_by] else ""))
    how = (
        f"{_HIDDEN[most_retrieved(queries)]} (judged passages only: passages without a judgment are left out)"
    )
    notes = [Note(how, METHOD), Note(f"used: {RULE}", METHOD)]
    if why:
        notes, hidden = [Note(f"not cross-validated: {why}", CHANGES)], 0.0
    elif (other := chosen[BOARD]) != LEARNED:
        losses = [compared[BOARD, name].loss for name in (other, LEARNED)]
        line = (
            f"`{other}` orders the runs better than learned labels (loss {losses[0]:.3f} against "
            f"{losses[1]:.3f}): use {_INSTEAD[other].format(root=quoted(track.folder.root))}"
        )
        notes.insert(0, Note(line, CHANGES))
    table = Table(HEADER, tuple(rows), layout=Layout(HEADER[:2], ("loss", "kappa", "used")))
    about = {"judged": judged, "hidden": hidden, "best": chosen.get(FILL, "")}
    return Tables({"ways": table}, tuple(notes), about=about)


def _by_grader(automatic: Sequence[Floats], queries: Sequence[QueryPassages], _: Learned) -> list[Floats]:
    """Return the labels of `fill --by grader`, by the rule with the best agreement with judgments."""
    both = [~np.isnan(of) & query.judged for of, query in zip(automatic, queries, strict=True)]
    labels = np.concatenate([of[rows] for of, rows in zip(automatic, both, strict=True)]).astype(int)
    judged = np.concatenate([query.judgments[rows] for query, rows in zip(queries, both, strict=True)])
    try:
        rule = fitted(labels.tolist(), judged.astype(int).tolist())
    except ValueError:
        rule = thresholds({10**9: 0})
    return [
        np.where(
            query.judged,
            query.judgments,
            [0.0 if math.isnan(label) else float(rule(int(label))) for label in of.tolist()],
        )
        for of, query in zip(automatic, queries, strict=True)
    ]
