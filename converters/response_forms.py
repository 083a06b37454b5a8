"""Responses of ragas and of TREC iKAT, as reports.

A ragas sample has `user_input`, `response`, `retrieved_contexts` and `reference`; before ragas 0.2 they were
`question`, `answer`, `contexts` and `ground_truth`. It is a response to a query that is known by its text: a
sentence that cites all contexts. A run of iKAT is a JSON document whose `turns` have ranked `responses`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from converters.errors import ConversionError

_OLD_NAMES = {"question": "user_input", "answer": "response", "contexts": "retrieved_contexts"}


def is_sample(row: Mapping[str, Any]) -> bool:
    """Return True where a line is a ragas sample with a response."""
    return {"user_input", "response"} <= row.keys() or _OLD_NAMES.keys() <= row.keys()


def as_report(path: str | os.PathLike[str], number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """The sample as a report with inline documents and its other fields.

    A context without an id has one that is made of its text: the same text has the same id everywhere.

    Raises:
        ConversionError: several turns, no response, contexts that are not texts, or more ids than contexts.
    """
    if "user_input" not in row:
        row = {**row, **{name: row[old] for old, name in _OLD_NAMES.items()}}
    if not isinstance(row["user_input"], str) or not isinstance(row["response"], str):
        reason = "a ragas sample of several turns, or without a response: give samples of one turn"
        raise ConversionError(path, number, reason)
    contexts = row.get("retrieved_contexts") or []
    if not isinstance(contexts, list) or not all(isinstance(text, str) for text in contexts):
        raise ConversionError(path, number, '"retrieved_contexts" is not a list of texts')
    ids = row.get("retrieved_context_ids") or [f"context-{prompt_id(text)}" for text in contexts]
    if not isinstance(ids, list) or len(ids) != len(contexts):
        raise ConversionError(path, number, '"retrieved_context_ids" has not one id a context')
    ids = [str(doc_id) for doc_id in ids]
    return {
        **row,
        "prompt": row["user_input"],
        "references": ids,
        "responses": [{"text": row["response"], "citations": ids}],
        "documents": {
            doc_id: {"id": doc_id, "text": text} for doc_id, text in zip(ids, contexts, strict=True)
        },
    }


def prompt_id(text: str) -> str:
    """An id for a query with only a text, ignoring surrounding white space."""
    data = text.strip().encode("utf-8", "surrogatepass")
    return hashlib.md5(data, usedforsecurity=False).hexdigest()[:16]


def is_turn(row: Mapping[str, Any]) -> bool:
    """Return True where a response is a turn with its ranked responses."""
    return "turn_id" in row and "responses" in row and "run_name" in row


def as_report_of_turn(path: str | os.PathLike[str], number: int, turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn's first response as a report: it cites the passages that are `used`, or all if none is.

    Raises:
        ConversionError: it has no response, or its passages are not a list of objects with ids.
    """
    responses, turn_id = turn.get("responses"), str(turn.get("turn_id"))
    if not isinstance(responses, list) or not responses or not all(isinstance(r, dict) for r in responses):
        raise ConversionError(path, number, f"turn '{turn_id}' has no responses", "response")
    first = min(responses, key=lambda each: rank if isinstance(rank := each.get("rank"), int) else 0)
    passages = first.get("passage_provenance") or []
    if not isinstance(passages, list) or not all(isinstance(p, dict) and p.get("id") for p in passages):
        reason = f"\"passage_provenance\" of turn '{turn_id}' is not a list of objects with ids"
        raise ConversionError(path, number, reason, "response")
    used = [passage for passage in passages if passage.get("used")] or passages
    return {
        "query_id": turn_id,
        "references": [str(passage["id"]) for passage in passages],
        "responses": [{"text": first.get("text"), "citations": [str(passage["id"]) for passage in used]}],
        "documents": [
            {"id": str(passage["id"]), "text": passage["text"]} for passage in passages if passage.get("text")
        ],
    }
