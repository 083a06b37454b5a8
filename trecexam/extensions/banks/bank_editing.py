"""Changes one item of a bank file: rewrites its line and keeps all other bytes.

All functions take a file's bytes, gzip or not, and give its new ones. What is read back is compared with what
was meant, so that a form in which an item cannot be changed by itself is refused, not damaged.

Each change is noted in the item's own `edits` (who, when, what it was before), which readers pass over: an
`Item` has no field for it, since `origin` is of what a model wrote.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from converters.bank import distinct_items
from converters.bank_lines import (
    ID_KEYS,
    RUBRICS,
    SINGLE_ID_KEYS,
    SINGLE_TEXT_KEYS,
    TEXT_KEYS,
    BankLine,
    Path,
    scan_line,
)
from converters.errors import ConversionError
from converters.fields import made_id
from converters.gold import KIND as GOLD
from converters.nuggets import CRITERION_KEYS
from converters.nuggets import ITEM_KEYS as NUGGET_ID_KEYS
from converters.nuggets import TEXT_KEYS as NUGGET_TEXT_KEYS
from converters.records import Item

#: The key of an item's recorded changes.
EDITS = "edits"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
#: Ids that count up, as `q1/3` and `q1/q03` do: something, perhaps a few letters, and a short number.
_COUNTED = re.compile(r"((?:.*[^0-9A-Za-z])?[A-Za-z]{0,8})([0-9]{1,6})", re.DOTALL)


class _Line(NamedTuple):
    """A line of a file: its text, its line end, and its parsed value (None if blank)."""

    text: str
    end: bytes
    parsed: BankLine | None


class _Place(NamedTuple):
    """Position of an item: the line's index, the line's value, and the item's object in it.

    `ids` and `texts` are the keys that may hold its id and text there; gold outputs have none.
    """

    line: int
    row: dict[str, Any]
    entry: dict[str, Any]
    item: Item
    ids: tuple[str, ...]
    texts: tuple[str, ...]


def items_of(content: bytes, path: Path) -> list[Item]:
    """The items of a bank file's content, as `read_bank` gives them.

    Raises:
        ConversionError: it cannot be read.
    """
    return _items(_lines(content, path), path)


def with_text(content: bytes, path: Path, item_id: str, text: str, note: Mapping[str, Any]) -> bytes:
    """The content with a changed text of an item, which keeps its id.

    Args:
        path: of the file, for messages.
        note: what is noted of the change; the text until now is put beside it as `before`.

    Raises:
        ConversionError: the bank cannot be read, has no such item, or has it in a form that
            cannot be changed.
    """
    lines = _lines(content, path)
    position = _find(lines, path, item_id)
    if not position.texts:
        raise ConversionError(
            path, position.line + 1, f"item '{item_id}' is a list of gold outputs: edit the file by hand"
        )
    entry = position.entry
    entry[next((key for key in position.texts if entry.get(key) is not None), position.texts[0])] = text
    if all(entry.get(key) is None for key in position.ids):
        entry[f"{position.item.kind}_id"] = item_id
    _note(entry, {**note, "before": position.item.text})
    return _checked(content, path, lines, position, position.item._replace(text=text))


def with_retired(
    content: bytes, path: Path, item_id: str, *, retired: bool, note: Mapping[str, Any]
) -> bytes:
    """The content with an item retired or restored.

    Raises:
        ConversionError: as `with_text`.
    """
    lines = _lines(content, path)
    position = _find(lines, path, item_id)
    position.entry["retired"] = retired
    _note(position.entry, {**note, "retired": retired})
    return _checked(content, path, lines, position, position.item._replace(retired=retired))


def with_item(content: bytes, path: Path, item: Item, note: Mapping[str, Any]) -> bytes:
    """The content with an item added: to its query's last list, or on a new line after it.

    Only the item's ids, text, kind and importance are written.

    Raises:
        ConversionError: the bank cannot be read, or has the item's id already.
    """
    lines = _lines(content, path)
    old = _items(lines, path)
    positions = list(_places(lines, item.query_id))
    # A new item has no weight, which each one of a list of rubrics needs.
    fitting = [
        position
        for position in positions
        if position.item.kind == item.kind and not _of_rubrics(lines[position.line])
    ]
    like = fitting[-1] if fitting else None
    noted = {**({"importance": item.importance} if item.importance else {}), EDITS: [{**note, "added": True}]}
    after = positions[-1].line if positions else _last(lines)
    listing = None if like is None else _listing(like.row)
    if like is not None and listing is not None:
        id_key = next((key for key in like.ids if key in like.entry), f"{item.kind}_id")
        text_key = next(key for key in like.texts if key in like.entry)
        kind = {"kind": item.kind} if "kind" in like.entry else {}
        listing.append({id_key: item.item_id, **kind, text_key: item.text, **noted})
        lines[like.line] = _with(lines[like.line], path, like.line, like.row)
    else:
        entry = {"query_id": item.query_id, f"{item.kind}_id": item.item_id, item.kind: item.text, **noted}
        _insert(lines, after, path, entry)
    new = _items(lines, path)
    unchanged = [other for other in new if other.item_id != item.item_id]
    added = [other[:4] for other in new if other.item_id == item.item_id]
    if unchanged != old or added != [item[:4]]:
        raise ConversionError(
            path, None, f"item '{item.item_id}' cannot be added here: edit the file by hand"
        )
    return _packed(content, lines)


def new_id(query_id: str, text: str, ids: Mapping[str, str]) -> str:
    """An unused id for a new item of a query: the next number if ids count up.

    Args:
        ids: item_id -> query_id of all items of the bank, retired ones too.
    """
    numbered = [_COUNTED.fullmatch(item_id) for item_id, query in ids.items() if query == query_id]
    matches = [match for match in numbered if match is not None]
    stem, number, width = f"{made_id(query_id, text)}-", 1, 1
    made = stem[:-1]
    if matches and len(matches) == len(numbered) and len({match[1] for match in matches}) == 1:
        stem, number = matches[0][1], max(int(match[2]) for match in matches)
        made, width = "", min(len(match[2]) for match in matches)
    while not made or made in ids:
        number += 1
        made = f"{stem}{number:0{width}}"
    return made


def edits_of(content: bytes, path: Path, query_id: str) -> dict[str, list[dict[str, Any]]]:
    """item_id -> the recorded changes of a query's items, oldest first.

    Raises:
        ConversionError: the bank cannot be read.
    """
    edits: dict[str, list[dict[str, Any]]] = {}
    for position in _places(_lines(content, path), query_id):
        listed = position.entry.get(EDITS)
        if isinstance(listed, list):
            edits[position.item.item_id] = [edit for edit in listed if isinstance(edit, dict)]
    return edits


def _lines(content: bytes, path: Path) -> list[_Line]:
    plain = _unpacked(content, path).removeprefix(_BOM)
    if b"\0" in plain:
        number = plain.count(b"\n", 0, plain.index(b"\0")) + 1
        raise ConversionError(path, number, "a NUL byte: this is not a text file")
    parts = plain.split(b"\n")
    ends = [b"\n"] * (len(parts) - 1) + [b""]
    lines = []
    for number, (part, end) in enumerate(zip(parts, ends, strict=True), 1):
        line = part.rstrip(b"\r")
        parsed = scan_line(path, number, line) if line.strip() else None
        if parsed is not None and parsed.error is not None and not parsed.forgiving:
            raise parsed.error
        lines.append(_Line(line.decode(), part[len(line) :] + end, parsed))
    return lines


def _items(lines: list[_Line], path: Path) -> list[Item]:
    return list(
        distinct_items(path, (line.parsed for line in lines if line.parsed is not None), lambda error: None)
    )


def _places(lines: list[_Line], query_id: str) -> Iterator[_Place]:
    """Positions of a query's items, including blank and duplicate ones."""
    for index, line in enumerate(lines):
        if line.parsed is None or line.parsed.query_id != query_id:
            continue
        row = json.loads(line.text)
        listing = _listing(row)
        entries = [row] * len(line.parsed.items) if listing is None else listing
        for entry, item in zip(entries, line.parsed.items, strict=True):
            keys: tuple[tuple[str, ...], tuple[str, ...]]
            if line.parsed.whole:
                keys = ("question_id",), ("question",)
            elif line.parsed.nuggets:
                keys = NUGGET_ID_KEYS, NUGGET_TEXT_KEYS
            elif line.parsed.form is RUBRICS:
                keys = NUGGET_ID_KEYS, CRITERION_KEYS
            elif item.kind == GOLD:
                keys = (), ()
            elif listing is None:
                keys = SINGLE_ID_KEYS[item.kind], SINGLE_TEXT_KEYS[item.kind]
            else:
                keys = ID_KEYS[item.kind], TEXT_KEYS[item.kind]
            yield _Place(index, row, entry, item, *keys)


