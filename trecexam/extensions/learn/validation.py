"""`cross-validate`: tests learned labels on hidden judgments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.check import (
    REPEATS,
    Comparison,
    Way,
    compare,
    condensed,
    design,
    expectations,
    labels,
    zeros,
)
from trecexam.extensions.learn.arithmetic.learning import Learned
from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import scale_of
from trecexam.extensions.learn.encoding import Encoded, Encoder
from trecexam.extensions.learn.learned_board import CONDENSED, LEARNED, ZERO, unproven_note
from trecexam.extensions.learn.learned_pool import MORE, LearningData, gather_data, why_nothing
from trecexam.extensions.learn.verdict import Verdict, keep_verdict, verdict_basis
from trecexam.features.fill.arithmetic import scale_map
from trecexam.features.fill.teaching import GRADER, NOTHING
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import of_judgments
from trecexam.scores.kappa import kappa
from trecexam.scores.labels import labels as grader_labels
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table

#: Column `used_by`.
BOARD, FILL = "learned-leaderboard", "fill"
#: How the verdict is made of the losses, see `Comparison.best`.
RULE = "learned labels, unless another method has a lower loss beyond chance (95%, over queries)"


@dataclass(frozen=True)
class Validation(Result):
    """Comparison of methods for unjudged passages: order of runs, and quality of labels.

    Attributes:
        rows: (used by, way, loss, kappa, low, high, verdict).
        design: how the judged passages came to be judged: all of the pool, at random, the most retrieved.
        share: of pairs of a judged and an unjudged passage, in which the judged one is retrieved more.
        judged, hidden: how many judgments there are, and how many were hidden at once.
        best: which way to fill is the best: "learned", "grader" or "none".
        notes: what a reader must know to read the numbers.
    """

    rows: tuple[tuple[str, str, float, float, float, float, str], ...]
    design: str
    share: float
    judged: int
    hidden: float
    best: str
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """A row per method: first those of the learned leaderboard, then those of `fill`."""
        header = ("used_by", "way", "loss", "kappa", "kappa.low", "kappa.high", "verdict")
        layout = Layout(("used_by", "way"), ("loss", "kappa", "verdict"))
        return {"ways": Table(header, self.rows, layout=layout)}

    @property
    def facts(self) -> dict[str, Any]:
        """The number of judgments, and the best method to fill."""
        return {
            "design": self.design,
            "retrieved_more": self.share,
            "judged": self.judged,
            "hidden": self.hidden,
            "best": self.best,
        }


@of_judgments
def cross_validate(
    track: Assessment,
    *,
    encoder: str | Encoder | None = None,
    progress: Encoded | None = None,
    steps: Callable[[int, int], None] | None = None,
) -> Validation:
    """Hides half of the track's judgments, and compares their predicted labels with them.

    Judged passages alone are looked at. What the learned leaderboard prints is compared with giving 0 to
    unjudged passages and with leaving them out; what `fill` writes with leaving holes, and with the labels of
    the track's grader, cut where they agree best with the known judgments. Nothing that is hidden is seen by
    what is fitted. Which way to fill holes is best is kept for `fill`: learned labels, unless another way is
    better by more than chance.

    Args:
        encoder, progress: as of `track.learn.labels`.
        steps: called with how many fits are done, and of how many.

    Raises:
        TrecexamError: as `track.learn.labels`; or no runs.
    """
    if not track.runs:
        raise TrecexamError("no runs to rank: drop some into the track first", path=track.folder.runs)
    data = gather_data(track, encoder=encoder, progress=progress)
    assert data.official is not None
    queries, least = data.queries, track.config.scores.min_relevant
    kind, share = design(queries)
    of_board: dict[str, Way] = {LEARNED: expectations, ZERO: zeros, CONDENSED: condensed}
    of_fill: dict[str, Way] = {LEARNED: labels, NOTHING: zeros}
    automatic = _grader_labels(track, queries)
    if any((~np.isnan(of)).any() for of in automatic):
        of_fill[GRADER] = partial(_by_grader, automatic)
    total = 1 if kind == "most retrieved" else REPEATS
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if steps is not None:
            steps(done, total)

    # Of the same fits.
    ways = {(BOARD, name): method for name, method in of_board.items()}
    ways |= {(FILL, name): method for name, method in of_fill.items()}
    named = {f"{used_by}\t{name}": method for (used_by, name), method in ways.items()}
    try:
        scale_of(queries)
    except ValueError as error:
        why = why_nothing(track, data, error)
        raise TrecexamError(f"nothing to validate on: {why}; {MORE}", path=track.folder.root) from None
    try:
        with threadpool_limits(1):
            compared = compare(queries, named, least, step=step)
    except ValueError as error:
        raise TrecexamError(
            f"too few judgments to hide half of them: {error} then; {MORE}", path=track.folder.root
        ) from None
    if compared.hidden < 1:
        raise TrecexamError(
            f"too few judgments to hide half of them: judge at least two passages of a query; {MORE}",
            path=track.folder.root,
        )
    rows: list[tuple[str, str, float, float, float, float, str]] = []
    best: dict[str, str] = {}
    unproven: list[str] = []
    for used_by, of in ((BOARD, of_board), (FILL, of_fill)):
        first, *other_methods = (f"{used_by}\t{name}" for name in of)
        chosen = compared.best(first, other_methods)
        if (less := compared.unproven(first, other_methods)) is not None:
            _, _, name = less.partition("\t")
            unproven.append(f"{used_by}: {unproven_note(compared, less, name, first)}")
        best[used_by] = chosen.split("\t")[1]
        for name in of:
            rows.append(_row(compared, used_by, name, chosen))
    validation = Validation(
        tuple(rows),
        kind,
        share,
        sum(int(query.judged.sum()) for query in queries),
        compared.hidden,
        best[FILL],
        data.notes,
    )
    return validation.noted(
        *_notes(validation, least, queries),
        f"verdict: {RULE}",
        *unproven,
        *_keep(track, data, compared, best[FILL]),
    )


def _row(
    compared: Comparison, used_by: str, name: str, chosen: str
) -> tuple[str, str, float, float, float, float, str]:
    of_way = compared.ways[f"{used_by}\t{name}"]
    agreed = kappa(of_way.counts) if used_by == FILL and name != NOTHING else None
    figures = (math.nan,) * 3 if agreed is None else (agreed.value, agreed.low, agreed.high)
    return used_by, name, of_way.loss, *figures, "best" if f"{used_by}\t{name}" == chosen else ""


def _grader_labels(track: Assessment, queries: Sequence[QueryPassages]) -> list[Floats]:
    """The grader's labels of each query's passages, without people's; NaN without one."""
    scores = track.config.scores
    automatic: Mapping[str, Mapping[str, int]] = {
        of.query_id: grader_labels(of, scores.label, scores.min_rating, scores.min_answers)
        for of in track.ratings(human=False)
    }
    return [
        np.array([automatic.get(query.query_id, {}).get(doc, math.nan) for doc in query.doc_ids])
        for query in queries
    ]


