"""`judgments.tsv` of an export: a line for each judgment ever given.

Tab-separated columns under a header line that names them, in any order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from converters.errors import ConversionError
from converters.lines import decode, iter_lines
from converters.overrides import CANNOT, human_rating, is_scale
from converters.records import HumanRating

#: The columns, and what they are called in overrides.tsv.
COLUMNS = {
    "query_id": "query_id",
    "doc_id": "doc_id",
    "item_id": "item_id",
    "assessor": "who",
    "rating": "rating",
    "seconds": "seconds",
    "time": "when",
    "note": "note",
    "why": "why",
    "kind": "kind",
    "passage_sha256": "passage_sha256",
    "item_sha256": "item_sha256",
    "scale": "scale",
}
REQUIRED = ("query_id", "doc_id", "assessor", "rating")
#: The reason for judgments without one in the table.
IMPORTED = "imported"
#: The scales that ratings are on. A judgment that notes its own scale has that, as 0..3, in place of TRACK.
TRACK, GRADER = "track", "grader"


class TableRow(NamedTuple):
    """A line of the table.

    `own_scale`: it is a judgment of a whole passage on the track's own scale, that of [judging] or of the
    official judgments; None where the table does not say.
    """

    rating: HumanRating
    own_scale: bool | None


def judgment_table(rows: Iterable[TableRow]) -> bytes:
    """The table as text: a header line, then these lines in order."""
    lines = ["\t".join(COLUMNS)]
    for row, own_scale in rows:
        values = {**row._asdict(), "rating": CANNOT if row.cannot else row.rating}
        values["scale"] = row.scale or ("" if own_scale is None else TRACK if own_scale else GRADER)
        texts = ("" if values[name] is None else str(values[name]) for name in COLUMNS.values())
        lines.append("\t".join(texts))
    return "".join(f"{line}\n" for line in lines).encode()


def read_judgment_table(
    path: str | os.PathLike[str], refuse: Callable[[ConversionError], None]
) -> Iterator[tuple[int, TableRow]]:
    """The accepted lines with their numbers, in file order. Blank lines are skipped.

    Args:
        refuse: called with the reason for each line that cannot.

    Raises:
        ConversionError: the header line is missing or lacks a column, so that no line can be read.
    """
    names: list[str] | None = None
    for number, raw in iter_lines(path):
        values = [value.strip() for value in decode(path, number, raw).split("\t")]
        if not any(values):
            continue
        if names is None:
            missing = [name for name in REQUIRED if name not in values]
            twice = [name for name in dict.fromkeys(values) if values.count(name) > 1]
            if missing or twice:
                wrong = f"lacks {', '.join(missing)}" if missing else f"names {twice[0]} twice"
                raise ConversionError(
                    path, number, f"the header line {wrong}; columns, separated by tabs: {' '.join(COLUMNS)}"
                )
            names = [COLUMNS.get(name, f"other {name}") for name in values]
            continue
        try:
            yield number, _row(path, number, names, values)
        except ConversionError as error:
            refuse(error)


def _row(path: str | os.PathLike[str], number: int, names: list[str], values: list[str]) -> TableRow:
    fields = dict(zip(names, values, strict=False))
    scale = fields.get("scale", "")
    if scale in ("", TRACK, GRADER):
        fields.pop("scale", "")
    elif not is_scale(scale):
        raise ConversionError(path, number, f"the scale is not {TRACK}, {GRADER} or empty: '{scale[:40]}'")
    if not fields.get("who"):
        raise ConversionError(path, number, "no assessor")
    if not fields.get("why"):
        fields["why"] = IMPORTED
    extra = values[len(names) :]
    rating = human_rating(path, number, [*fields], [*fields.values(), *extra])
    return TableRow(rating, None if not scale else scale != GRADER)
