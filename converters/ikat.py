"""Runs of TREC iKAT: one JSON document whose `turns` have ranked `responses` with their passages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from converters.errors import ConversionError


def is_turn(row: Mapping[str, Any]) -> bool:
    """Whether a response is a turn with its ranked responses."""
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
