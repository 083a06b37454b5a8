"""A plan of what to judge so that learning from it gains most: how many, which, why, and where it stops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.learn.judging_plan.expected_change import DrawnLeaderboards, expected_change
from trecexam.extensions.learn.judging_plan.plan import Planned, judging_rounds
from trecexam.extensions.learn.learned_pool import LearnedPool, learn_pool, people_judgments
from trecexam.line.loaded_track import of_documents
from trecexam.scores.retrieved import retrieved_weights
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import beginning, plural

if TYPE_CHECKING:
    from trecexam.extensions.learn.encoding import Encoder
    from trecexam.line.assessment import Assessment

#: Passages of a query, the share that is drawn, and the expected change below which a budget is not used up.
PER_QUERY, RANDOM_SHARE, STOP_BELOW = 5, 0.1, 0.01


@dataclass(frozen=True)
class PlannedJudgment:
    """A passage to judge.

    Attributes:
        why: it is the most retrieved one that was left of its query, or drawn at random from all left.
        runs: how many runs have it at their pooled ranks.
        gain: the expected judgment, by what was learned; None where nothing is known of it.
        sd: the standard deviation of what a person would say.
    """

    query_id: str
    doc_id: str
    why: Literal["most retrieved", "random"]
    runs: int
    gain: float | None
    sd: float | None
    query_text: str
    text: str


@dataclass(frozen=True)
class JudgmentPlan(Result):
    """What to judge, so that leaderboards and labels gain most by learning from it.

    Attributes:
        rows: in the order in which to judge: a passage of each query, then the next of each.
        candidates: passages of these queries that nobody judged; `judged` are those that somebody did.
        n_learned: from how many judgments gains are learned; 0: there are none.
        changes: where there is a budget: by how much tau is expected to change with each round of `rows`, and
            by the first that is not among them; see `expected_change`.
        stopped: why the plan ends where it does, in words.
        about: what a reader must know of what was learned; the notes have it, too, and what is to be done.
    """

    rows: tuple[PlannedJudgment, ...]
    candidates: int
    judged: int
    n_learned: int
    changes: tuple[float, ...]
    stopped: str
    about: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """`judgments` in the order in which to judge, with beginnings of texts; `texts` has them whole."""
        header = ("place", "query_id", "doc_id", "why", "runs", "gain", "sd", "text")
        judgments = (
            (place, row.query_id, row.doc_id, row.why, row.runs, row.gain, row.sd, beginning(row.text))
            for place, row in enumerate(self.rows, 1)
        )
        texts = ((row.query_id, row.doc_id, row.query_text, row.text) for row in self.rows)
        return {
            "judgments": Table(header, tuple(judgments)),
            "texts": Table(("query_id", "doc_id", "query_text", "text"), tuple(texts)),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """How much is judged and was learned from, what the leaderboard would gain, and why the plan ends."""
        return {
            "candidates": self.candidates,
            "judged": self.judged,
            "learned_from": self.n_learned,
            "planned": len(self.rows),
            "expected_changes": list(self.changes),
            "stopped": self.stopped,
        }

    def summary(self, qrels: str) -> tuple[str, ...]:
        """How much is judged, how much is to be, and how one says so.

        Args:
            qrels: the name of the file of official judgments.
        """
        drawn, n = sum(row.why == "random" for row in self.rows), len(self.rows)
        return (
            f"{self.judged:,} pooled passages are judged, {self.candidates:,} are not"
            + (f"; gains are learned from {self.n_learned:,}" if self.n_learned else ""),
            f"{n:,} to judge, {n - drawn:,} the most retrieved and {drawn:,} at random: {self.stopped}",
            *([f"to judge: lines `QUERY_ID 0 DOC_ID LABEL` in {qrels}, or `trecexam override`"] if n else []),
        )


@of_documents
def plan_judgments(
    track: Assessment,
    *,
    query_ids: Collection[str] = (),
    per_query: int | None = None,
    budget: int | None = None,
    random_share: float = RANDOM_SHARE,
    stop_below: float = STOP_BELOW,
    seed: int = 0,
    encoder: str | Encoder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JudgmentPlan:
    """The passages from whose judgments most is learned.

    Of each query the most retrieved passages that nobody judged (over runs, 1 / log2(rank + 1) to rank 10,
    0.1 to rank 20), which leaderboards gain by, and a random share, which labels gain by. Nothing has to be
    graded for it. Judged is what has an official judgment, or a person's rating as a whole.

    Args:
        query_ids: only these queries; none for all.
        per_query: passages of each query, with a budget at the most; None: 5, or what the budget allows.
        budget: judgments in all, evenly over queries. The plan ends earlier where the next passage of each
            query is expected to move the leaderboard by less than `stop_below` of tau (`expected_change`);
            without a judgment to learn from it does not.
        random_share: 0..1.
        stop_below: 0 uses the budget up.
        seed: of what is random: the same track and seed give the same plan.
        encoder: as of `learn`.
        progress: called with how many passages are encoded, and of how many.

    Raises:
        TrecexamError: an unknown query, a number out of range, or what `learn_pool` says.
    """
    _check(per_query, budget, random_share, stop_below, seed)
    for query_id in query_ids:
        if query_id not in track.pool:
            hint = did_you_mean(query_id, track.pool, before="; ")
            raise TrecexamError(f"no query '{query_id}' in the bank{hint}", path=track.folder.root)
    pool = {query_id: of for query_id, of in track.pool.items() if not query_ids or query_id in query_ids}
    query_list = list(pool)
    judged = judged_passages(track)
    unjudged = [
        np.array([doc_id not in judged.get(query_id, ()) for doc_id in pooled.doc_ids], np.bool_)
        for query_id, pooled in pool.items()
    ]
    weights = [retrieved_weights(pooled.ranks, len(pooled.doc_ids)) for pooled in pool.values()]
    # With the number of judgments, as a plan after others must not draw of the same queries again.
    n_judged = sum(map(len, judged.values()))
    rounds = judging_rounds(weights, unjudged, random_share, [seed, n_judged])
    learned, notes = _learned(track, encoder, progress)
    candidates = int(sum(of_query.sum() for of_query in unjudged))
    changes: list[float] = []
    if budget is None:
        chosen = list(islice(rounds, per_query or PER_QUERY))
        stopped = f"{plural(per_query or PER_QUERY, 'passage')} of each query"
    else:
        chosen = _within(rounds if per_query is None else islice(rounds, per_query), budget)
        stopped = f"the budget of {plural(budget, 'judgment')} is used up"
        if per_query is not None and len(chosen) == per_query and sum(map(len, chosen)) < budget:
            stopped = f"{plural(per_query, 'passage')} of each query"
        if learned is not None and chosen:
            chosen, changes, stopped = _worth_it(query_list, chosen, learned, stop_below, stopped)
    if sum(map(len, chosen)) == candidates:
        stopped = f"no {'other ' if chosen else ''}passage is left to judge"
    predictions = _predictions(learned)
    rows = []
    for planned in (row for of_round in chosen for row in of_round):
        query_id = query_list[planned.query]
        pooled = pool[query_id]
        doc_id = pooled.doc_ids[planned.passage]
        gain, deviation = predictions.get((query_id, doc_id), (None, None))
        rows.append(
            PlannedJudgment(
                query_id,
                doc_id,
                "random" if planned.random else "most retrieved",
                int((pooled.ranks == planned.passage).any(axis=1).sum()),
                gain,
                deviation,
                track.query_texts.get(query_id, ""),
                track.sheets[query_id].text_of(doc_id) or "",
            )
        )
    plan = JudgmentPlan(
        tuple(rows),
        candidates,
        sum(len(of_query) for of_query in unjudged) - candidates,
        0 if learned is None else learned.learned.n_judgments,
        tuple(changes),
        stopped,
        notes,
    )
    qrels = track.folder.qrels()
    return plan.noted(*notes, *plan.summary("qrels.txt" if qrels is None else qrels.name))


def _check(
    per_query: int | None, budget: int | None, random_share: float, stop_below: float, seed: int
) -> None:
    for name, number in (("per_query", per_query), ("budget", budget)):
        if number is not None and number < 1:
            raise TrecexamError(f"{name} = {number}: at least 1")
    if not 0 <= random_share <= 1:
        raise TrecexamError(f"random_share = {random_share:g}: from 0 to 1")
    for name, value in (("stop_below", stop_below), ("seed", seed)):
        if not value >= 0:
            raise TrecexamError(f"{name} = {value:g}: at least 0")


def judged_passages(track: Assessment) -> dict[str, set[str]]:
    """query_id -> the passages with an official judgment, or a person's rating or judgment as a whole."""
    judged: dict[str, set[str]] = {}
    for row in track.official or ():
        # A negative label is nobody's judgment, as trec_eval reads it.
        if row.relevance >= 0:
            judged.setdefault(row.query_id, set()).add(row.doc_id)
    for people in (track.overrides, track.judgments):
        for query_id, human in people.queries.items():
            if human.passages:
                judged.setdefault(query_id, set()).update(human.passages)
    return judged


