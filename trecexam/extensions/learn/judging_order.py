"""`learned-next`: plans the judgments that improve leaderboards and labels most."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from converters.records import judgment
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.learn.arithmetic.settling import standing
from trecexam.extensions.learn.learned_board import K
from trecexam.extensions.learn.learned_pool import LearnedPool, learn_pool, people_judgments
from trecexam.line.loaded_track import of_judgments
from trecexam.scores.retrieved import retrieved_weights
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import beginning, plural

if TYPE_CHECKING:
    from trecexam.extensions.learn.arithmetic.passages import Bools, Floats
    from trecexam.extensions.learn.encoding import Encoder
    from trecexam.line.assessment import Assessment

#: Passages of a query, unless said; and the share that is drawn at random, which improves labels.
PER_QUERY, RANDOM_SHARE = 5, 0.1

#: What passages are ordered by.
Order = Literal["retrieved", "mtc"]


@dataclass(frozen=True)
class PlannedJudgment:
    """A passage to judge.

    Attributes:
        why: it is the most retrieved one that was left of its query, the one that tells most of the order of
            the runs, or drawn at random from all left.
        runs: how many runs have it at their pooled ranks.
        gain: the expected judgment, by what was learned; None where nothing is known of it.
        sd: the standard deviation of what a person would say.
    """

    query_id: str
    doc_id: str
    why: Literal["most retrieved", "tells most", "random"]
    runs: int
    gain: float | None
    sd: float | None
    query_text: str
    text: str


@dataclass(frozen=True)
class JudgmentPlan(Result):
    """A plan of judgments to learn from.

    Attributes:
        rows: in the order in which to judge: a passage of each query, then the next of each.
        candidates: passages of these queries that nobody judged; `judged` are those that somebody did.
        n_learned: from how many judgments gains are learned; 0: there are none.
        notes: what a reader must know, and what is to be done.
    """

    rows: tuple[PlannedJudgment, ...]
    candidates: int
    judged: int
    n_learned: int
    notes: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """`judgments` in order of judging, with shortened texts; `texts` with whole ones."""
        header = ("place", "query_id", "doc_id", "why", "runs", "gain", "sd", "text")
        judgments = (
            (rank, row.query_id, row.doc_id, row.why, row.runs, row.gain, row.sd, beginning(row.text))
            for rank, row in enumerate(self.rows, 1)
        )
        texts = ((row.query_id, row.doc_id, row.query_text, row.text) for row in self.rows)
        return {
            "judgments": Table(header, tuple(judgments), layout=Layout(("query_id", "doc_id"))),
            "texts": Table(("query_id", "doc_id", "query_text", "text"), tuple(texts)),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of judged, learned and planned passages."""
        return {
            "candidates": self.candidates,
            "judged": self.judged,
            "learned_from": self.n_learned,
            "planned": len(self.rows),
        }


