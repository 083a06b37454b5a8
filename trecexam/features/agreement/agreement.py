"""How far the grader's labels agree with the official judgments: gathers labels, calls the statistics."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.features.agreement.arithmetic import Agreement, Thresholds, agreement, pair
from trecexam.features.agreement.tables import agreement_json, agreement_table
from trecexam.features.agreement.words import agreement_notes
from trecexam.line.diagnostics import nothing_graded
from trecexam.line.loaded_track import of_documents
from trecexam.line.official import Official, official_judgments
from trecexam.line.relevance import relevance_thresholds
from trecexam.scores.kappa import MIN_QUERIES
from trecexam.scores.labels import labels
from trecexam.tables.table import Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.scores.ratings import QueryRatings


class NothingInCommonError(TrecexamError):
    """No passage has both an automatic and an official label."""


@dataclass(frozen=True)
class Agreements:
    """The agreement of a track's labels with its official judgments, for each choice of thresholds.

    Attributes:
        source: the official judgments' file or dataset.
        warnings: what makes them other than people's judgments of all that they name. Negative labels are
            left out.
        grader: what graded: the grader's name and model.
        n_queries: queries with passages that have both labels.
        n_both: passages that have both; only these count.
        n_label_only, n_judgment_only: passages of the bank's queries that have only the one.
        n_unpooled: judged passages of the bank's queries that are graded with `[track] pool_judged` alone;
            0 where that is set.
        left_out: people's ratings, which do not count here: `cells`, `passages`, and `who`.
        found: one for each choice, min_answers within min_rating.
        notes: of each of these, what is compared with what, from where on it is relevant, and why.
    """

    source: str
    warnings: tuple[str, ...]
    grader: str
    n_queries: int
    n_both: int
    n_label_only: int
    n_judgment_only: int
    n_unpooled: int
    left_out: Mapping[str, Any]
    found: tuple[Agreement, ...]
    notes: tuple[tuple[str, ...], ...]

    @property
    def unpooled_note(self) -> str | None:
        """What tells published tables from these; None where all judged passages are pooled."""
        if not self.n_unpooled:
            return None
        return (
            f"without a label are {plural(self.n_unpooled, 'judged passage')} outside of the runs' first "
            "ranks; published tables have them: `pool_judged = true` in [track] grades them too"
        )

    @property
    def interval_note(self) -> str | None:
        """Why no kappa has an interval; None where there are queries enough."""
        few = self.n_queries < MIN_QUERIES
        return f"no intervals: they need passages of at least {MIN_QUERIES} queries" if few else None

    def table(self) -> Table:
        """A row for each cell and sum of each table."""
        return agreement_table(self.found)

    def as_json(self) -> dict[str, Any]:
        """The tables with full precision, and what they are made from."""
        return {
            "official": self.source,
            "cautions": list(self.warnings),
            "grader": self.grader,
            "n_queries": self.n_queries,
            "n_both": self.n_both,
            "n_label_only": self.n_label_only,
            "n_judgment_only": self.n_judgment_only,
            "human_ratings_left_out": dict(self.left_out),
            "agreements": [
                agreement_json(agreed) | {"notes": list(notes)}
                for agreed, notes in zip(self.found, self.notes, strict=True)
            ],
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
    scores = track.config.scores
    judged = official_judgments(track)
    # The grader's own ratings: a person who put a cell right must not count as the grader's agreement.
    ratings = track.ratings(human=False)
    choices = [
        (Thresholds(at.min_rating, answers, at.min_relevant, scores.label), at)
        for at, answers in itertools.product(
            [relevance_thresholds(track, rating, min_relevant) for rating in dict.fromkeys(min_ratings)]
            or [relevance_thresholds(track, None, min_relevant)],
            dict.fromkeys(min_answers or (scores.min_answers,)),
        )
    ]
    for choice, at in choices:
        _refuse_beyond(choice, at.max_rating)
    levels = {label for q in ratings for label in judged.judged.get(q.query_id, {}).values()}
    name = _name(track.grader.identity)
    compared, notes = [], []
    for choice, at in choices:
        own = {q.query_id: labels(q, choice.rule, choice.min_rating, choice.min_answers) for q in ratings}
        pairs = pair(own, judged.judged)
        if not len(pairs.query):
            why = judged.explain_no_overlap({q.query_id: q.doc_ids for q in ratings})
            if why:
                raise NothingInCommonError(why)
            raise NothingInCommonError(_why_none(track, ratings), path=track.folder.root)
        agreed = agreement(pairs, choice, at.max_rating, levels, same_scale=at.same_scale)
        compared.append(agreed)
        explicit = bool(min_ratings) or min_relevant is not None
        notes.append(agreement_notes(agreed, at, name, judged.source, settings=None if explicit else scores))
    return Agreements(
        judged.source,
        judged.warnings(),
        name,
        pairs.n_queries,
        len(pairs.query),
        pairs.n_label_only,
        pairs.n_judgment_only,
        # What qrels that are grades lack cannot be graded.
        0
        if track.config.track.pool_judged or track.traits.known_passages is not None
        else _n_unpooled(judged, ratings),
        track.override_summary(),
        tuple(compared),
        tuple(notes),
    )


def agreements_if_any(track: Assessment) -> Agreements | None:
    """Agreement at the track's thresholds; None where no passage has both labels."""
    if track.official is None:
        return None
    try:
        return agreements(track)
    except NothingInCommonError:
        return None


def _refuse_beyond(choice: Thresholds, best: int) -> None:
    if choice.min_rating > best:
        raise TrecexamError(f"min_rating {choice.min_rating}: the grader rates 0..{best}")


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
