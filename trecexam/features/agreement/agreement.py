"""How far the grader's labels agree with the official judgments: gathers labels, calls the statistics."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.features.agreement.arithmetic import Agreement, agreement, pair
from trecexam.features.agreement.tables import agreement_table, crosstabs, thresholds_table
from trecexam.features.agreement.words import (
    agreement_notes,
    counts_note,
    figures_note,
    interval_note,
    left_out_note,
    unpooled_note,
)
from trecexam.line.diagnostics import nothing_graded
from trecexam.line.loaded_track import of_documents
from trecexam.line.official import Official, official_judgments
from trecexam.line.relevance import relevance_thresholds
from trecexam.scores.labels import labels
from trecexam.tables.result import Result
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.scores.ratings import QueryRatings


class NothingInCommonError(TrecexamError):
    """No passage has both an automatic and an official label."""


@dataclass(frozen=True)
class Agreements(Result):
    """The agreement of a track's labels with its official judgments, for each choice of thresholds.

    People see the tables `graded`, `merged` and `binary` of each choice, labels by judgments. Programs are
    given `agreement`, all of them in one. Its facts, `kappa` among them, are those of the first choice.

    Attributes:
        source: the official judgments' file or dataset.
        grader: what graded: the grader's name and model.
        n_queries: queries with passages that have both labels.
        n_both: passages that have both; only these count.
        n_label_only, n_judgment_only: passages of the bank's queries that have only the one.
        left_out: people's ratings, which do not count here: `cells`, `passages`, and `who`.
        found: one for each choice, min_answers within min_rating.
        notes: what was compared, from where on it is relevant and why, and what must be known of the figures.
    """

    source: str
    grader: str
    n_queries: int
    n_both: int
    n_label_only: int
    n_judgment_only: int
    left_out: Mapping[str, Any]
    found: tuple[Agreement, ...]
    notes: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """All tables in one, then by choice of thresholds the figures, then the tables that people see."""
        return {
            "agreement": agreement_table(self.found),
            "thresholds": thresholds_table(self.found),
            **crosstabs(self.found),
        }

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the tables of labels by judgments."""
        return tuple(crosstabs(self.found))

    @property
    def facts(self) -> dict[str, Any]:
        """What was compared, and the figures of the first choice of thresholds."""
        return {
            "official": self.source,
            "grader": self.grader,
            "n_queries": self.n_queries,
            "n_both": self.n_both,
            "n_label_only": self.n_label_only,
            "n_judgment_only": self.n_judgment_only,
            "human_ratings_left_out": dict(self.left_out),
            **next(iter(thresholds_table(self.found[:1]).records())),
        }


@of_documents
def agreements(
    track: Assessment,
    min_ratings: Sequence[int] = (),
    min_answers: Sequence[int] = (),
    min_relevant: int | None = None,
) -> Agreements:
    """Label by judgment tables and Cohen's kappa, for every min_rating with every min_answers.

    Where labels and judgments are on the same scale, both have the same threshold unless both are given; see
    `relevance_thresholds`.

    Args:
        min_ratings, min_answers, min_relevant: in place of the track's settings.

    Raises:
        TrecexamError: there are no official judgments, or a min_rating is beyond the grader's scale.
        NothingInCommonError: no passage has both labels; it says why.
    """
    judged = official_judgments(track)
    # The grader's own ratings: a person who put a cell right must not count as the grader's agreement.
    ratings = track.ratings(human=False)
    choices = [
        relevance_thresholds(track, rating, min_relevant, answers)
        for rating, answers in itertools.product(
            dict.fromkeys(min_ratings or (None,)), dict.fromkeys(min_answers or (None,))
        )
    ]
    for choice in choices:
        if choice.min_rating > choice.max_rating:
            raise TrecexamError(f"min_rating {choice.min_rating}: the grader rates 0..{choice.max_rating}")
    levels = {label for q in ratings for label in judged.judged.get(q.query_id, {}).values()}
    name = _name(track.grader.identity)
    compared = []
    notes: list[str] = []
    for choice in choices:
        own = {q.query_id: labels(q, choice.rule, choice.min_rating, choice.min_answers) for q in ratings}
        pairs = pair(own, judged.judged)
        if not len(pairs.query):
            why = judged.explain_no_overlap({q.query_id: q.doc_ids for q in ratings})
            if why:
                raise NothingInCommonError(why)
            raise NothingInCommonError(_why_none(track, ratings), path=track.folder.root)
        agreed = agreement(pairs, choice, levels)
        compared.append(agreed)
        notes += agreement_notes(agreed, name, judged.source)
    left_out = track.override_summary()
    # What qrels that are grades lack cannot be graded.
    all_pooled = track.config.track.pool_judged or track.traits.known_passages is not None
    lines = (
        counts_note(pairs, judged.source),
        # Of several choices the axes, and mostly the pairing, are the same.
        *dict.fromkeys(notes),
        *judged.warnings(),
        *unpooled_note(0 if all_pooled else _n_unpooled(judged, ratings)),
        *left_out_note(left_out),
        *(line for agreed in compared for line in figures_note(agreed)),
        *interval_note(pairs.n_queries),
    )
    return Agreements(
        judged.source,
        name,
        pairs.n_queries,
        len(pairs.query),
        pairs.n_label_only,
        pairs.n_judgment_only,
        left_out,
        tuple(compared),
        lines,
    )


def agreements_if_any(track: Assessment) -> Agreements | None:
    """Agreement at the track's thresholds; None where no passage has both labels."""
    if track.official is None:
        return None
    try:
        return agreements(track)
    except NothingInCommonError:
        return None


def _n_unpooled(judged: Official, ratings: Sequence[QueryRatings]) -> int:
    return sum(len(judged.judged.get(q.query_id, {}).keys() - set(q.doc_ids)) for q in ratings)


def _why_none(track: Assessment, ratings: Sequence[QueryRatings]) -> str:
    if not any(q.doc_ids for q in ratings):
        return "no passages to compare labels of: drop runs into the track's runs folder"
    if not any(q.rated.any() for q in ratings):
        return nothing_graded(track)
    return "no passage has both an automatic label and an official judgment"


def _name(identity: Mapping[str, Any]) -> str:
    return " ".join(str(identity[key]) for key in ("grader", "model") if identity.get(key))
