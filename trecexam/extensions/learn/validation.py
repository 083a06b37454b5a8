"""Cross-validation: learned labels and simple methods on hidden judgments."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import quoted
from trecexam.extensions.learn.arithmetic.check import (
    Comparison,
    Design,
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
from trecexam.extensions.learn.learned_pool import MORE, LearningData
from trecexam.features.fill.records import GRADER, LEARNED, NOTHING
from trecexam.features.fill.rules import fitted, thresholds
from trecexam.graders.base import identity_digest
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import Official
from trecexam.results.notes import CHANGES, METHOD, Note
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table
from trecexam.scores.kappa import kappa
from trecexam.scores.labels import labels as grader_labels

#: Column `used_by`.
BOARD, FILL = "leaderboard", "fill"
#: The ways to order runs beside learned labels.
ZERO, CONDENSED = "unjudged = 0", "condensed"
#: Rankings by each of them.
_INSTEAD = {
    ZERO: "`trecexam leaderboard {root} --official`, which counts unjudged passages as not relevant",
    CONDENSED: "lists without unjudged passages: `nDCG(judged_only=True)@10` with ir_measures",
}
#: How the best way is chosen by the losses, see `Comparison.best`.
RULE = "learned labels, unless another method has a lower loss beyond chance (95%, over queries)"

#: (used by, way, loss, kappa, low, high, "yes" for the way that is used)
WayRow = tuple[str, str, float, float, float, float, str]


@dataclass(frozen=True)
class Validation(Result):
    """Comparison of methods for unjudged passages: order of runs, and quality of labels.

    Attributes:
        rows: a row for each method; none where too little is judged to hide half of it.
        design: how the judged passages came to be judged: all of the pool, at random, the most retrieved.
        share: of pairs of a judged and an unjudged passage, in which the judged one is retrieved more.
        judged, hidden: how many judgments there are, and how many were hidden at once.
        best: which way to fill is the best: "learned", "grader" or "none"; "" without rows.
        doubt: a note on a method that orders the runs better than learned labels; "" for none.
        notes: what a reader must know to read the numbers.
    """

    rows: tuple[WayRow, ...]
    design: Design
    share: float
    judged: int
    hidden: float
    best: str
    doubt: str
    notes: tuple[str, ...]

    def _declare(self) -> dict[str, Table]:
        """A row per method: first those of the leaderboard, then those of `fill`."""
        header = ("used_by", "way", "loss", "kappa", "kappa.low", "kappa.high", "used")
        layout = Layout(("used_by", "way"), ("loss", "kappa", "used"))
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

    @property
    def losses(self) -> dict[str, float]:
        """The loss of each method of `fill`."""
        return {way: loss for used_by, way, loss, *_ in self.rows if used_by == FILL}


def cross_validate(
    track: GradedTrack, data: LearningData, fitted: Callable[[int], None] = lambda done: None
) -> Validation:
    """Hide half of the track's judgments, and compare their predicted labels with them.

    Judged passages alone are looked at. The leaderboard by learned labels is compared with giving 0 to
    unjudged passages and with leaving them out; what `fill` writes with leaving holes, and with the labels of
    the track's grader, cut where they agree best with the known judgments. Nothing that is hidden is seen by
    what is fitted. Learned labels are the best way, unless another one is better by more than chance.

    Args:
        fitted: as of `compare`.
    """
    queries, least = data.queries, track.config.scores.min_relevant
    kind, share = design(queries)
    judged = sum(int(query.judged.sum()) for query in queries)
    of_board: dict[str, Way] = {LEARNED: expectations, ZERO: zeros, CONDENSED: condensed}
    of_fill: dict[str, Way] = {LEARNED: labels, NOTHING: zeros}
    automatic = _grader_labels(track, queries)
    if any((~np.isnan(of)).any() for of in automatic):
        of_fill[GRADER] = partial(_by_grader, automatic)
    # Of the same fits.
    ways = {(BOARD, name): method for name, method in of_board.items()}
    ways |= {(FILL, name): method for name, method in of_fill.items()}
    named = {f"{used_by}\t{name}": method for (used_by, name), method in ways.items()}
    why = "" if track.runs else "there are no runs"
    try:
        with threadpool_limits(1):
            compared = compare(queries, named, least, data.others, fitted)
        if compared.hidden < 1:
            why = f"judge at least two passages of a query; {MORE}"
    except ValueError as error:
        why = f"too few judgments to hide half of them: {error} then; {MORE}"
    if why:
        why = Note(f"not cross-validated: {why}", CHANGES)
        return Validation(
            (), kind, share, judged, 0.0, "", "" if kind == "all" else why, (Note(why, CHANGES),)
        )
    rows: list[WayRow] = []
    best: dict[str, str] = {}
    for used_by, of in ((BOARD, of_board), (FILL, of_fill)):
        first, *other_methods = (f"{used_by}\t{name}" for name in of)
        chosen = compared.best(first, other_methods)
        best[used_by] = chosen.split("\t")[1]
        rows += [_row(compared, used_by, name, chosen) for name in of]
    doubt = ""
    if best[BOARD] != LEARNED and kind != "all":
        loss = {way: loss for used_by, way, loss, *_ in rows if used_by == BOARD}
        doubt = (
            f"with half of the judgments hidden `{best[BOARD]}` orders the runs better than learned labels "
            f"(loss {loss[best[BOARD]]:.3f} against {loss[LEARNED]:.3f}): use "
            f"{_INSTEAD[best[BOARD]].format(root=quoted(track.folder.root))}"
        )
    validation = Validation(tuple(rows), kind, share, judged, compared.hidden, best[FILL], doubt, ())
    return validation.with_notes(
        *_notes(validation, least, queries),
        Note(f"used: {RULE}", METHOD),
        *_lower_loss(best[FILL], validation.losses),
    )


def _lower_loss(used: str, losses: Mapping[str, float]) -> Iterator[str]:
    """Yield a note where the grader's labels have a lower loss than those that are used."""
    if used == LEARNED and losses.get(GRADER, math.inf) < losses[LEARNED]:
        line = (
            f"the grader's labels have the lower loss, {losses[GRADER]:.3f} against {losses[LEARNED]:.3f}, "
            "within chance: `trecexam fill --by grader` uses them"
        )
        yield Note(line, CHANGES)


