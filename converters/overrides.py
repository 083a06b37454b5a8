"""Human ratings that replace a grader's: `overrides.tsv`, which people may also edit by hand.

Tab-separated columns under a header line that names them, in any order. Of several lines for the same cell
or passage the last counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from converters.errors import ConversionError
from converters.fields import a_number
from converters.lines import decode, iter_lines, open_bytes, reading
from converters.records import HumanRating

#: The columns of a new file, and those that it gets with the first line that has something for them.
COLUMNS = HumanRating._fields[:9]
LATER_COLUMNS = ("seconds", "note", "kind", "scale")
#: What replaces a rating where a person cannot judge.
CANNOT = "cannot"
#: Kinds of lines: one that decides between people, and one with what its writer said before.
ADJUDICATED, UNDONE = "adjudicated", "undone"
#: Columns that a file cannot do without, and that no line leaves empty.
REQUIRED = ("query_id", "doc_id", "who", "why")
_KNOWN = (*COLUMNS, *LATER_COLUMNS)
_DIGEST_HEX = 64
_BOM = b"\xef\xbb\xbf"
_SCALE = re.compile(r"0\.\.[1-9]")


def read_overrides(
    path: str | os.PathLike[str], refuse: Callable[[ConversionError], None], *, naming: Sequence[str] = ()
) -> Iterator[tuple[int, HumanRating]]:
    """Reads the valid lines with their numbers, in file order. Blank lines are skipped.

    Args:
        refuse: called with the reason for each line that cannot.
        naming: only lines that have all these texts somewhere; no others are parsed, which is fast.

    Raises:
        ConversionError: the header line is missing or lacks a column, so that no line can be read.
    """
    return _rows(path, _naming(path, naming) if naming else iter_lines(path, nul=True), refuse)


def _naming(path: str | os.PathLike[str], texts: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Yields the first non-blank line, and all lines that contain these texts."""
    with open_bytes(path) as stream, reading(path, 1):
        lines = stream.read().split(b"\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    named, *other_texts = (text.encode("utf-8", "surrogatepass") for text in texts)
    chosen = [(index, line) for index, line in enumerate(lines) if named in line and index > first]
    for index, line in ((first, lines[first]), *chosen):
        if index == first or all(other in line for other in other_texts):
            yield index + 1, line.rstrip(b"\r")


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
                yield number, human_rating(path, number, names, values)
        except ConversionError as error:
            if names is None:
                raise
            refuse(error)
            continue
        if names is None and any(values):
            names = _header(path, number, values)


def overrides_in(content: bytes) -> list[HumanRating]:
    """Like `read_overrides`, from a file's content.

    Raises:
        ConversionError: the header line is none.
    """
    lines = enumerate((line.rstrip(b"\r") for line in content.removeprefix(_BOM).split(b"\n")), 1)
    return [row for _, row in _rows("overrides.tsv", lines, lambda error: None)]


def with_override(content: bytes, row: HumanRating) -> bytes:
    """Like `with_overrides`, for one line."""
    return with_overrides(content, [row])


def with_overrides(content: bytes, rows: Sequence[HumanRating]) -> bytes:
    """A file's content with lines appended, in the columns of its header.

    An empty content gets a header first; one whose header lacks a later column that a line needs gets it at
    the header's end. White space within a value becomes a blank.

    Raises:
        ConversionError: the header line is none, so that no line can be read.
        ValueError: its header line has no column for the item, so that a rating would be of the whole
            passage; or what is written does not read back as this rating.
    """
    at = len(_BOM) if content.startswith(_BOM) else 0
    number, head = 1, content[at:].split(b"\n", 1)[0]
    while not head.strip() and at + len(head) < len(content):
        at += len(head) + 1
        number, head = number + 1, content[at:].split(b"\n", 1)[0]
    head = head if head.strip() else b""
    if head:
        # Raises what is wrong with it.
        list(_rows("overrides.tsv", [(number, head)], lambda error: None))
    names = [name.strip() for name in head.decode().split("\t")] if head else list(COLUMNS)
    if "item_id" not in names and any(row.item_id for row in rows):
        raise ValueError(
            "the header line has no item_id, so the file can hold only ratings of whole passages"
        )
    written = [{name: _written(row, name) for name in _KNOWN} for row in rows]
    new = [name for name in LATER_COLUMNS if name not in names and any(values[name] for values in written)]
    names += new
    header = "\t".join(names).encode()
    if not head:
        start = header + b"\n"
    elif new:
        added = "".join(f"\t{name}" for name in new).encode()
        start = content.replace(head, head.rstrip(b"\r") + added + head[len(head.rstrip(b"\r")) :], 1)
    else:
        start = content
    newline = b"" if start.endswith(b"\n") else b"\n"
    lines = ["\t".join(values.get(name, "") for name in names).encode() for values in written]
    fields = [*(name for name in names if name in _KNOWN), "cannot"]
    read = [row for _, row in _rows("overrides.tsv", enumerate([header, *lines], number), lambda error: None)]
    expected = [
        row._replace(who=values["who"], why=values["why"], when=values["when"], note=values["note"])
        for row, values in zip(rows, written, strict=True)
    ]
    if [[getattr(row, name) for name in fields] for row in read] != [
        [getattr(row, name) for name in fields] for row in expected
    ]:
        raise ValueError(
            "this rating cannot be stored: an id has unusual white space, and would be read back changed"
        )
    return start + newline + b"".join(line + b"\n" for line in lines)


def _written(row: HumanRating, name: str) -> str:
    """The text of a rating's field for a column."""
    value = CANNOT if name == "rating" and row.cannot else getattr(row, name)
    return "" if value is None else " ".join(str(value).split())


def _header(path: str | os.PathLike[str], number: int, names: list[str]) -> list[str]:
    if any("\r" in name for name in names):
        raise ConversionError(
            path, number, "its lines end in CR alone, as on old Macs: save it with LF or CR LF"
        )
    missing = [name for name in (*REQUIRED, "rating") if name not in names]
    if missing:
        raise ConversionError(
            path,
            number,
            f"the header line lacks {', '.join(missing)}; it names these columns, set off by tabs: "
            f"{' '.join(COLUMNS)}",
        )
    twice = [name for name in dict.fromkeys(names) if name in _KNOWN and names.count(name) > 1]
    if twice:
        raise ConversionError(path, number, f"the header line names {twice[0]} twice")
    return names


def human_rating(
    path: str | os.PathLike[str], number: int, names: Sequence[str], values: Sequence[str]
) -> HumanRating:
    """A rating from a line's values in these columns; ignores other columns.

    Raises:
        ConversionError: they are none.
    """
    if len(values) > len(names):
        raise ConversionError(
            path,
            number,
            f"has {len(values)} columns, the header line has {len(names)}: are they set off by tabs?",
        )
    fields = {name: value for name, value in zip(names, values, strict=False) if name in _KNOWN}
    empty = [name for name in REQUIRED if not fields.get(name)]
    if empty:
        raise ConversionError(path, number, f"no {empty[0]}: a rating needs who rated what, and why")
    text = fields.pop("rating", "")
    cannot = text == CANNOT
    if text and not cannot and not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= 5):
        raise ConversionError(
            path, number, f"the rating is neither 0..5 nor empty (withdrawn) nor {CANNOT}: '{text[:40]}'"
        )
    for name in ("passage_sha256", "item_sha256"):
        digest = fields.get(name, "")
        if digest and (len(digest) != _DIGEST_HEX or set(digest) - set("0123456789abcdef")):
            raise ConversionError(
                path, number, f"{name} is not a sha256 in hex: '{digest[:40]}'; correct it, or leave it empty"
            )
    kind = fields.get("kind", "")
    if kind not in ("", ADJUDICATED, UNDONE):
        raise ConversionError(
            path, number, f"the kind is not {ADJUDICATED}, {UNDONE} or empty: '{kind[:40]}'"
        )
    scale = fields.get("scale", "")
    if scale and not is_scale(scale):
        raise ConversionError(path, number, f"the scale is neither as 0..3 nor empty: '{scale[:40]}'")
    seconds = _seconds(path, number, fields.pop("seconds", ""))
    rating = int(text) if text and not cannot else None
    return HumanRating(**fields, rating=rating, seconds=seconds, cannot=cannot)


def is_scale(text: str) -> bool:
    """Return True for the name of a scale of judgments, as `0..3`."""
    return _SCALE.fullmatch(text) is not None


def _seconds(path: str | os.PathLike[str], number: int, text: str) -> float | None:
    if not text:
        return None
    seconds = a_number(text)
    if seconds is None or not 0 <= seconds < float("inf"):
        raise ConversionError(
            path,
            number,
            f"the seconds must be a number of 0 or more: '{text[:40]}'; correct it, or leave it empty",
        )
    return seconds
