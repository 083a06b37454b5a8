"""Changes one item of a bank file and leaves every other byte of it as it is.

All functions take a file's bytes, gzip or not, and give its new ones. What is read back is compared with what
was meant, so that a form in which an item cannot be changed by itself is refused, not damaged.

Each change is noted in the item's own `edits` (who, when, what it was before), which readers pass over: an
`Item` has no field for it, since `origin` is of what a model wrote.
"""

from __future__ import annotations

import contextlib
import gzip
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
from trecexam.extensions.banks.json_splice import dumped, elements, member, with_element, with_member

#: Where an item's changes are noted.
EDITS = "edits"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
#: Ids that count up, as `q1/3` and `q1/q03` do: something, perhaps a few letters, and a short number.
_COUNTED = re.compile(r"((?:.*[^0-9A-Za-z])?[A-Za-z]{0,8})([0-9]{1,6})", re.DOTALL)


class _Line(NamedTuple):
    """A line of a file: its text without the line end, which is apart; what it holds, None where blank."""

    text: str
    end: bytes
    parsed: BankLine | None


class _Place(NamedTuple):
    """Where an item stands: the line's index, and where in its text the item's object begins.

    `ids` and `texts` are the keys that may hold its id and text there; gold outputs have none.
    """

    line: int
    start: int
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
    """The content with another text of an item. Its id stays, also one that was made of its text.

    Args:
        path: of the file, for messages.
        note: what is noted of the change; the text until now is put beside it as `before`.

    Raises:
        ConversionError: the bank cannot be read, has no such item, or has it in a form that
            cannot be changed.
    """
    lines = _lines(content, path)
    place = _find(lines, path, item_id)
    if not place.texts:
        raise ConversionError(
            path, place.line + 1, f"item '{item_id}' is a list of gold outputs: edit the file by hand"
        )
    line, key = lines[place.line].text, place.texts[0]
    for text_key in place.texts:
        value = member(line, place.start, text_key)
        if value is not None and line[value.start : value.end] != "null":
            key = text_key
            break
    line = with_member(line, place.start, key, text)
    if not _has_id(line, place):
        line = with_member(line, place.start, f"{place.item.kind}_id", item_id)
    line = _noted(line, place.start, {**note, "before": place.item.text})
    return _checked(content, path, lines, place, line, place.item._replace(text=text))


def with_retired(
    content: bytes, path: Path, item_id: str, *, retired: bool, note: Mapping[str, Any]
) -> bytes:
    """The content with an item retired, or asked about again.

    Raises:
        ConversionError: as `with_text`.
    """
    lines = _lines(content, path)
    place = _find(lines, path, item_id)
    line = with_member(lines[place.line].text, place.start, "retired", retired)
    line = _noted(line, place.start, {**note, "retired": retired})
    return _checked(content, path, lines, place, line, place.item._replace(retired=retired))


def with_item(content: bytes, path: Path, item: Item, note: Mapping[str, Any]) -> bytes:
    """The content with one more item: in the last list of its query, or on a line of its own after it.

    Only the item's ids, text, kind and importance are written.

    Raises:
        ConversionError: the bank cannot be read, or has the item's id already.
    """
    lines = _lines(content, path)
    old = _items(lines, path)
    places = list(_places(lines, item.query_id))
    # A new item has no weight, which each one of a list of rubrics needs.
    fitting = [
        place for place in places if place.item.kind == item.kind and not _of_rubrics(lines[place.line])
    ]
    like = fitting[-1] if fitting else None
    noted = {**({"importance": item.importance} if item.importance else {}), EDITS: [{**note, "added": True}]}
    after = places[-1].line if places else _last(lines)
    listing = None if like is None else _listing(lines[like.line].text)
    if like is not None and listing is not None:
        line = lines[like.line].text
        sibling = {key for key in (*like.ids, *like.texts, "kind") if member(line, like.start, key)}
        id_key = next((key for key in like.ids if key in sibling), f"{item.kind}_id")
        text_key = next(key for key in like.texts if key in sibling)
        kind = {"kind": item.kind} if "kind" in sibling else {}
        entry = {id_key: item.item_id, **kind, text_key: item.text, **noted}
        lines[like.line] = _with(lines[like.line], path, like.line, with_element(line, listing, entry))
    else:
        alike = lines[after].text if after >= 0 else "{}"
        entry = {"query_id": item.query_id, f"{item.kind}_id": item.item_id, item.kind: item.text, **noted}
        _insert(lines, after, path, dumped(alike, entry))
    new = _items(lines, path)
    kept = [other for other in new if other.item_id != item.item_id]
    added = [other[:4] for other in new if other.item_id == item.item_id]
    if kept != old or added != [item[:4]]:
        raise ConversionError(
            path, None, f"item '{item.item_id}' cannot be added here: edit the file by hand"
        )
    return _packed(content, lines)