def losses_in_words(best: str, losses: Mapping[str, float]) -> str:
    """Name the methods with their losses, best first."""
    ordered = sorted(losses, key=lambda method: (method != best, losses[method]))
    return ", ".join(f"{method} {losses[method]:.3f}" for method in ordered)


def validation_basis(track: GradedTrack, official: Official, encoder: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of all that a cross-validation depends on, by what it is in words.

    Args:
        encoder: its identity.
    """
    rows = sorted(
        f"{query_id}\0{doc_id}\0{label}\n"
        for query_id, judged in official.judged.items()
        for doc_id, label in judged.items()
    )
    return {
        "set of judgments": hashlib.sha256("".join(rows).encode(errors="surrogatepass")).hexdigest(),
        "encoder": identity_digest(encoder).hex(),
        "grader": identity_digest(track.grader.identity).hex(),
    }


def _row(
    compared: Comparison, used_by: str, name: str, chosen: str
) -> tuple[str, str, float, float, float, float, str]:
    of_way = compared.ways[f"{used_by}\t{name}"]
    agreed = kappa(of_way.counts) if used_by == FILL and name != NOTHING else None
    figures = (math.nan,) * 3 if agreed is None else (agreed.value, agreed.low, agreed.high)
    return used_by, name, of_way.loss, *figures, "yes" if f"{used_by}\t{name}" == chosen else ""


def _grader_labels(track: GradedTrack, queries: Sequence[QueryPassages]) -> list[Floats]:
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
    method = f"{how} (judged passages only: passages without a judgment are left out)"
    notes: list[str] = [Note(method, METHOD)]
    judged = np.concatenate([query.judgments[query.judged] for query in queries])
    relevant = set((judged >= least).tolist())
    if len(relevant) == 1:
        which = "every" if True in relevant else "no"
        line = f"{which} judgment reaches `min_relevant = {least}`, so kappa says nothing: set it in [scores]"
        notes.append(Note(line, CHANGES))
    return notes
