"""Tab-separated tables with a header line; columns may be in any order.

`judgments.tsv` of an export has a line for each judgment, old ones included.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from converters.errors import ConversionError
from converters.lines import decode, iter_lines
from converters.overrides import CANNOT, human_rating, is_scale
from converters.records import HumanRating
from trecexam.errors import TrecexamError

#: Column -> name in overrides.tsv.
COLUMNS = {
    **{each: each for each in ("query_id", "doc_id", "item_id")},
    "assessor": "who",
    **{each: each for each in ("rating", "seconds")},
    "time": "when",
    **{each: each for each in ("note", "why", "kind", "passage_sha256", "item_sha256", "scale")},
}
REQUIRED = ("query_id", "doc_id", "assessor", "rating")
#: Default reason of judgments.
IMPORTED = "imported"
#: Scales of ratings. Judgments of whole passages have the scale TRACK (of [judging] or the official
#: judgments), or name the scale, such as 0..3. "" means unknown.
TRACK, GRADER = "track", "grader"


def judgment_table(rows: Iterable[HumanRating]) -> bytes:
    """Return the table as text: a header line, then the lines in order."""
    lines = ["\t".join(COLUMNS)]
    for row in rows:
        values = {**row._asdict(), "rating": CANNOT if row.cannot else row.rating}
        texts = ("" if values[name] is None else str(values[name]) for name in COLUMNS.values())
        lines.append("\t".join(texts))
    return "".join(f"{line}\n" for line in lines).encode()


def read_judgment_table(
    path: str | os.PathLike[str], refuse: Callable[[ConversionError], None]
) -> Iterator[tuple[int, HumanRating]]:
    """Yield the accepted lines with line numbers, in file order; `scale` is one of the texts above.

    Args:
        refuse: called with the reason for each rejected line.

    Raises:
        ConversionError: the header line is missing or lacks a column.
    """
    for number, values in _lines(path, REQUIRED, COLUMNS):
        try:
            if "\t" in values:
                raise ConversionError(path, number, "has more columns than the header line")
            row = {COLUMNS[name]: value for name, value in values.items() if name in COLUMNS}
            scale = row.pop("scale", "")
            if scale not in ("", TRACK, GRADER) and not is_scale(scale):
                reason = f"the scale is not {TRACK}, {GRADER} or empty: '{scale[:40]}'"
                raise ConversionError(path, number, reason)
            if not row.get("who"):
                raise ConversionError(path, number, "no assessor")
            row["why"] = row.get("why") or IMPORTED
            yield number, human_rating(path, number, [*row], [*row.values()])._replace(scale=scale)
        except ConversionError as error:
            refuse(error)


def read_columns(path: Path, columns: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Return (line number, values) of these columns of a table, such as from `judge-next`.

    Raises:
        TrecexamError: an unreadable line, or a missing value, with the line number.
    """
    rows = []
    try:
        for number, row in _lines(path, columns, columns):
            values = tuple(row.get(name, "") for name in columns)
            if not all(values) or "\t" in row:
                raise ConversionError(path, number, f"needs {', '.join(columns)}, separated by tabs")
            rows.append((number, values))
    except ConversionError as error:
        raise TrecexamError(error.reason, path=path, line=error.line) from None
    return rows


def _lines(
    path: str | os.PathLike[str], needed: Sequence[str], known_columns: Iterable[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, column -> value) of the lines below the header; skip blank lines.

    Values beyond those that the header line names have the column "\t".
    """
    header: list[str] = []
    for number, raw in iter_lines(path):
        values = [value.strip() for value in decode(path, number, raw).split("\t")]
        if not any(values):
            continue
        if header:
            names = [*header, *["\t"] * (len(values) - len(header))]
            yield number, dict(zip(names, values, strict=False))
            continue
        header = values
        missing = [name for name in needed if name not in header]
        twice = [name for name in header if name and header.count(name) > 1]
        if missing or twice:
            wrong = f"lacks {', '.join(missing)}" if missing else f"names '{twice[0]}' twice"
            columns = f"columns, separated by tabs: {' '.join(known_columns)}"
            raise ConversionError(path, number, f"the header line {wrong}; {columns}")
    if not header:
        raise ConversionError(path, None, f"is empty: its first line names the columns, {' '.join(needed)}")