def _listing(row: Mapping[str, Any]) -> list[Any] | None:
    """The list of a line's items; None if the line is one item."""
    lists = (row.get(key) for key in ("questions", "items", "nuggets", "rubrics"))
    return next((listing for listing in lists if isinstance(listing, list)), None)


def _of_rubrics(line: _Line) -> bool:
    return line.parsed is not None and line.parsed.form is RUBRICS


def _find(lines: list[_Line], path: Path, item_id: str) -> _Place:
    item = next((other for other in _items(lines, path) if other.item_id == item_id), None)
    if item is not None:
        position = next(position for position in _places(lines, item.query_id) if position.item == item)
        line = lines[position.line].parsed
        if line is not None and line.whole:
            raise ConversionError(
                path,
                position.line + 1,
                f"'{item.query_id}' is a question with its block, judged as a whole: edit the file by hand "
                '(`"retired": true` takes it out)',
            )
        return position
    raise ConversionError(path, None, f"the file has no item '{item_id}'")


def _note(entry: dict[str, Any], note: Mapping[str, Any]) -> None:
    noted = entry.setdefault(EDITS, [])
    # Keep a field of this name from another program.
    if isinstance(noted, list):
        noted.append({key: value for key, value in note.items() if value != ""})


def _checked(content: bytes, path: Path, lines: list[_Line], position: _Place, edited: Item) -> bytes:
    """The new content and the item's new line, after a check that both can be read.

    Raises:
        ConversionError: it does not say what was meant, and nothing else.
    """
    expected = [edited if item.item_id == edited.item_id else item for item in _items(lines, path)]
    lines[position.line] = _with(lines[position.line], path, position.line, position.row)
    with contextlib.suppress(ConversionError):
        if _items(lines, path) == expected:
            return _packed(content, lines)
    raise ConversionError(
        path,
        position.line + 1,
        f"item '{edited.item_id}' cannot be changed by itself, as another one has the same text: edit the "
        "file by hand",
    )