def _learned(
    track: Assessment, encoder: str | Encoder | None, progress: Callable[[int, int], None] | None
) -> tuple[LearnedPool | None, tuple[str, ...]]:
    """What is learned from the judgments, and what a reader must know; None where nothing can be."""
    # Encoding takes minutes, so it is not for nothing.
    if not judged_passages(track):
        return None, ("nothing is judged yet, so nothing is learned: the plan is by the runs alone",)
    try:
        official, n_people = people_judgments(track)
        learned = learn_pool(track, encoder=encoder, official=official, progress=progress)
    except TrecexamError as error:
        return None, (f"nothing is learned yet, so the plan is by the runs alone: {error}",)
    rated = f"{plural(n_people, 'unjudged passage')} that people rated as a whole: these ratings count, too"
    return learned, (*learned.notes, *([rated] if n_people else []))


def _predictions(learned: LearnedPool | None) -> dict[tuple[str, str], tuple[float, float]]:
    """(query_id, doc_id) -> gain and standard deviation."""
    return {
        (query.passages.query_id, doc_id): (gain, deviation)
        for query, prediction in (
            () if learned is None else zip(learned.data.queries, learned.predictions, strict=True)
        )
        for doc_id, gain, deviation in zip(
            query.passages.doc_ids, prediction.gains.tolist(), prediction.deviations.tolist(), strict=True
        )
    }


