"""Human ratings that stand in place of a grader's: `overrides.tsv`, which people may also edit by hand.

Tab-separated columns under a header line that names them, in any order. Of several lines for the same cell
or passage the last counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from converters.errors import ConversionError
from converters.lines import decode, iter_lines
from converters.records import HumanRating

COLUMNS = HumanRating._fields
#: Columns that a file cannot do without, and that no line leaves empty.
REQUIRED = ("query_id", "doc_id", "who", "why")
_DIGEST_HEX = 64


def read_overrides(
    path: str | os.PathLike[str], refuse: Callable[[ConversionError], None]
) -> Iterator[tuple[int, HumanRating]]:
    """The lines that can be taken, with their numbers, in the file's order. Blank lines are skipped.

    Args:
        refuse: called with the reason for each line that cannot.

    Raises:
        ConversionError: the header line is missing or lacks a column, so that no line can be read.
    """
    return _rows(path, iter_lines(path, nul=True), refuse)


def _rows(
    path: str | os.PathLike[str],
    lines: Iterable[tuple[int, bytes]],
    refuse: Callable[[ConversionError], None],
) -> Iterator[tuple[int, HumanRating]]:
    names: list[str] | None = None
    for number, raw in lines:
        try:
            if b"\0" in raw:
                raise ConversionError(path, number, "a NUL byte")
            values = [value.strip() for value in decode(path, number, raw).rstrip("\r\n").split("\t")]
            if names is not None and any(values):
                yield number, _row(path, number, names, values)
        except ConversionError as error:
            if names is None:
                raise
            refuse(error)
            continue
        if names is None and any(values):
            names = _header(path, number, values)


def with_override(content: bytes, row: HumanRating) -> bytes:
    """A file's content with one more line at its end, in the columns that its header names.

    An empty content gets a header first. White space within a value becomes a blank.

    Raises:
        UnicodeDecodeError: the header line is no UTF-8.
        ValueError: its header line has no column for the item, so that the rating would be of the whole
            passage; or what is written does not read back as this rating.
    """
    lines = [line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    names = [name.strip() for name in lines[0].decode().split("\t")] if lines else list(COLUMNS)
    if row.item_id and "item_id" not in names:
        raise ValueError("the header line has no item_id, so that it takes ratings of whole passages only")
    values = {
        name: "" if value is None else " ".join(str(value).split()) for name, value in row._asdict().items()
    }
    start = content if lines else ("\t".join(COLUMNS) + "\n").encode()
    newline = b"" if start.endswith(b"\n") else b"\n"
    added = start + newline + ("\t".join(values.get(name, "") for name in names) + "\n").encode()
    meant = row._replace(who=values["who"], why=values["why"], when=values["when"])
    if _last(added, names) != [getattr(meant, name) for name in names if name in COLUMNS]:
        raise ValueError("this rating would not be read back as it is: an id has odd white space in it")
    return added


def _last(content: bytes, names: Sequence[str]) -> list[object]:
    """What the last line of a file's content is read as, in the columns that its header names."""
    lines = enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1)
    *_, (_, row) = _rows("overrides.tsv", lines, lambda error: None)
    return [getattr(row, name) for name in names if name in COLUMNS]


def _header(path: str | os.PathLike[str], number: int, names: list[str]) -> list[str]:
    if any("\r" in name for name in names):
        raise ConversionError(
            path, number, "its lines end in CR alone, as on old Macs: save it anew with LF or CR LF"
        )
    missing = [name for name in (*REQUIRED, "rating") if name not in names]
    if missing:
        raise ConversionError(
            path,
            number,
            f"the header line lacks {', '.join(missing)}; it names these columns, set off by tabs: "
            f"{' '.join(COLUMNS)}",
        )
    twice = [name for name in dict.fromkeys(names) if name in COLUMNS and names.count(name) > 1]
    if twice:
        raise ConversionError(path, number, f"the header line names {twice[0]} twice")
    return names


def _row(path: str | os.PathLike[str], number: int, names: list[str], values: list[str]) -> HumanRating:
    if len(values) > len(names):
        raise ConversionError(
            path,
            number,
            f"has {len(values)} columns, the header line has {len(names)}: are they set off by tabs?",
        )
    fields = {name: value for name, value in zip(names, values, strict=False) if name in COLUMNS}
    empty = [name for name in REQUIRED if not fields.get(name)]
    if empty:
        raise ConversionError(path, number, f"no {empty[0]}: who rated what, and why, is part of a rating")
    text = fields.pop("rating", "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= 5):
        raise ConversionError(
            path, number, f"the rating is neither 0..5 nor empty (withdrawn): '{text[:40]}'"
        )
    for name in ("passage_sha256", "item_sha256"):
        digest = fields.get(name, "")
        if digest and (len(digest) != _DIGEST_HEX or set(digest) - set("0123456789abcdef")):
            raise ConversionError(
                path, number, f"{name} is no sha256 in hex: '{digest[:40]}'; it may be left empty"
            )
    return HumanRating(**{**fields, "rating": int(text) if text else None})  # type: ignore[arg-type]
