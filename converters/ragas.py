"""ragas samples, JSON Lines: `user_input`, `response`, `retrieved_contexts`, `reference`.

Before ragas 0.2 they were `question`, `answer`, `contexts` and `ground_truth`.
A sample is a response to a query that is known by its text. It is one sentence that cites all contexts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from converters.errors import ConversionError

_OLD_NAMES = {"question": "user_input", "answer": "response", "contexts": "retrieved_contexts"}


def is_sample(row: Mapping[str, Any]) -> bool:
    """Whether a line is a ragas sample with a response."""
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
