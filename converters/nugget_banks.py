"""Nugget banks of AutoJudge (v3) and RAGTIME, as lines of test banks, one per topic.

    {"query_id": ..., "title_query": ..., "format_version": "v3",
     "nugget_bank": {question: {"question", "question_id", "answers": {text: {"answer", "references"}},
                                "importance", "aggregator_type"}},
     "claim_bank": {claim: {"claim", "claim_id", ...}}}
    {"metadata": {"topic_id": ...}, "nugget_bank": [{"question", "aggregator_type", "importance", "metadata",
     "answers": [{"answer", "references", "metadata"}]}]}
    {"metadata": {"topic_id": ...}, "nugget_bank": {question: ["OR", answer, {answer: [doc_id, ...]}]}}

The second one is RAGTIME 2026's, and the one that is written. The last one is read only. It may stand without
what is around it: then the file's name has the topic's id, behind "bank." and
"nuggets_". Questions are items with their answers as the key, claims are nuggets. What an `Item` has no field
for (AND or OR, references, creators, sub-nuggets, other importances) stays in its `details`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.fields import a_details, a_flag, a_text, a_weight, an_id, an_origin, made_id
from converters.records import Item, Query

#: The banks of a topic, the kind of their items, and the key that these have their text under.
BANKS = {"nugget_bank": ("question", "question"), "claim_bank": ("nugget", "claim")}
_QUERY_KEYS = ("query_id", "topic_id", "request_id", "narrative_id")
_OPERATORS = ("AND", "OR")
#: What RAGTIME's form has of a topic, a question and an answer, or what follows from it.
_RAGTIME_TOPIC = (*_QUERY_KEYS, "format_version", "metadata")
_RAGTIME_QUESTION = (
    *("question", "question_id", "query_id"),
    *("aggregator_type", "answers", "importance", "metadata"),
)
_RAGTIME_ANSWER = ("answer", "references", "metadata")
#: Where v3 has what only our banks say of an item.
_OURS = "trecexam"
_STEM = re.compile(r"(?:bank[.])?(?:nuggets?[-_.])?(.+?)(?:[.]jsonl?)?(?:[.]gz)?")
_Path = str | os.PathLike[str]


def is_nugget_bank(row: Mapping[str, Any]) -> bool:
    """Return True where a line is one of these."""
    return any(isinstance(row.get(key), dict | list) for key in BANKS) or _is_bare(row)


def has_nugget_bank(row: Mapping[str, Any]) -> bool:
    """Like `is_nugget_bank`, for a line that may be cut (values are None)."""
    return any(key in row for key in BANKS) or _is_bare(row)


def _is_bare(row: Mapping[str, Any]) -> bool:
    return bool(row) and all(map(_is_listed, row.values()))


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and value[0] in _OPERATORS


def nugget_bank_query(path: _Path, number: int, row: Mapping[str, Any]) -> tuple[str, str]:
    """The topic's id and its title ("" if missing).

    Raises:
        ConversionError: there is no id.
    """
    if _is_bare(row):
        match = _STEM.fullmatch(Path(path).name)
        return (match[1] if match else Path(path).stem), ""
    metadata = row.get("metadata")
    fields = {**(metadata if isinstance(metadata, dict) else {}), **row}
    title = row.get("title_query")
    return an_id(path, number, fields, _QUERY_KEYS), title if isinstance(title, str) else ""


def nugget_bank_items(path: _Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The questions and claims of a line.

    Raises:
        ConversionError: no topic, no items, or an item without a text or with invalid answers.
    """
    query_id, _ = nugget_bank_query(path, number, row)
    banks = {"nugget_bank": row} if _is_bare(row) else row
    around = {} if _is_bare(row) else {key: value for key, value in row.items() if key not in BANKS}
    has_nuggets = False
    for bank, (kind, text_key) in BANKS.items():
        for text, entry in _entries(banks.get(bank)):
            has_nuggets = True
            yield _item(path, number, query_id, kind, text_key, text, entry, around)
    if not has_nuggets:
        raise ConversionError(path, number, f"query '{query_id}' has no nuggets")


def _entries(listed: Any) -> Iterable[tuple[str | None, Any]]:
    """The entries of an object or of a list, which has no keys."""
    if isinstance(listed, dict):
        return listed.items()
    return [(None, entry) for entry in listed] if isinstance(listed, list) else ()


