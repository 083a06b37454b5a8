"""A person's changes of bank items: one item per line; a copy of the original file is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from converters.bank import distinct_items
from converters.bank_lines import SINGLE_ID_KEYS, SINGLE_TEXT_KEYS, BankLine, scan_line
from converters.errors import ConversionError
from converters.fields import made_id
from converters.lines import iter_objects, open_input
from converters.nuggets import IMPORTANCES
from converters.records import Item
from converters.unpacking import packed_as
from trecexam.bank.model import item_by_query
from trecexam.errors import ItemConflictError, TrecexamError, did_you_mean
from trecexam.extensions.banks.checks import check_track
from trecexam.files import atomic as files
from trecexam.files.track_lock import exclusive_lock, track_lock
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.inputs.overrides import digest_of
from trecexam.inputs.typed_text import MAX_ITEM, MAX_WHO, MAX_WHY, refuse_controls, typed
from trecexam.track_groups import Group

KINDS = ("question", "nugget")
#: The key of an item's recorded changes.
EDITS = "edits"
#: Keys of item lists in a line of several items.
_LISTS = ("questions", "items", "nuggets", "rubrics")


@dataclass(frozen=True)
class Edited:
    """Result of a change of the bank.

    Attributes:
        item: the current item.
        file: the bank file with the item.
        written: False if nothing had to change.
    """

    item: Item
    file: Path
    written: bool


class ToEdit(NamedTuple):
    """An item with its file. `edits` are its recorded changes, oldest first; `warnings` come from `bank
    check`.
    """

    item: Item
    file: str
    edits: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]


class _Line(NamedTuple):
    """A line of a file: its JSON object and items; a line of several items is split."""

    path: Path
    row: dict[str, Any]
    query_id: str
    items: tuple[Item, ...]


class _Bank:
    """The bank's files, read anew."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self.contents = {path: _content(path) for path in folder.bank()}
        self.lines = [
            line for path, content in self.contents.items() if content.strip() for line in _lines(path)
        ]

    @property
    def items(self) -> list[Item]:
        """Items of all lines, file by file."""
        return [item for line in self.lines for item in line.items]

    def find(self, item_id: str, seen: str | None) -> tuple[int, Item]:
        """Return the index of an item's line, and the item.

        Raises:
            ItemConflictError: the item changed since the person saw it. TrecexamError: no such item.
        """
        lines = ((index, item) for index, line in enumerate(self.lines) for item in line.items)
        match = next((each for each in lines if each[1].item_id == item_id), None)
        if match is None:
            root = self.folder.root
            if seen is not None:
                raise ItemConflictError(f"item '{item_id[:80]}' is no longer in the bank", None, path=root)
            hint = did_you_mean(item_id, [item.item_id for item in self.items], before="; ")
            raise TrecexamError(f"no item '{item_id[:80]}' in the bank{hint}", path=root)
        index, item = match
        if seen is not None and seen != digest_of(item):
            reason = f"was changed meanwhile, and nothing was written; its text is now: {item.text}"
            raise ItemConflictError(f"item '{item_id[:80]}' {reason}", item, path=self.lines[index].path)
        return index, item

    def refuse_twice(self, new: Item, *, ignore_retired: bool = False) -> None:
        """Refuse an item whose text its query has already.

        Args:
            ignore_retired: ignore retired items.
        """
        for item in self.items:
            same = (item.query_id, item.kind, item.text) == (new.query_id, new.kind, new.text)
            if same and item.item_id != new.item_id and not (ignore_retired and item.retired):
                how = ", retired: take it back instead" if item.retired else ""
                raise TrecexamError(f"query '{new.query_id}' has this item already, '{item.item_id}'{how}")

    def check_query(self, query_id: str) -> None:
        """Refuse a query that is neither in the bank nor in the track's queries."""
        query_ids = {item.query_id for item in self.items} | set(query_texts(self.folder))
        if query_id not in query_ids:
            hint = did_you_mean(query_id, query_ids, before="; ")
            raise TrecexamError(f"no query '{query_id}' in the track{hint}", path=self.folder.root)

    def change(self, index: int, old: Item, new: Item, note: Mapping[str, Any]) -> Edited:
        """Replace an item by another."""
        line = self.lines[index]
        row = dict(line.row)
        if new.text != old.text:
            keys = SINGLE_TEXT_KEYS.get(new.kind, ())
            row[next((key for key in keys if row.get(key) is not None), new.kind)] = new.text
            if all(row.get(key) is None for key in SINGLE_ID_KEYS.get(new.kind, ())):
                row[f"{new.kind}_id"] = new.item_id
        if new.retired != old.retired:
            row["retired"] = new.retired
        edited = line._replace(row=_noted_row(row, note))
        return self._write(line.path, [*self.lines[:index], edited, *self.lines[index + 1 :]], new)

    def add(self, new: Item, note: Mapping[str, Any]) -> Edited:
        """Write a new item after its query's items, in the last file with its kind, else the last file."""
        of_kind = [line.path for line in self.lines if any(item.kind == new.kind for item in line.items)]
        path = (of_kind or [*self.contents])[-1]
        of_file = [index for index, line in enumerate(self.lines, 1) if line.path == path]
        of_query = [index for index in of_file if self.lines[index - 1].query_id == new.query_id]
        at = (of_query or of_file or [0])[-1]
        added = _Line(path, _noted_row(item_row(new, ""), {**note, "added": True}), "", ())
        return self._write(path, [*self.lines[:at], added, *self.lines[at:]], new)

    def _write(self, path: Path, lines: list[_Line], new: Item) -> Edited:
        """Write a file, if the new item is readable in it and all other items stay unchanged."""
        content, reread = self.contents[path], list[Item]()
        if packed_as(content):
            raise TrecexamError("is compressed, and could not be edited: unpack it", path=path)
        rows = [line.row for line in lines if line.path == path]
        with suppress(ConversionError):
            reread = _items(path, [_scanned(path, number, row) for number, row in enumerate(rows, 1)])
        before = [item for line in self.lines if line.path == path for item in line.items]
        unchanged = [[item for item in each if item.item_id != new.item_id] for each in (before, reread)]
        if new not in reread or unchanged[0] != unchanged[1]:
            reason = f"item '{new.item_id}' cannot be changed by itself: edit the file by hand "
            raise ConversionError(path, None, reason + '(`"retired": true` takes its line out)')
        if b"".join(row_line(line.row) for line in self.lines if line.path == path) != content:
            # A pattern in the settings could match a copy in the same folder.
            is_read = self.folder.takes_as_bank(path.with_name(f"{path.name}.orig"))
            parent = self.folder.shared_state if is_read else path.parent
            names = (parent / f"{path.name}.orig{number or ''}" for number in count())
            original = next(name for name in names if not name.exists())
            files.replace(original, content, mode=path.stat().st_mode & 0o777)
        # Keep a symbolic link.
        files.replace(Path(os.path.realpath(path)), b"".join(map(row_line, rows)))
        return Edited(new, path, written=True)