def new_id(query_id: str, text: str, ids: Mapping[str, str]) -> str:
    """An id for a new item of a query, which no item of the bank has: the next number where ids count up.

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
    """item_id -> the changes that are noted of a query's items, the first one first.

    Raises:
        ConversionError: the bank cannot be read.
    """
    import orjson

    lines = _lines(content, path)
    edits: dict[str, list[dict[str, Any]]] = {}
    for place in _places(lines, query_id):
        line = lines[place.line].text
        noted = member(line, place.start, EDITS)
        listed = None if noted is None else orjson.loads(line[noted.start : noted.end])
        if isinstance(listed, list):
            edits[place.item.item_id] = [edit for edit in listed if isinstance(edit, dict)]
    return edits


def _lines(content: bytes, path: Path) -> list[_Line]:
    plain = _unpacked(content, path).removeprefix(_BOM)
    if b"\0" in plain:
        number = plain.count(b"\n", 0, plain.index(b"\0")) + 1
        raise ConversionError(path, number, "a NUL byte: this is no text file")
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
    """Where the items of a query stand, blank ones and those that stand twice too."""
    for index, line in enumerate(lines):
        if line.parsed is None or line.parsed.query_id != query_id:
            continue
        listing = _listing(line.text)
        starts = [0] * len(line.parsed.items) if listing is None else elements(line.text, listing)
        for start, item in zip(starts, line.parsed.items, strict=True):
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
            yield _Place(index, start, item, *keys)


def _listing(line: str) -> int | None:
    """Where the list of a line's items begins; None where the line is one item."""
    for key in ("questions", "items", "nuggets", "rubrics"):
        value = member(line, 0, key)
        if value is not None and line[value.start] == "[":
            return value.start
    return None


def _of_rubrics(line: _Line) -> bool:
    return line.parsed is not None and line.parsed.form is RUBRICS


def _find(lines: list[_Line], path: Path, item_id: str) -> _Place:
    item = next((other for other in _items(lines, path) if other.item_id == item_id), None)
    if item is not None:
        place = next(place for place in _places(lines, item.query_id) if place.item == item)
        line = lines[place.line].parsed
        if line is not None and line.whole:
            raise ConversionError(
                path,
                place.line + 1,
                f"'{item.query_id}' is a question with its block, judged as a whole: edit the file by hand "
                '(`"retired": true` takes it out)',
            )
        return place
    raise ConversionError(path, None, f"no item '{item_id}' in it")


def _has_id(line: str, place: _Place) -> bool:
    values = (member(line, place.start, key) for key in place.ids)
    return any(value is not None and line[value.start : value.end] != "null" for value in values)


def _noted(line: str, start: int, note: Mapping[str, Any]) -> str:
    note = {key: value for key, value in note.items() if value != ""}
    noted = member(line, start, EDITS)
    if noted is not None and line[noted.start] == "[":
        return with_element(line, noted.start, note)
    # Somebody else's field of that name is left alone.
    return line if noted is not None else with_member(line, start, EDITS, [note])


def _checked(content: bytes, path: Path, lines: list[_Line], place: _Place, text: str, meant: Item) -> bytes:
    """The new content, after reading it back.

    Raises:
        ConversionError: it does not say what was meant, and nothing else.
    """
    expected = [meant if item.item_id == meant.item_id else item for item in _items(lines, path)]
    lines[place.line] = _with(lines[place.line], path, place.line, text)
    with contextlib.suppress(ConversionError):
        if _items(lines, path) == expected:
            return _packed(content, lines)
    raise ConversionError(
        path,
        place.line + 1,
        f"item '{meant.item_id}' cannot be changed by itself, as another one has the same text: edit the "
        "file by hand",
    )


def _with(line: _Line, path: Path, index: int, text: str) -> _Line:
    parsed = scan_line(path, index + 1, text.encode())
    if parsed.error is not None:
        raise parsed.error
    return line._replace(text=text, parsed=parsed)


def _insert(lines: list[_Line], after: int, path: Path, text: str) -> None:
    """Puts a line after that of index `after`, -1 where there is none; with line ends as there."""
    new = _with(_Line("", b"", None), path, after + 1, text)
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