def _item(
    path: _Path,
    number: int,
    query_id: str,
    kind: str,
    text_key: str,
    text: str | None,
    entry: Any,
    around: Mapping[str, Any],
) -> Item:
    what = f"a {text_key} of query '{query_id}'"
    if _is_listed(entry):
        entry = {text_key: text, "aggregator_type": entry[0], "answers": _operands(path, number, entry, what)}
    if not isinstance(entry, dict):
        raise ConversionError(
            path, number, f"{what} is neither an object nor a list that begins with AND, OR"
        )
    fields = {text_key: text, **entry} if text is not None else entry
    text = a_text(path, number, fields, (text_key,), what, blank=True)
    id_key, made = f"{text_key}_id", made_id(query_id, text)
    # The id that the framework makes is of the text alone, and may be there of another topic, too.
    stated_id = None if entry.get(id_key) is None else an_id(path, number, entry, (id_key,))
    metadata = entry.get("metadata")
    ours = metadata.get(_OURS) if isinstance(metadata, dict) else None
    ours = ours if isinstance(ours, dict) else {}
    facet = ours.get("facet_id")
    choices = ours.get("choices")
    pairs = [tuple(each) for each in choices or () if isinstance(each, list)]
    return Item(
        query_id,
        made if stated_id is None or made.endswith(f"/{stated_id}") else stated_id,
        text,
        kind,
        tuple(_answers(path, number, entry.get("answers"), what)),
        facet if isinstance(facet, str) else None,
        tuple(each for each in pairs if len(each) == 2 and all(isinstance(part, str) for part in each)),
        importance=_importance(entry),
        retired=a_flag(path, number, ours, "retired"),
        origin=an_origin(path, number, ours),
        weight=a_weight(path, number, ours, what),
        details=a_details({"entry": entry, "bank": around}),
    )


def _importance(entry: Mapping[str, Any]) -> str:
    """The importance in TREC's words; "" for other values, which stay in the details."""
    value = entry.get("importance")
    word = value.strip().lower() if isinstance(value, str) else ""
    return word if word in ("vital", "okay") else ""


def _operands(path: _Path, number: int, listed: Sequence[Any], what: str) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    for operand in listed[1:]:
        if isinstance(operand, str):
            answers.append({"answer": operand})
        elif isinstance(operand, dict):
            answers += [{"answer": text, "references": references} for text, references in operand.items()]
        else:
            raise ConversionError(path, number, f"an answer to {what} is not text: {operand!r}"[:200])
    return answers


def _answers(path: _Path, number: int, listed: Any, what: str) -> Iterator[str]:
    if not isinstance(listed, dict | list | None):
        raise ConversionError(path, number, f"the answers to {what} are neither a list nor an object")
    for key, entry in _entries(listed):
        text = entry.get("answer", key) if isinstance(entry, dict) else entry if key is None else key
        if not isinstance(text, str):
            raise ConversionError(path, number, f"an answer to {what} is not text: {text!r}"[:200])
        yield text


def with_queries(items: Iterable[Item], queries: Iterable[Query]) -> Iterator[Item]:
    """The items with the texts of their queries."""
    texts = {query.query_id: query.text for query in queries}
    return (item._replace(query_text=texts.get(item.query_id, "")) for item in items)


def write_v3(items: Iterable[Item], file: BinaryIO) -> None:
    """Writes a line per topic in the format v3, with all data of the items and their `details`.

    Raises:
        ValueError: a topic has the same text twice, which v3 has as a key; or an item is a gold output.
    """
    for query_id, group in _by_query(items).items():
        title = {"title_query": group[0].query_text} if group[0].query_text else {}
        banks: dict[str, dict[str, Any]] = {}
        for item in group:
            bank, text_key = _bank_of(item)
            entry = _v3_entry(item, text_key)
            if banks.setdefault(bank, {}).setdefault(item.text, entry) is not entry:
                raise ValueError(f"query {query_id!r} has the {text_key} {item.text[:80]!r} twice")
        named = {"query_id": query_id, "format_version": "v3"}
        row = {**named, **title, **_around(group[0]), **named, **banks}
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def write_ragtime(items: Iterable[Item], file: BinaryIO) -> None:
    """Writes RAGTIME 2026's format, a line per topic, for `autojudge_base.nugget_data`.

    What it has no place for is not written; one warning names these fields and how often each was lost.

    Raises:
        ValueError: an item is no question, or its answers are joined by something other than AND and OR.
    """
    lost: Counter[str] = Counter()
    for query_id, group in _by_query(items).items():
        around = _around(group[0])
        lost.update(_filled(around, "topic", _RAGTIME_TOPIC))
        lost["topic's title_query"] += bool(group[0].query_text and not around.get("title_query"))
        entries = [_ragtime_entry(item, lost) for item in group]
        metadata = {**(around.get("metadata") or {}), "topic_id": query_id}
        row = {"metadata": metadata, "nugget_bank": entries}
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    if named := ", ".join(f"{name} ({n:,})" for name, n in sorted(lost.items()) if n):
        logging.getLogger("converters").warning(
            "left out what RAGTIME's format cannot hold: %s; to keep it, write nuggets-v3", named
        )


