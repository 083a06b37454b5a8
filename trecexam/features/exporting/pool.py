"""A track's pool in the records of the Rubric workbench: texts, ranks, judgments, and the grader's grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from converters.workbench_records import (
    DirectGrade,
    Judgment,
    PooledGrading,
    PooledPassage,
    Ranking,
    SelfRating,
)
from trecexam.bank.model import QUERY
from trecexam.grades.graded_track import GradedTrack

Row = Mapping[str, Any]
#: (query id, document id)
Place = tuple[str, str]


def pooled_passages(track: GradedTrack) -> Iterator[PooledPassage]:
    """Yield the passages of a loaded track's pool, query by query, in the pool's order."""
    docs = {query_id: sheet.doc_ids for query_id, sheet in track.sheets.items()}
    passage_keys = {(query_id, doc_id) for query_id, doc_ids in docs.items() for doc_id in doc_ids}
    rankings: dict[Place, list[Ranking]] = {}
    for run in track.runs.values():
        for entry in run:
            key = entry.query_id, entry.doc_id
            if key in passage_keys:
                rank = Ranking(run.name, *key, entry.rank, entry.score, entry.query_id)
                rankings.setdefault(key, []).append(rank)
    judgments: dict[Place, list[Judgment]] = {}
    for qrel in track.official or ():
        judgment = Judgment(qrel.query_id, qrel.doc_id, qrel.relevance, qrel.query_id)
        judgments.setdefault((qrel.query_id, qrel.doc_id), []).append(judgment)
    kinds = {item.item_id: item.kind for items in track.bank.items.values() for item in items}
    rows: dict[Place, list[Row]] = {}
    for row in track.grade_rows():
        rows.setdefault((row["query_id"], row["doc_id"]), []).append(row)
    for query_id, doc_ids in docs.items():
        for doc_id in doc_ids:
            key = query_id, doc_id
            # Grades of a passage: on the query, and by item for each prompt.
            direct, prompts = [], dict[tuple[str, str, str], list[Row]]()
            for grade in rows.get(key, ()):
                kind = kinds[grade["item_id"]]
                if kind == QUERY:
                    direct.append(_direct(grade))
                else:
                    prompts.setdefault((grade["model"], grade["prompt"], kind), []).append(grade)
            yield PooledPassage(
                *key,
                track.texts.get(doc_id, ""),
                tuple(judgments.get(key, ())),
                tuple(rankings.get(key, ())),
                tuple(_grading(*prompt, prompt_rows) for prompt, prompt_rows in prompts.items()),
                tuple(direct),
                {},
            )


def _direct(row: Row) -> DirectGrade:
    failed = row["status"] == "error"
    return DirectGrade(
        llm=row["model"],
        prompt_info=_prompt_info(row["prompt"]),
        answer="" if failed else row["answer"],
        self_rating=row["rating"],
        correct=bool(row["rating"]),
        error=row["answer"] if failed else None,
        prompt_type="direct_grading",
        relevance_label=row["rating"],
    )


def _grading(model: str, prompt: str, kind: str, rows: Sequence[Row]) -> PooledGrading:
    answered = [row for row in rows if row["status"] != "error"]
    ratings = {row["item_id"]: row["rating"] for row in answered if row["rating"] is not None}
    # In the workbench, an item is correct from a rating of 1 on.
    correct = tuple(row["item_id"] for row in answered if row["rating"])
    return PooledGrading(
        llm=model,
        prompt_info=_prompt_info(prompt),
        answers=tuple((row["item_id"], row["answer"]) for row in answered),
        self_ratings=tuple(SelfRating(item_id, rating, kind) for item_id, rating in ratings.items()),
        correct=correct,
        wrong=tuple(row["item_id"] for row in answered if not row["rating"]),
        exam_ratio=len(correct) / len(rows),
        errors={
            row["item_id"]: {
                "response": "",
                "prompt": "",
                "failure_reason": row["answer"],
                "caught_exception": None,
            }
            for row in rows
            if row["status"] == "error"
        },
        prompt_type=kind,
        relevance_label=max(ratings.values(), default=None),
    )


def _prompt_info(prompt: str) -> dict[str, Any]:
    # The workbench's filters treat a missing prompt class as any class.
    return {**({"prompt_class": prompt} if prompt else {}), "is_self_rated": True}
