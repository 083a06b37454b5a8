"""Nuggets of nuggetizer and TREC RAG: a line per query, or per answer with assignments.

`{"qid", "nuggets": [{"text", "importance"}]}` is a bank. Where its nuggets have an "assignment" as well, the
line says which of them one passage or answer holds: those are grades.

Research rubrics are their kin: `{"qid", "rubrics": [{"criterion", "weight"}]}`, with `query` or without. A
criterion is a nugget with a weight, negative where it counts against an answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from converters.errors import ConversionError
from converters.fields import a_flag, a_text, a_weight, an_id, made_id
from converters.records import Item, RecordedGrade, Response, Sentence
from converters.segment import response_id

QUERY_KEYS = ("query_id", "qid", "topic_id")
ASSIGNMENT_KEYS = ("assignment", "label")
#: The rating of each assignment. `failed`, nuggetizer's word for a missing answer, has none.
RATINGS = {"support": 5, "partial_support": 3, "not_support": 0, "failed": None}
IMPORTANCES = ("vital", "okay", "")
#: nuggetizer's word where its model said nothing of a nugget's importance.
_NOT_SAID = "failed"
#: Which keys hold a nugget's id and text; the first one that has a value counts.
ITEM_KEYS = ("nugget_id", "item_id", "id")
TEXT_KEYS = ("text", "nugget_text", "nugget")
_DOC_KEYS = ("docid", "doc_id", "segment_id", "passage_id")
_DOC_TEXT_KEYS = ("candidate_text", "answer_text", "passage", "segment")
Path = str | os.PathLike[str]


def has_nuggets(row: Mapping[str, Any]) -> bool:
    """Return True where a line has nuggets in this format."""
    return "nuggets" in row and "questions" not in row and "items" not in row


def is_without_nuggets(row: Mapping[str, Any]) -> bool:
    """Return True where a line has an empty list of nuggets."""
    return row.get("nuggets") == []


def is_assigned(row: Mapping[str, Any]) -> bool:
    """Return True if a line has assignments; for a cut line (values are None), whether it names an answer."""
    listed = row.get("nuggets")
    if listed is None:
        return "nuggets" in row and any(key in row for key in (*_DOC_KEYS, *_DOC_TEXT_KEYS, "run_id"))
    return isinstance(listed, list) and any(
        isinstance(entry, dict) and any(key in entry for key in ASSIGNMENT_KEYS) for entry in listed
    )


def query_of(path: Path, number: int, row: Mapping[str, Any]) -> tuple[str, str]:
    """The query's id and its text ("" if missing); `query` may be an object with both.

    Raises:
        ConversionError: there is no id.
    """
    query = row.get("query")
    if isinstance(query, dict):
        row = {**query, **row, "query": query.get("text")}
    text = next((row[key] for key in ("query", "query_text") if isinstance(row.get(key), str)), "")
    return an_id(path, number, row, QUERY_KEYS), text


def nugget_items(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The nuggets of a line; a text in `mapped_sub_narrative` is the facet.

    Raises:
        ConversionError: no query, no nuggets, a nugget without text, an unknown importance.
    """
    query_id, _ = query_of(path, number, row)
    if is_assigned(row):
        raise ConversionError(
            path,
            number,
            "these nuggets have assignments: they are grades, not a bank; name the file with `recorded` in "
            "[grader], or give the nuggets alone",
        )
    for entry, item_id, text in listed_items(path, number, row, query_id):
        facet = entry.get("mapped_sub_narrative")
        yield Item(
            query_id,
            item_id,
            text,
            "nugget",
            facet_id=facet if isinstance(facet, str) and facet.strip() else None,
            importance=importance_of(path, number, entry, query_id),
            retired=a_flag(path, number, entry, "retired"),
            weight=a_weight(path, number, entry, f"a nugget of query '{query_id}'"),
        )