class BankEditing(Group):
    """A person's changes of the bank's items."""

    def add_item(
        self,
        query_id: str,
        text: str,
        *,
        who: str,
        kind: str = "question",
        importance: str = "",
        why: str = "",
    ) -> Edited:
        """Add an item to the end of a query's items; `update` then grades only this item.

        Args:
            kind: "question" or "nugget".
            importance: "vital", "okay" or "".
            who, why: stored with the item in the bank's file; `why` may be "".

        Raises:
            LockedError: a model is writing the track's bank.
            TrecexamError, ConversionError: the text is empty or a duplicate, the query is unknown, or the
                bank cannot be read or written.
        """
        text, note = _text(text), _noted(who, why)
        if kind not in KINDS:
            raise TrecexamError(f"an item is a question or a nugget, not '{kind}'")
        if importance not in IMPORTANCES:
            raise TrecexamError(f"the importance is vital, okay or none, not '{importance}'")
        with self._bank() as bank:
            refuse_controls("an id", query_id)
            bank.check_query(query_id)
            bank.refuse_twice(Item(query_id, "", text, kind))
            used_ids = {item.item_id for item in bank.items}
            ids = (made_id(query_id, text) + f"-{number}" * (number > 1) for number in count(1))
            item_id = next(each for each in ids if each not in used_ids)
            return bank.add(Item(query_id, item_id, text, kind, importance=importance), note)

    def edit_item(
        self, item_id: str, text: str, *, who: str, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Change an item's text and keep its id and answer key; `update` then grades only this item.

        Args:
            seen: `trecexam.inputs.overrides.digest_of` the item that the person saw; None skips the check.

        Raises:
            ItemConflictError: the item changed or is gone; nothing was written.
            LockedError, TrecexamError, ConversionError: as `add_item`, or there is no such item.
        """
        text, note = _text(text), _noted(who, why)
        with self._bank() as bank:
            index, item = bank.find(item_id, seen)
            if item.text == text:
                return Edited(item, bank.lines[index].path, written=False)
            new = item._replace(text=text)
            if not item.retired:
                bank.refuse_twice(new)
            return bank.change(index, item, new, {**note, "before": item.text})

    def retire_item(
        self, item_id: str, *, who: str, retired: bool = True, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Retire an item, or restore it with `retired=False`; its grades are kept.

        Args:
            seen: as in `edit_item`.

        Raises:
            ItemConflictError, LockedError, TrecexamError, ConversionError: as `edit_item`.
        """
        note = _noted(who, why)
        with self._bank() as bank:
            index, item = bank.find(item_id, seen)
            if item.retired == retired:
                return Edited(item, bank.lines[index].path, written=False)
            if not retired:
                bank.refuse_twice(item, ignore_retired=True)
            return bank.change(index, item, item._replace(retired=retired), {**note, "retired": retired})

    @contextmanager
    def _bank(self) -> Iterator[_Bank]:
        folder = self._track.folder
        # Bank generation holds the second lock until its end.
        with (
            exclusive_lock(folder.shared_state / "bank.lock"),
            track_lock(folder.shared_state / "generate.lock", "writing this track's bank"),
        ):
            yield _Bank(folder)


def items_to_edit(folder: TrackFolder, query_id: str) -> tuple[ToEdit, ...]:
    """Return the items of a query in file order, retired ones too, read from the bank's files again."""
    bank = _Bank(folder)
    by_facets = folder.config.track.facets
    # Other commands report unreadable queries.
    problems = dict[str, list[str]]()
    with suppress(ConversionError):
        for finding in check_track(folder).problems:
            problems.setdefault(finding.item_id, []).append(finding.problem)
    items = tuple(
        ToEdit(item, folder.shown(line.path), _edits(line.row), tuple(problems.get(item.item_id, ())))
        for line in bank.lines
        for item in line.items
        if (item_by_query(item) if by_facets else item).query_id == query_id
    )
    if not items:
        bank.check_query(query_id)
    return items


def _content(path: Path) -> bytes:
    try:
        with open_input(path) as file:
            return file.read()
    except OSError as error:
        raise TrecexamError(f"cannot be read: {error.strerror}", path=path) from None


def _lines(path: Path) -> Iterator[_Line]:
    parsed = [(row, _scanned(path, number, row)) for number, row in iter_objects(path)]
    # The bank skips blank and repeated items.
    left = {*_items(path, [line for _, line in parsed])}
    for row, line in parsed:
        items = tuple(item for item in dict.fromkeys(line.items) if item in left)
        left -= {*items}
        if any(isinstance(row.get(key), list) for key in _LISTS):
            for item in items:
                yield _Line(path, item_row(item, line.query_text), line.query_id, (item,))
        else:
            yield _Line(path, row, line.query_id, items)


def _scanned(path: Path, number: int, row: dict[str, Any]) -> BankLine:
    line = scan_line(path, number, json.dumps(row).encode())
    if line.error is not None and not line.forgiving:
        raise line.error
    return line


def _items(path: Path, lines: list[BankLine]) -> list[Item]:
    return list(distinct_items(path, lines, lambda error: None))


def _noted(who: str, why: str) -> dict[str, str]:
    who, why = typed("a name", who, MAX_WHO), typed("a reason", why, MAX_WHY)
    if not who:
        raise TrecexamError("a change of the bank needs a name (who)")
    return {"who": who, "when": datetime.now(UTC).isoformat(timespec="seconds"), "why": why}


def _noted_row(row: dict[str, Any], note: Mapping[str, Any]) -> dict[str, Any]:
    # Keep a field of this name from another program.
    if not isinstance(row.get(EDITS, []), list):
        return row
    return {**row, EDITS: [*row.get(EDITS, []), {key: value for key, value in note.items() if value != ""}]}


def _edits(row: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    edits = row.get(EDITS)
    return tuple(edit for edit in edits if isinstance(edit, dict)) if isinstance(edits, list) else ()


def _text(text: str) -> str:
    text = typed("an item", text, MAX_ITEM)
    if not text:
        raise TrecexamError("the item has no text")
    return text


def item_row(item: Item, query_text: str) -> dict[str, Any]:
    """Return the JSON object of an item for a bank file."""
    row = {
        "query_id": item.query_id,
        "query_text": query_text,
        f"{item.kind}_id": item.item_id,
        item.kind: item.text,
        "gold_answers": list(item.gold_answers),
        "choices": dict(item.choices),
        "facet_id": item.facet_id,
        "importance": item.importance,
        "weight": item.weight,
        "retired": item.retired,
        "origin": None if item.origin is None else item.origin.row,
    }
    return {key: value for key, value in row.items() if value}


def row_line(row: Mapping[str, Any]) -> bytes:
    """Return the line of a JSON object."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"
