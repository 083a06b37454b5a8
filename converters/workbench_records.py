"""Records of a Rubric workbench pool: passages with judgments, ranks and grades.

Each keeps in `rest` what its file says besides, so that a pool that is read and written again loses nothing:
keys that are not known here, and known ones that are null or empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from converters.records import Qrel, RunEntry


@dataclass(frozen=True, slots=True)
class Judgment:
    """A human judgment.

    Attributes:
        query_id: what was judged: the query, or one of its sub-queries ("tqa2:L_0002/T_0020").
        title_id: the query itself.
    """

    query_id: str
    doc_id: str
    relevance: int
    title_id: str
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """A passage's rank in a run.

    Attributes:
        query_id: what was searched for: the query, or one of its sub-queries.
        rank: as the run has it: some systems count from 0, most from 1.
        title_id: the query under which the passage stands.
    """

    run: str
    query_id: str
    doc_id: str
    rank: int
    score: float
    title_id: str
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SelfRating:
    """The rating of one item. `kind` is "question" or "nugget"; `rating` is 0..5, or None."""

    item_id: str
    rating: int | None
    kind: str = "question"
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PooledGrading:
    """A model's grades of a passage with a prompt, by item (`exam_grades`).

    Attributes:
        llm: the model.
        prompt_info: the prompt and how it was used; `prompt_class` is its name.
        options: how the model was run.
        answers: (item id, answer) pairs.
        correct, wrong: item ids; in the workbench an item is correct from a rating of 1 on.
        errors: item id -> why there is no answer.
        relevance_label: the passage's label that follows from the ratings.
    """

    llm: str | None = None
    prompt_info: Mapping[str, Any] | None = None
    answers: tuple[tuple[str, str], ...] = ()
    self_ratings: tuple[SelfRating, ...] = ()
    correct: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    exam_ratio: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Any] = field(default_factory=dict)
    prompt_type: str | None = None
    relevance_label: int | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DirectGrade:
    """A model's grade of a passage's relevance to the query (`grades`); see `PooledGrading`."""

    llm: str | None = None
    prompt_info: Mapping[str, Any] | None = None
    answer: str | None = None
    self_rating: int | None = None
    correct: bool | None = None
    error: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    prompt_type: str | None = None
    relevance_label: int | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PooledPassage:
    """A passage in the pool of a query. `text` is None if missing. `paragraph` is the workbench's mark-up of
    the passage, any JSON.
    """

    query_id: str
    doc_id: str
    text: str | None
    judgments: tuple[Judgment, ...] = ()
    rankings: tuple[Ranking, ...] = ()
    gradings: tuple[PooledGrading, ...] = ()
    direct: tuple[DirectGrade, ...] = ()
    paragraph: Any = None
    rest: Mapping[str, Any] = field(default_factory=dict)


def runs_of(passages: Iterable[PooledPassage]) -> dict[str, list[RunEntry]]:
    """The runs in a pool: name -> entries, query by query, best first.

    Ranks count from 1: those of a run that has a rank 0 are moved up by one. They keep their gaps where the
    pool does not hold every passage of a run. Queries are what the runs searched for, sub-queries too.

    Raises:
        ValueError: a run has two ranks or scores for a passage.
    """
    runs: dict[str, dict[str, dict[str, Ranking]]] = {}
    for passage in passages:
        for ranking in passage.rankings:
            docs = runs.setdefault(ranking.run, {}).setdefault(ranking.query_id, {})
            first_ranking = docs.setdefault(ranking.doc_id, ranking)
            if (first_ranking.rank, first_ranking.score) != (ranking.rank, ranking.score):
                raise ValueError(
                    f"run '{ranking.run}' ranks document '{ranking.doc_id}' twice for query "
                    f"'{ranking.query_id}': {first_ranking.rank} and {ranking.rank}"
                )
    entries = {}
    for run, queries in runs.items():
        from_zero = any(ranking.rank == 0 for docs in queries.values() for ranking in docs.values())
        entries[run] = [
            RunEntry(query_id, ranking.doc_id, ranking.rank + from_zero, ranking.score, run)
            for query_id, docs in queries.items()
            for ranking in sorted(docs.values(), key=lambda ranking: ranking.rank)
        ]
    return entries


def qrels_of(passages: Iterable[PooledPassage]) -> list[Qrel]:
    """The human judgments in a pool, without duplicates; sub-queries count as queries.

    Raises:
        ValueError: a passage has two labels for a query.
    """
    qrels: dict[tuple[str, str], Qrel] = {}
    for passage in passages:
        for judgment in passage.judgments:
            qrel = Qrel(judgment.query_id, judgment.doc_id, judgment.relevance)
            first_qrel = qrels.setdefault((qrel.query_id, qrel.doc_id), qrel)
            if first_qrel != qrel:
                raise ValueError(
                    f"document '{qrel.doc_id}' is judged twice for query '{qrel.query_id}': "
                    f"{first_qrel.relevance} and {qrel.relevance}"
                )
    return list(qrels.values())


def prompt_class(info: Mapping[str, Any] | None) -> str:
    """Return the prompt's name of a grading; "" where the file has none."""
    return str((info or {}).get("prompt_class") or "")
