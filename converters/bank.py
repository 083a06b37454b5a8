"""Test banks: exam questions and nuggets, in the forms of the Rubric workbench and of nuggetizer.

A line a query: `query_id, query_text, questions|items: [{question_id|nugget_id,
question_text|question|nugget_text, gold_answers?, facet_id?, importance?, weight?, retired?, origin?}]`; or
a line an item, which is easily edited: `query_id, question|nugget, question_id?|nugget_id?, ...`, or as
older banks have it `query_id, qid, question, facet_id, choices, correct, correctKey`; or `qid, nuggets:
[{text, importance}]` (see `converters.nuggets`); or `qid, rubrics: [{criterion, weight}]` (see
`converters.nuggets`); or gold outputs (see `converters.gold`); or nugget banks of AutoJudge and RAGTIME
(see `converters.nugget_banks`); or what another format declares: RAGVAL's questions with their blocks.
Where an id is missing it is `query_id/md5(text)`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from converters.bank_lines import LINE_KEYS, BankLine, Path, declared_forms, scan_bank
from converters.errors import BadLines, ConversionError
from converters.gold import KIND as GOLD
from converters.gold import gold_line, is_gold
from converters.lines import Head, head_object
from converters.nugget_banks import has_nugget_bank, write_ragtime, write_v3
from converters.nuggets import IMPORTANCES, QUERY_KEYS, has_nuggets, has_rubrics, is_assigned
from converters.records import Item, Query
from converters.registry import Format, never

EXAMPLE = '{"query_id": "q1", "questions": [{"question_id": "q1/1", "question_text": "What ...?"}]}'


def read_bank(path: Path, on_error: Callable[[ConversionError], None] | None = None) -> Iterator[Item]:
    """Reads the items of a bank, in file order.

    Published banks hold questions of nothing but blanks, which their generator left behind. Nobody can
    answer them: they are left out, and so is a nugget with the id and text of an earlier one. Lines of gold
    outputs that cannot be read, and second ones for a query, are left out; so are queries with empty lists of
    nuggets.

    Args:
        on_error: takes an error for each item left out; None logs how many there were, as warnings.

    Raises:
        ConversionError: with the line: bad JSON, no query id, no items, an item without text, the same
            item id twice, an empty file.
    """
    return distinct_items(path, scan_bank(path), on_error)


def distinct_items(
    path: Path, lines: Iterable[BankLine], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[Item]:
    """The items of a bank's lines, checked for duplicates like `read_bank`.

    Raises:
        ConversionError: as `read_bank`.
    """
    lines_of_ids: dict[str, int] = {}
    lines_of_texts: dict[tuple[str, ...], int] = {}
    blank: list[ConversionError] = []
    twice: list[ConversionError] = []
    unread: list[ConversionError] = []
    without = 0
    with BadLines() as bad:
        for line in lines:
            number = line.number or 0
            for item in line.items:
                if not item.text.strip():
                    reason = f"an item of query '{item.query_id}' is blank: left out"
                    blank.append(ConversionError(path, number, reason))
                    continue
                noun = line.form.noun if line.form else ""
                if noun:
                    key = (item.query_id, item.text, item.kind, item.item_id, *item.gold_answers)
                    if key in lines_of_texts:
                        # Once for all items that are judged together.
                        if not line.whole or item is line.items[0]:
                            twice.append(_text_twice(path, line, item, noun, lines_of_texts[key]))
                        continue
                    lines_of_texts[key] = number
                if item.item_id in lines_of_ids:
                    error = _id_twice(path, line, item, lines_of_ids[item.item_id])
                    if line.forgiving:
                        twice.append(error)
                    else:
                        bad.add(error)
                    continue
                lines_of_ids[item.item_id] = number
                if not bad:
                    yield item
            if line.error is not None:
                if not line.forgiving:
                    bad.add(line.error)
                    continue
                unread.append(line.error)
                without += line.nuggets
    if without and not (lines_of_ids or blank):
        raise ConversionError(path, None, "no items: each query's list of nuggets is empty")
    _report_left_out((blank, twice, unread), on_error)


def _text_twice(path: Path, line: BankLine, item: Item, noun: str, first: int) -> ConversionError:
    reason = f"{noun} '{item.text[:80]}' of query '{item.query_id}' occurs twice"
    return ConversionError(path, line.number or 0, f"{reason} (first on line {first}); the first one counts")


def _id_twice(path: Path, line: BankLine, item: Item, first: int) -> ConversionError:
    if line.forgiving:
        reason = f"query '{item.query_id}' occurs twice (first on line {first}); the first one counts"
    else:
        reason = f"item id '{item.item_id}' occurs twice (first on line {first}); ids must differ"
    return ConversionError(path, line.number or 0, reason)


def _report_left_out(
    kinds: Iterable[list[ConversionError]], on_error: Callable[[ConversionError], None] | None
) -> None:
    """Passes errors to `on_error`; without it logs the first of each kind, and their number."""
    for errors in kinds:
        if on_error is not None:
            for error in errors:
                on_error(error)
        elif errors:
            logging.getLogger("converters").warning("%s (%d such lines)", errors[0], len(errors))


def read_bank_queries(path: Path) -> Iterator[Query]:
    """The queries with texts in a bank, without duplicates.

    Raises:
        ConversionError: as `read_bank`.
    """
    seen: set[str] = set()
    for line in scan_bank(path):
        if line.error is not None and not line.query_id and not line.forgiving:
            raise line.error
        if line.query_text.strip() and line.query_id not in seen:
            seen.add(line.query_id)
            yield Query(line.query_id, line.query_text)


def write_bank(items: Iterable[Item], file: BinaryIO) -> None:
    """Writes a line per query, in order of first appearance, and another for its gold outputs.

    Raises:
        ValueError: an item has an invalid importance, or a kind that is not written.
    """
    import orjson

    read_alone = {kind for form in declared_forms() for kind in form.kinds}
    by_query: dict[str, list[Item]] = {}
    for item in items:
        if item.kind in read_alone:
            raise ValueError(f"an item of the kind {item.kind} is not written: copy the file it is in")
        if item.importance not in IMPORTANCES:
            raise ValueError(
                f"the importance of item {item.item_id!r} is neither vital nor okay: {item.importance!r}"
            )
        by_query.setdefault(item.query_id, []).append(item)
    for query_id, group in by_query.items():
        rows = [
            {
                f"{item.kind}_id": item.item_id,
                f"{item.kind}_text": item.text,
                "gold_answers": list(item.gold_answers),
                "facet_id": item.facet_id,
                "choices": [list(choice) for choice in item.choices],
                "importance": item.importance,
                **({"retired": True} if item.retired else {}),
                **({"origin": item.origin.row} if item.origin else {}),
                **({} if item.weight is None else {"weight": item.weight}),
                **({"details": orjson.loads(item.details)} if item.details else {}),
            }
            for item in group
            if item.kind != GOLD
        ]
        if rows:
            file.write(orjson.dumps({"query_id": query_id, "items": rows}) + b"\n")
        for item in group:
            if item.kind == GOLD:
                file.write(orjson.dumps(gold_line(item)) + b"\n")


def _sniff(start: Head) -> bool:
    row = head_object(start)
    if row is None:
        return False
    if has_nugget_bank(row):
        return True
    if has_nuggets(row):
        return any(key in row for key in (*QUERY_KEYS, "query")) and not is_assigned(row)
    if has_rubrics(row):
        return any(key in row for key in QUERY_KEYS)
    if is_gold(row) or any(form.claims(row) for form in declared_forms()):
        return True
    return "query_id" in row and any(key in row for key in LINE_KEYS)


FORMAT = Format(
    "bank",
    (".jsonl",),
    "test bank: questions, nuggets, gold outputs; TREC RAG 2025's nuggets; research rubrics",
    EXAMPLE,
    _sniff,
    read_bank,
    write_bank,
    told_by='"questions", "nuggets", "rubrics", "items" or "outputs" of a query',
    written_as="questions, nuggets, gold outputs",
)
V3 = Format(
    "nuggets-v3",
    (),
    "test bank as AutoJudge takes it: nugget banks, v3",
    '{"query_id": "q1", "format_version": "v3", "nugget_bank": {"What ...?": {"question": "What ...?", '
    '"answers": {"heat": {"answer": "heat"}}, "importance": "vital", "aggregator_type": "OR"}}}',
    never,
    read_bank,
    write_v3,
    told_by="accepted where it is named: by its content it is `bank`",
)
RAGTIME = Format(
    "nuggets-ragtime",
    (),
    "test bank as RAGTIME 2026 takes it",
    '{"metadata": {"topic_id": "q1"}, "nugget_bank": [{"question": "What ...?", "aggregator_type": "OR", '
    '"answers": [{"answer": "heat", "references": ["d1"]}]}]}',
    never,
    read_bank,
    write_ragtime,
    told_by="accepted where it is named: by its content it is `bank`",
)