def _with(line: _Line, path: Path, index: int, row: Mapping[str, Any], like: str = "") -> _Line:
    """The line with a new object, with the spacing and escapes of the old line or of the line `like`."""
    like = like or line.text
    separators = (",", ":") if '":' in like and '": ' not in like else (", ", ": ")
    text = json.dumps(row, ensure_ascii="\\u" in like, separators=separators)
    parsed = scan_line(path, index + 1, text.encode())
    if parsed.error is not None:
        raise parsed.error
    return line._replace(text=text, parsed=parsed)


def _insert(lines: list[_Line], after: int, path: Path, row: Mapping[str, Any]) -> None:
    """Inserts a line after index `after` (-1: at the start), with the file's line ends."""
    new = _with(_Line("", b"", None), path, after + 1, row, lines[after].text if after >= 0 else "")
    if after < 0:
        lines.insert(0, new._replace(end=b"\n"))
        return
    last = lines[after]
    end = last.end if last.end.endswith(b"\n") else lines[0].end or b"\n"
    if last.end.endswith(b"\n"):
        new = new._replace(end=end)
    else:
        lines[after] = last._replace(end=last.end + (end if end.endswith(b"\n") else b"\n"))
    lines.insert(after + 1, new)


def _last(lines: list[_Line]) -> int:
    return max((index for index, line in enumerate(lines) if line.parsed is not None), default=-1)


def _unpacked(content: bytes, path: Path) -> bytes:
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ConversionError(path, None, "the gzip data is damaged or ends early; copy it again") from None


def _packed(like: bytes, lines: list[_Line]) -> bytes:
    start = _BOM if _unpacked(like, "").startswith(_BOM) else b""
    plain = start + b"".join(line.text.encode() + line.end for line in lines)
    return gzip.compress(plain, mtime=0) if like.startswith(_GZIP) else plain
