"""Parses lines of test banks: their form, items and errors."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from converters.errors import ConversionError
from converters.fields import a_details, a_flag, a_text, a_weight, an_id, an_origin, made_id
from converters.gold import gold_items, gold_query, is_gold
from converters.lines import (
    Head,
    first_object,
    head,
    is_json_document,
    iter_filled,
    iter_objects,
    parse_object,
)
from converters.nugget_banks import is_nugget_bank, nugget_bank_items, nugget_bank_query
from converters.nuggets import (
    has_nuggets,
    has_rubrics,
    importance_of,
    is_without_nuggets,
    nugget_items,
    query_of,
    rubric_items,
)
from converters.records import Item
from converters.registry import LineForm, formats_of_others

#: By kind, which keys hold an item's id and text; the first one that has a value counts.
ID_KEYS = {"question": ("question_id", "item_id", "id"), "nugget": ("nugget_id", "item_id", "id")}
TEXT_KEYS = {"question": ("question_text", "question", "text"), "nugget": ("nugget_text", "text")}
#: The same of a line that holds one item alone.
SINGLE_ID_KEYS = {"question": ("qid", "question_id"), "nugget": ("nugget_id",)}
SINGLE_TEXT_KEYS = {"question": ("question", "question_text"), "nugget": ("nugget", "nugget_text")}
#: What a line of questions or nuggets has, beside a query's id.
LINE_KEYS = ("questions", "items", "question", "question_text", "nugget", "nugget_text")
Path = str | os.PathLike[str]


NUGGETS = LineForm(has_nuggets, query_of, nugget_items, noun="nugget")
NUGGET_BANKS = LineForm(is_nugget_bank, nugget_bank_query, nugget_bank_items, noun="nugget")
RUBRICS = LineForm(has_rubrics, query_of, rubric_items)
GOLDEN = LineForm(is_gold, gold_query, gold_items, forgiving=True)


@cache
def declared_forms() -> tuple[LineForm, ...]:
    """The forms of lines that formats declare."""
    return tuple(each.bank_lines for each in formats_of_others() if each.bank_lines is not None)


def _form(row: Mapping[str, Any]) -> LineForm | None:
    forms = (NUGGETS, NUGGET_BANKS, RUBRICS, *declared_forms(), GOLDEN)
    return next((form for form in forms if form.claims(row)), None)


def _of_gold(path: Path) -> bool:
    """Return True where a file holds gold outputs, according to the first line with a recognizable form."""
    with contextlib.suppress(ConversionError):
        start = head(path)
        for line in start.lines:
            row = first_object(Head(start.name, (line,))) or {}
            if (form := _form(row)) is not None:
                return form.forgiving
            if any(key in row for key in LINE_KEYS):
                return False
    return False


class BankLine(NamedTuple):
    """A line of a bank, with its items and errors.

    `number` is None where the whole file is meant; `query_id` and `query_text` are "" if missing.
    `form` is None of questions and nuggets as the workbench has them. `items` are all that could be read
    before the `error`, if there is one: blank ones and ids that stand twice too. `forgiving`: an error leaves
    out this line alone.
    """

    number: int | None
    query_id: str = ""
    query_text: str = ""
    form: LineForm | None = None
    items: tuple[Item, ...] = ()
    error: ConversionError | None = None
    forgiving: bool = False

    @property
    def nuggets(self) -> bool:
        """Return True where it is a list of nuggets."""
        return self.form is NUGGETS

    @property
    def whole(self) -> bool:
        """Return True where its items are judged together."""
        return self.form is not None and self.form.whole


def scan_bank(path: Path) -> Iterator[BankLine]:
    """Yield all non-blank lines of a bank with their errors, for checks; raises nothing.

    Of a file that cannot be read to its end, the last one has the error that says why.
    """
    forgiving = _of_gold(path)
    try:
        lines: Iterable[tuple[int, bytes]] = iter_filled(path)
        if is_json_document(head(path)):
            lines = ((number, json.dumps(row).encode()) for number, row in iter_objects(path))
        for number, line in lines:
            yield scan_line(path, number, line, forgiving=forgiving)
    except ConversionError as error:
        yield BankLine(error.line, error=error)


def scan_line(path: Path, number: int, line: bytes, *, forgiving: bool = False) -> BankLine:
    """Parses a line of a bank; collects errors instead of raising.

    Args:
        forgiving: what holds for a line that does not tell what it is: those around it are gold outputs.
    """
    parsed = BankLine(number, forgiving=forgiving)
    items: list[Item] = []
    try:
        row = parse_object(path, number, line)
        form = _form(row)
        if form is not None:
            forgiving = form.forgiving
        elif any(key in row for key in LINE_KEYS):
            forgiving = False
        parsed = BankLine(number, form=form, forgiving=forgiving)
        text: Any = row.get("query_text")
        if form is not None:
            query_id, text = form.query(path, number, row)
        else:
            query_id = an_id(path, number, row, ("query_id",))
        parsed = parsed._replace(query_id=query_id, query_text=text if isinstance(text, str) else "")
        if form is NUGGETS and is_without_nuggets(row):
            parsed = parsed._replace(forgiving=True)
            raise ConversionError(path, number, f"query '{query_id}' has no nuggets: left out")
        if form is None and forgiving:
            raise ConversionError(path, number, f"query '{query_id}' has no gold outputs: left out")
        for item in form.items(path, number, row) if form is not None else _items(path, number, row):
            items.append(item)
    except ConversionError as error:
        parsed = parsed._replace(error=error)
    return parsed._replace(items=tuple(items))


def _items(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    query_id = an_id(path, number, row, ("query_id",))
    listed = row.get("questions") if row.get("questions") is not None else row.get("items")
    if listed is None:
        kind = "nugget" if any(key in row for key in SINGLE_TEXT_KEYS["nugget"]) else "question"
        what = f"a {kind} of query '{query_id}'"
        answers = row.get("correct") if row.get("correct") is not None else row.get("gold_answers")
        row = {**row, "gold_answers": answers}
        yield _item(path, number, row, query_id, kind, SINGLE_ID_KEYS[kind], SINGLE_TEXT_KEYS[kind], what)
        return
    if not isinstance(listed, list) or not listed:
        raise ConversionError(path, number, f"query '{query_id}' has no questions or items")
    for entry in listed:
        what = f"an item of query '{query_id}'"
        if not isinstance(entry, dict):
            raise ConversionError(path, number, f"{what} is not a JSON object")
        kind = "nugget" if "nugget_text" in entry or "nugget_id" in entry else "question"
        kind = entry["kind"] if entry.get("kind") in ID_KEYS else kind
        facet = entry.get("facet_id") if entry.get("facet_id") is not None else row.get("facet_id")
        entry = {**entry, "facet_id": facet}
        yield _item(path, number, entry, query_id, kind, ID_KEYS[kind], TEXT_KEYS[kind], what)


def _item(
    path: Path,
    number: int,
    entry: Mapping[str, Any],
    query_id: str,
    kind: str,
    id_keys: tuple[str, ...],
    text_keys: tuple[str, ...],
    what: str,
) -> Item:
    text = a_text(path, number, entry, text_keys, what, blank=True)
    has_id = any(entry.get(key) is not None for key in id_keys)
    return Item(
        query_id,
        an_id(path, number, entry, id_keys) if has_id else made_id(query_id, text),
        text,
        kind,
        _answers(path, number, entry.get("gold_answers")),
        _facet(path, number, entry.get("facet_id")),
        _choices(path, number, entry.get("choices")),
        importance=importance_of(path, number, entry, query_id),
        retired=a_flag(path, number, entry, "retired"),
        origin=an_origin(path, number, entry),
        weight=a_weight(path, number, entry, what),
        details=a_details(entry["details"]) if isinstance(entry.get("details"), dict) else "",
    )


def _answers(path: Path, number: int, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(v, str) for v in values):
        raise ConversionError(path, number, f"the gold answer is not text: {value!r}"[:200])
    return tuple(values)


def _facet(path: Path, number: int, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ConversionError(path, number, f'"facet_id" is not an id: {value!r}'[:200])


def _choices(path: Path, number: int, value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [
            tuple(v) if isinstance(v, list) else (chr(ord("A") + i), v) for i, v in enumerate(value[:26])
        ]
    else:
        pairs = [("", None)]
    if not all(len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in pairs):
        raise ConversionError(path, number, '"choices" must be {letter: text} or a list of texts')
    return tuple(pairs)