def _by_grader(automatic: Sequence[Floats], queries: Sequence[QueryPassages], _: Learned) -> list[Floats]:
    """The labels of `fill --by grader`: mapped with the rule that agrees best with judgments."""
    both = [~np.isnan(of) & query.judged for of, query in zip(automatic, queries, strict=True)]
    labels = np.concatenate([of[rows] for of, rows in zip(automatic, both, strict=True)]).astype(int)
    judged = np.concatenate([query.judgments[rows] for query, rows in zip(queries, both, strict=True)])
    try:
        rule = scale_map.fitted(labels.tolist(), judged.astype(int).tolist())
    except ValueError:
        rule = scale_map.thresholds({10**9: 0})
    return [
        np.where(
            query.judged,
            query.judgments,
            [0.0 if math.isnan(label) else float(rule(int(label))) for label in of.tolist()],
        )
        for of, query in zip(automatic, queries, strict=True)
    ]


def _notes(validation: Validation, least: int, queries: Sequence[QueryPassages]) -> list[str]:
    if validation.design == "most retrieved":
        how = (
            "the judged passages are the most retrieved ones, so of each query the less retrieved half was "
            "hidden; loss: by how much hiding changes nDCG@10 of a run relative to the other runs"
        )
    else:
        what = (
            "all of the pool is judged"
            if validation.design == "all"
            else "runs retrieve the judged passages as often as the others, as in a random sample"
        )
        how = (
            f"{what}; a random half was hidden, again and again; loss: 1 - tau of the leaderboard with the "
            "hidden half's judgments"
        )
    notes = [f"{how} (judged passages only: passages without a judgment are left out)"]
    judged = np.concatenate([query.judgments[query.judged] for query in queries])
    relevant = set((judged >= least).tolist())
    if len(relevant) == 1:
        which = "every" if True in relevant else "no"
        notes.append(
            f"{which} judgment reaches `min_relevant = {least}`, so kappa says nothing: set it in [scores]"
        )
    return notes


def _keep(track: Assessment, data: LearningData, compared: Comparison, best: str) -> list[str]:
    """Stores the verdict for `fill`; returns notes."""
    assert data.official is not None
    encoder = {name: value for name, value in data.encoder.items() if name != "model"}
    losses = {
        name.split("\t")[1]: of.loss for name, of in compared.ways.items() if name.startswith(f"{FILL}\t")
    }
    verdict = Verdict(best=best, basis=verdict_basis(track, data.official, encoder), losses=losses)
    line = f"method to fill holes: {best}; losses: {verdict.summary}"
    try:
        keep_verdict(track.folder.state, verdict)
    except TrecexamError as error:
        return [f"{line}; not stored for `trecexam fill`: {error}"]
    return [line]
