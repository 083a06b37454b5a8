"""Reads fields of JSON objects and writes ids to text files, with errors that name the problem."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from converters.errors import ConversionError
from converters.lines import Head
from converters.records import Origin

Path = str | os.PathLike[str]
#: Where passages have their texts.
TEXT_KEYS = ("text", "contents", "segment", "passage", "body")
#: Weights are at most so much, so that sums of them are finite.
MOST_WEIGHT = 1_000_000_000
# What C's isspace, bytes.split and so the readers split at; str.split would split at a no-break space too.
_SPACE = re.compile(r"[ \t\n\r\v\f\0]")


def an_id(path: Path, line: int, row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The value of the first present key as a non-empty string; whole numbers become text.

    Raises:
        ConversionError: it is missing or not an id.
    """
    for key in keys:
        value = row.get(key)
        if value is None:
            continue
        if isinstance(value, str) and value.strip():
            return value
        if not isinstance(value, bool) and isinstance(value, Integral):
            return str(int(value))
        raise ConversionError(path, line, f'"{key}" is not an id: {value!r}; write ids as text')
    raise ConversionError(path, line, f"no {_or(keys)} in it")


def a_text(
    path: Path, line: int, row: Mapping[str, Any], keys: Sequence[str], what: str, *, blank: bool = False
) -> str:
    """The value of the first present key as a non-blank string.

    Args:
        blank: a string of white space only is accepted, too.

    Raises:
        ConversionError: it has none, or only white space.
    """
    for key in keys:
        value = row.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ConversionError(path, line, f'"{key}" of {what} is not text')
        if blank or value.strip():
            return value
    raise ConversionError(path, line, f"{what} has no text ({_or(keys)})")


def a_passage(path: Path, line: int, row: Mapping[str, Any], what: str, *, blank: bool = False) -> str:
    """Return a passage's text: title, headings and text, one space between, as ir_datasets' `default_text`.

    Anserini's `contents` have the title in them.

    Args:
        blank: return "" for a passage without a text.

    Raises:
        ConversionError: it has no text, or one that is not text.
    """
    before = [part for key in ("title", "headings") if isinstance(part := row.get(key), str) and part.strip()]
    if blank and not before and not any(row.get(key) for key in TEXT_KEYS):
        return ""
    text = a_text(path, line, row, TEXT_KEYS, what, blank=bool(before))
    if before and row.get("contents") == text and text.startswith(before[0]):
        return text
    return " ".join([*before, text] if text.strip() else before)


def a_flag(path: Path, line: int, row: Mapping[str, Any], key: str) -> bool:
    """The object's `key` as a bool; False if missing.

    Raises:
        ConversionError: it is neither true nor false.
    """
    value = row.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise ConversionError(path, line, f'"{key}" is neither true nor false: {value!r}'[:200])


def a_weight(path: Path, line: int, row: Mapping[str, Any], what: str) -> float | None:
    """The object's `weight` of an item, which may be negative; None if missing.

    Args:
        what: the item, as "an item of query 'q1'".

    Raises:
        ConversionError: it is not a number, or 0, or beyond `MOST_WEIGHT`.
    """
    value = row.get("weight")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConversionError(path, line, f"the weight of {what} is not a number: {value!r}"[:200])
    # Not of infinities and nan, too.
    if not abs(value) <= MOST_WEIGHT:
        raise ConversionError(path, line, f"the weight of {what} is {value}: at most {MOST_WEIGHT:,}")
    if value == 0:
        raise ConversionError(
            path, line, f'the weight of {what} is 0: take it out ("retired": true), or give it another'
        )
    return float(value)


def an_origin(path: Path, line: int, row: Mapping[str, Any]) -> Origin | None:
    """The object's `origin`, which says how an item was generated; None if missing.

    Raises:
        ConversionError: it is not an object, or has an invalid field.
    """
    value = row.get("origin")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ConversionError(path, line, f'"origin" is not a JSON object: {value!r}'[:200])
    seed = value.get("seed")
    if isinstance(seed, bool) or not isinstance(seed, int | None):
        raise ConversionError(path, line, f'"seed" of the origin is not a whole number: {seed!r}'[:200])
    parts = {name: value.get(name, "") for name in ("prompt", "model", "time", "text", "importance")}
    for name, part in parts.items():
        if not isinstance(part, str):
            raise ConversionError(path, line, f'"{name}" of the origin is not text: {part!r}'[:200])
    return Origin(seed=seed, **parts)


def a_details(value: Mapping[str, Any]) -> str:
    """Values without a field in the item's record, as JSON for `Item.details`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def made_id(query_id: str, text: str) -> str:
    """An id for an item without one: the query's id and the md5 of the text."""
    return f"{query_id}/{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}"


def a_number(text: str) -> float | None:
    """Return the number in a text by the rules of C's atof (no `1_000`); None for other texts."""
    try:
        return None if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return None


def _or(keys: Sequence[str]) -> str:
    return " or ".join(f'"{key}"' for key in keys)


def counted(columns: Sequence[object]) -> str:
    """The number of columns, in words."""
    return "1 column" if len(columns) == 1 else f"{len(columns)} columns"


def column(value: str, what: str) -> str:
    """An id, checked for a white-space separated file.

    Raises:
        ValueError: it is empty or has white space in it.
    """
    if not value or _SPACE.search(value):
        raise ValueError(f"{what} {value!r} is empty or has white space, which this format does not allow")
    return value


def taken_for_comments(query_ids: Iterable[str]) -> str:
    """A warning on query ids that turn lines of runs and qrels into comments; "" without any."""
    ids = sorted({query_id for query_id in query_ids if query_id.startswith("#")})
    if not ids:
        return ""
    more = f" and {len(ids) - 1:,} more query ids begin" if len(ids) > 1 else ": the query id begins"
    return (
        f"'{ids[0]}'{more} with '#': trec_eval 10 takes such lines of runs and qrels for comments, and its "
        "means differ; give these queries other ids"
    )


def is_comment(line: bytes) -> bool:
    """Return True for a comment line of a run or qrels, as trec_eval 10 has them."""
    return line.lstrip().startswith(b"#")


def without_comments(start: Head) -> Head:
    """Return the head of a run or qrels without comment lines."""
    return Head(start.name, tuple(line for line in start.lines if not is_comment(line)))


def warn_of_skipped_comments(path: str | os.PathLike[str], count: int) -> None:
    """Log the number of comment lines that were skipped, if any."""
    if count:
        lines = "1 comment line" if count == 1 else f"{count:,} comment lines"
        logging.getLogger("converters").warning(
            "%s: skipped %s ('#' first); trec_eval 9 takes none, and 10 not each: see `trecexam check`",
            os.fspath(path),
            lines,
        )


def warn_of_comments(query_ids: Iterable[str]) -> None:
    """Logs `taken_for_comments` as a warning, for each written file of runs or qrels."""
    reason = taken_for_comments(query_ids)
    if reason:
        logging.getLogger("converters").warning("%s", reason)