def _within(rounds: Iterator[list[Planned]], budget: int) -> list[list[Planned]]:
    """The first rounds, the last one as far as the budget goes."""
    chosen = []
    for of_round in rounds:
        chosen.append(of_round[:budget])
        budget -= len(of_round)
        if budget <= 0:
            break
    return chosen


def _worth_it(
    query_ids: Sequence[str],
    rounds: Sequence[list[Planned]],
    learned: LearnedPool,
    stop_below: float,
    used_up: str,
) -> tuple[list[list[Planned]], list[float], str]:
    """The rounds before the first that is expected to change too little; all changes; why it ends there."""
    queries = learned.data.queries
    place = {query.passages.query_id: at for at, query in enumerate(queries)}
    planned: list[list[int]] = [[] for _ in queries]
    changes: list[float] = []
    with threadpool_limits(1):
        boards = DrawnLeaderboards(learned.learned, queries)
        before = boards.after(planned)
        for number, of_round in enumerate(rounds):
            for row in of_round:
                if query_ids[row.query] in place:
                    planned[place[query_ids[row.query]]].append(row.passage)
            after = boards.after(planned)
            changes.append(expected_change(before, after))
            before = after
            if changes[-1] < stop_below:
                judged, every = (sum(map(len, part)) for part in (rounds[:number], rounds))
                why = (
                    f"stopped after {judged:,} of {every:,}: the next {len(of_round):,} are expected to move "
                    f"the leaderboard by {changes[-1]:.3f} of tau, less than {stop_below:g}"
                )
                return list(rounds[:number]), changes, why
    last = f"the last {len(rounds[-1]):,} are expected to move the leaderboard by {changes[-1]:.3f} of tau"
    return list(rounds), changes, f"{used_up}; {last}"