def _ragtime_entry(item: Item, lost: Counter[str]) -> dict[str, Any]:
    """A question in RAGTIME's format; `lost` counts values that it cannot hold."""
    bank, text_key = _bank_of(item)
    if bank != "nugget_bank":
        raise ValueError(
            f"item {item.item_id!r} is a {text_key}, and RAGTIME's format holds only questions: write "
            f"nuggets-v3"
        )
    said, entry = _details(item).get("entry", {}), _v3_entry(item, text_key)
    operator = entry.get("aggregator_type")
    if operator not in (*_OPERATORS, "Default", None):
        raise ValueError(
            f"item {item.item_id!r} joins its answers by {operator!r}, and RAGTIME's format holds only AND "
            f"and OR: write nuggets-v3"
        )
    lost.update(_filled(said, "question", _RAGTIME_QUESTION))
    lost["question's question_id"] += item.item_id != made_id(item.query_id, item.text)
    answers = list(entry.get("answers", {}).values())
    for answer in answers:
        lost.update(_filled(answer, "answer", _RAGTIME_ANSWER))
    fields = {
        "aggregator_type": operator if operator in _OPERATORS else None,
        "answers": [
            {key: answer[key] for key in _RAGTIME_ANSWER if answer.get(key) is not None} for answer in answers
        ],
        "importance": entry.get("importance"),
        "metadata": entry.get("metadata"),
    }
    return {"question": item.text, **{key: value for key, value in fields.items() if value not in (None, [])}}


def _filled(fields: Mapping[str, Any], of: str, but: Iterable[str]) -> list[str]:
    """The non-empty fields, except these."""
    return [
        f"{of}'s {key}" for key, value in fields.items() if key not in but and value not in (None, [], {})
    ]


def _by_query(items: Iterable[Item]) -> dict[str, list[Item]]:
    by_query: dict[str, list[Item]] = {}
    for item in items:
        by_query.setdefault(item.query_id, []).append(item)
    return by_query


def _bank_of(item: Item) -> tuple[str, str]:
    for bank, (kind, text_key) in BANKS.items():
        if item.kind == kind:
            return bank, text_key
    raise ValueError(f"item {item.item_id!r} is of the kind {item.kind}, which a nugget bank cannot hold")


def _details(item: Item) -> dict[str, Any]:
    details: dict[str, Any] = json.loads(item.details) if item.details else {}
    return details


def _around(item: Item) -> dict[str, Any]:
    around: dict[str, Any] = _details(item).get("bank", {})
    return around


def _v3_entry(item: Item, text_key: str) -> dict[str, Any]:
    """An item in the format v3: the fields of its file, updated from the item."""
    entry: dict[str, Any] = _details(item).get("entry", {})
    id_key = f"{text_key}_id"
    written = {"query_id": item.query_id, **entry, text_key: item.text}
    if entry.get(id_key) is None:
        written[id_key] = item.item_id
    pairs = _entries(entry.get("answers"))
    answer_entries = {
        each.get("answer", key): {"answer": key, **each} for key, each in pairs if isinstance(each, dict)
    }
    answers = {text: answer_entries.get(text, {"answer": text}) for text in item.gold_answers}
    if answers or "answers" in entry:
        written["answers"] = answers
    if item.importance != _importance(entry):
        written["importance"] = item.importance or None
    ours = {
        **({} if item.facet_id is None else {"facet_id": item.facet_id}),
        **({"choices": [list(each) for each in item.choices]} if item.choices else {}),
        **({"retired": True} if item.retired else {}),
        **({"origin": item.origin.row} if item.origin else {}),
        **({} if item.weight is None else {"weight": item.weight}),
    }
    if item.origin is not None and "creator" not in entry:
        written["creator"] = [
            {
                "is_human": False,
                "llm_model": item.origin.model,
                "llm_prompt_strategy": item.origin.prompt,
                "creation_date": item.origin.time,
            }
        ]
    metadata = {**(entry.get("metadata") or {}), _OURS: ours}
    if ours:
        written["metadata"] = metadata
    return written