def assigned_grades(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[RecordedGrade]:
    """The grades of a line: full support is the rating 5, partial support 3, none 0, `failed` no rating.

    The document is the passage that was judged (`docid`, `segment_id`); of an answer, which has no such id,
    it is `run_id/query_id`, with white space, "/" and "%" in either percent-encoded. The text is
    `candidate_text` or `answer_text`.

    Raises:
        ConversionError: no query, no document or run, a nugget without text or assignment.
    """
    query_id, _ = query_of(path, number, row)
    doc_id = _doc_id(path, number, row, query_id)
    text = next((row[key] for key in _DOC_TEXT_KEYS if isinstance(row.get(key), str)), "")
    model = row.get("model")
    for entry, item_id, nugget in listed_items(path, number, row, query_id):
        if not nugget.strip():
            continue
        assignment = next((entry[key] for key in ASSIGNMENT_KEYS if entry.get(key) is not None), None)
        label = assignment.strip().lower() if isinstance(assignment, str) else None
        if label not in RATINGS:
            what = "no assignment" if assignment is None else f"the assignment {str(assignment)[:40]!r}"
            raise ConversionError(
                path,
                number,
                f"a nugget of query '{query_id}' has {what}; assignments are {', '.join(RATINGS)}",
            )
        yield RecordedGrade(
            query_id,
            doc_id,
            item_id,
            RATINGS[label],
            str(assignment),
            model if isinstance(model, str) else "",
            "",
            text,
        )


def assigned_answer(path: Path, number: int, row: Mapping[str, Any]) -> tuple[str, Response] | None:
    """The answer in a line of assignments; its id is the document id of the grades.

    Returns:
        (document id, the answer as one sentence); None where a retrieved passage was judged.

    Raises:
        ConversionError: no query or run.
    """
    if any(row.get(key) is not None for key in _DOC_KEYS):
        return None
    query_id, query_text = query_of(path, number, row)
    doc_id = _doc_id(path, number, row, query_id)
    text = row.get("answer_text")
    sentences = (Sentence(text),) if isinstance(text, str) and text.strip() else ()
    return doc_id, Response(query_id, an_id(path, number, row, ("run_id",)), sentences, query_text)


def importance_of(path: Path, number: int, entry: Mapping[str, Any], query_id: str) -> str:
    """The item's importance; "" if missing or if the model failed.

    Raises:
        ConversionError: it says something else than vital or okay.
    """
    value = entry.get("importance")
    importance = "" if value is None else value.strip().lower() if isinstance(value, str) else None
    importance = "" if importance == _NOT_SAID else importance
    if importance not in IMPORTANCES:
        raise ConversionError(
            path,
            number,
            f"the importance of an item of query '{query_id}' is neither vital nor okay: {str(value)[:40]!r}",
        )
    return importance


def listed_items(
    path: Path,
    number: int,
    row: Mapping[str, Any],
    query_id: str,
    kind: str = "nugget",
    text_keys: Sequence[str] = TEXT_KEYS,
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yields each item of a line with its id and text.

    Where it has no id, one is made of its text, with a number where an earlier one of the line has that id:
    nuggetizer counts two nuggets with the same text as two, in banks and assignments alike.

    Args:
        kind: what an item is called; the line lists them under its plural.
        text_keys: where an item's text stands; the first one that has a value counts.

    Raises:
        ConversionError: there is none, or one without a text.
    """
    listed = row.get(f"{kind}s")
    if not isinstance(listed, list) or not listed:
        raise ConversionError(path, number, f"query '{query_id}' has no {kind}s")
    used_ids: set[str] = set()
    for entry in listed:
        if not isinstance(entry, dict):
            raise ConversionError(path, number, f"a {kind} of query '{query_id}' is not a JSON object")
        text = a_text(path, number, entry, text_keys, f"a {kind} of query '{query_id}'", blank=True)
        if all(entry.get(key) is None for key in ITEM_KEYS):
            made = made_id(query_id, text)
            numbered = (f"{made}-{suffix}" for suffix in range(2, len(listed) + 2))
            item_id = next(each for each in chain((made,), numbered) if each not in used_ids)
        else:
            item_id = an_id(path, number, entry, ITEM_KEYS)
        used_ids.add(item_id)
        yield entry, item_id, text


def _doc_id(path: Path, number: int, row: Mapping[str, Any], query_id: str) -> str:
    if any(row.get(key) is not None for key in _DOC_KEYS):
        return an_id(path, number, row, _DOC_KEYS)
    if row.get("run_id") is None:
        raise ConversionError(
            path, number, 'no "docid" or "segment_id", and no "run_id": whose answer is it?'
        )
    return response_id(an_id(path, number, row, ("run_id",)), query_id)


CRITERION_KEYS = ("criterion", "text")


def has_rubrics(row: Mapping[str, Any]) -> bool:
    """Return True where a line is one of these."""
    return "rubrics" in row and not any(key in row for key in ("questions", "items", "nuggets"))


def rubric_items(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The criteria of a line, each with its weight.

    Raises:
        ConversionError: no query, no criteria, one without a text, or one whose weight is missing, no number
            or 0.
    """
    query_id, _ = query_of(path, number, row)
    for entry, item_id, text in listed_items(path, number, row, query_id, "rubric", CRITERION_KEYS):
        what = f"a rubric of query '{query_id}'"
        weight = a_weight(path, number, entry, what)
        if weight is None:
            raise ConversionError(
                path, number, f'{what} has no weight: write "weight": a number that is not 0'
            )
        retired = a_flag(path, number, entry, "retired")
        yield Item(query_id, item_id, text, "nugget", retired=retired, weight=weight)