@of_judgments
def plan_judgments(
    track: Assessment,
    *,
    query_ids: Collection[str] = (),
    per_query: int | None = None,
    budget: int | None = None,
    by: Order = "retrieved",
    seed: int = 0,
    encoder: str | Encoder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JudgmentPlan:
    """Plans judgments that improve leaderboards and labels most; needs no grades.

    A passage of each query in turn: "retrieved": the most retrieved one that nobody judged (over runs, 1 /
    log2(rank + 1) to rank 10, 0.1 to rank 20), and in a tenth of the cases one drawn at random, so that
    labels gain. "mtc": the one whose judgment takes most off the variance of the differences of all pairs of
    runs (minimal test collections, Carterette, Allan & Sitaraman, SIGIR 2006), each weighted by how undecided
    it is; it needs a judgment of each query on average. Judged is what has an official judgment, or a
    person's rating as a whole.

    Args:
        query_ids: only these queries; none for all.
        per_query: passages of each query, with a budget at the most; None: 5, or what the budget allows.
        budget: judgments in all, evenly over queries.
        by: see above.
        seed: of what is random: the same track and seed give the same plan.
        encoder: as of `track.learn.labels`.
        progress: called with how many texts are encoded, and of how many.

    Raises:
        TrecexamError: an unknown query, a number out of range; with "mtc" fewer judgments than one a query,
            or fewer than two runs.
    """
    for name, number, least in (("per_query", per_query, 1), ("budget", budget, 1), ("seed", seed, 0)):
        if number is not None and number < least:
            raise TrecexamError(f"{name} = {number}: at least {least}")
    if by not in get_args(Order):
        raise TrecexamError(f"by = '{by}': {' or '.join(get_args(Order))}")
    for query_id in query_ids:
        if query_id not in track.pool:
            hint = did_you_mean(query_id, track.pool, before="; ")
            raise TrecexamError(f"no query '{beginning(query_id)}'{hint}", path=track.folder.root)
    pool = {query_id: of for query_id, of in track.pool.items() if not query_ids or query_id in query_ids}
    judged = judged_passages(track)
    unjudged = [
        np.array([doc_id not in judged.get(query_id, ()) for doc_id in of.doc_ids], np.bool_)
        for query_id, of in pool.items()
    ]
    learned, notes = _learned(track, judged, encoder, progress)
    if by == "mtc":
        if learned is None:
            raise TrecexamError(f"'mtc' needs judgments: {' '.join(notes)}", path=track.folder.root)
        telling = _telling(learned, track)
        weights = [telling.get(query_id, np.zeros(len(of.doc_ids))) for query_id, of in pool.items()]
        share: float = 0.0
    else:
        weights = [retrieved_weights(of.ranks, len(of.doc_ids)) for of in pool.values()]
        share = RANDOM_SHARE
    # With the number of judgments, as a plan after others must not draw of the same queries again.
    rounds = judging_rounds(weights, unjudged, share, [seed, sum(map(len, judged.values()))])
    chosen = list(islice(rounds, per_query or (PER_QUERY if budget is None else None)))
    planned = [row for of_round in chosen for row in of_round][:budget]
    predictions = _predictions(learned)
    query_list, rows = list(pool), []
    for query, passage, is_random in planned:
        query_id = query_list[query]
        doc_id = pool[query_id].doc_ids[passage]
        gain, deviation = predictions.get((query_id, doc_id), (None, None))
        rows.append(
            PlannedJudgment(
                query_id,
                doc_id,
                "random" if is_random else "most retrieved" if by == "retrieved" else "tells most",
                int((pool[query_id].ranks == passage).any(axis=1).sum()),
                gain,
                deviation,
                track.query_texts.get(query_id, ""),
                track.texts.get(doc_id, ""),
            )
        )
    candidates = int(sum(of_query.sum() for of_query in unjudged))
    plan = JudgmentPlan(
        tuple(rows),
        candidates,
        sum(map(len, unjudged)) - candidates,
        0 if learned is None else learned.learned.n_judgments,
    )
    return plan.noted(*notes, *_summary(track, plan))


def _summary(track: Assessment, plan: JudgmentPlan) -> Iterator[str]:
    learned = f"; gains are learned from {plan.n_learned:,}" if plan.n_learned else ""
    n_pooled = plan.judged + plan.candidates
    yield f"of {plural(n_pooled, 'pooled passage')} {plan.judged:,} are judged{learned}"
    drawn = sum(row.why == "random" for row in plan.rows)
    if not plan.rows:
        yield "no passage is left to judge"
        return
    at_random = f", {drawn:,} of them drawn at random" if drawn else ""
    qrels = track.folder.qrels()
    name = "qrels.txt" if qrels is None else qrels.name
    yield (
        f"{plural(len(plan.rows), 'passage')} to judge{at_random}: lines `QUERY_ID 0 DOC_ID LABEL` in "
        f"{name}, or `trecexam override`"
    )


def judging_rounds(
    weights: Sequence[Floats], unjudged: Sequence[Bools], share: float, seed: int | Sequence[int]
) -> Iterator[list[tuple[int, int, bool]]]:
    """Round after round a passage of each query, until none is left.

    A passage is its query's one of greatest weight that is left; or, as a share of all of them that is the
    same after any number of rounds (rounded up at a place in a round that the seed decides), one drawn from
    all that are left. So a plan of fewer rounds is the beginning of one of more.

    Args:
        weights: of each query's passages; of equal ones the first is chosen.
        unjudged: of the same passages, those to choose from.
        share: of random ones, 0..1.
        seed: the same seed gives the same plan.

    Yields:
        The places of the query and among its passages, and whether it was drawn.
    """
    rng = np.random.default_rng(seed)
    orders = [np.argsort(-of_query, kind="stable") for of_query in weights]
    left = [order[of_query[order]].tolist() for order, of_query in zip(orders, unjudged, strict=True)]
    # The first random one is as likely anywhere in a stretch that is to have one.
    owed = rng.random() if share else 0.0
    while any(left):
        queries = [query for query, of_query in enumerate(left) if of_query]
        drawn = set()
        for query in rng.permutation(queries).tolist():
            owed += share
            # Rounding must not cost a plan that is all random its last one.
            if owed >= 1 - 1e-9:
                owed -= 1
                drawn.add(query)
        yield [
            (
                query,
                left[query].pop(int(rng.integers(len(left[query]))) if query in drawn else 0),
                query in drawn,
            )
            for query in queries
        ]


def _telling(learned: LearnedPool, track: Assessment) -> dict[str, Floats]:
    """For each query's passages, how much their judgment tells about the order of all runs.

    Raises:
        TrecexamError: fewer than two runs, or fewer judgments than one a query.
    """
    queries, n_judged = learned.data.queries, learned.learned.n_judgments
    if len(track.runs) < 2:
        raise TrecexamError("'mtc' compares runs: the track needs two runs or more", path=track.folder.runs)
    if n_judged < len(queries):
        raise TrecexamError(
            f"'mtc' needs as many judgments as queries: the track has {n_judged:,} for "
            f"{plural(len(queries), 'query')}; plan by 'retrieved' until then",
            path=track.folder.root,
        )
    with threadpool_limits(1):
        standings = standing(learned.learned, queries, min(K, track.depth))
    gains = standings.gains(list(combinations(range(len(standings.mean)), 2)))
    return {query.query_id: of for query, of in zip(queries, gains, strict=True)}


def judged_passages(track: Assessment) -> dict[str, set[str]]:
    """query_id -> passages with an official judgment, or a person's rating of the whole passage."""
    judged: dict[str, set[str]] = {}
    for row in track.official or ():
        if judgment(row.relevance) is not None:
            judged.setdefault(row.query_id, set()).add(row.doc_id)
    for people in (track.overrides, track.judgments):
        for query_id, human in people.queries.items():
            if human.passages:
                judged.setdefault(query_id, set()).update(human.passages)
    return judged


def _learned(
    track: Assessment,
    judged: Mapping[str, Collection[str]],
    encoder: str | Encoder | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[LearnedPool | None, tuple[str, ...]]:
    """Learns from the judgments; returns None if that is impossible, and notes."""
    # Encoding takes minutes, so it is not for nothing.
    if not judged:
        return None, ("nothing is judged yet, so there is nothing to learn from",)
    try:
        official, n_people = people_judgments(track)
        learned = learn_pool(track, encoder=encoder, official=official, progress=progress)
    except TrecexamError as error:
        return None, (error.reason,)
    rated = f"{plural(n_people, 'unjudged passage')} that people rated as a whole: these ratings count, too"
    return learned, (*learned.notes, *([rated] if n_people else []))


def _predictions(learned: LearnedPool | None) -> dict[tuple[str, str], tuple[float, float]]:
    """(query_id, doc_id) -> gain and standard deviation."""
    return {
        (query.query_id, doc_id): (gain, deviation)
        for query, prediction in (
            () if learned is None else zip(learned.data.queries, learned.predictions, strict=True)
        )
        for doc_id, gain, deviation in zip(
            query.doc_ids, prediction.gains.tolist(), prediction.deviations.tolist(), strict=True
        )
    }
