"""A person's changes of bank items: one item per line; a copy of the original file is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from converters.bank import distinct_items
from converters.bank_lines import SINGLE_TEXT_KEYS, scan_line
from converters.errors import ConversionError
from converters.fields import made_id
from converters.lines import iter_objects
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
    """A line to write: its JSON object and items; a list of items is one line per item."""

    row: dict[str, Any]
    items: tuple[Item, ...]


class _Bank:
    """The lines of the bank's files, and all items, read anew."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self.lines = {path: [*_lines(path, iter_objects(path))] for path in folder.bank()}
        self.found = {
            item.item_id: (path, index, item)
            for path, lines in self.lines.items()
            for index, line in enumerate(lines)
            for item in line.items
        }

    def find(self, item_id: str, seen: str | None) -> tuple[Path, int, Item]:
        """Return an item's file, the index of its line, and the item.

        Raises:
            ItemConflictError: the item changed since the person saw it. TrecexamError: no such item.
        """
        name = f"item '{item_id[:80]}'"
        if item_id not in self.found and seen is not None:
            raise ItemConflictError(f"{name} is no longer in the bank", None, path=self.folder.root)
        if item_id not in self.found:
            hint = did_you_mean(item_id, self.found, before="; ")
            raise TrecexamError(f"no {name} in the bank{hint}", path=self.folder.root)
        path, index, item = self.found[item_id]
        if seen not in (None, digest_of(item)):
            reason = f"was changed meanwhile, and nothing was written; its text is now: {item.text}"
            raise ItemConflictError(f"{name} {reason}", item, path=path)
        return path, index, item

    def check_query(self, query_id: str) -> None:
        """Refuse a query that is neither in the bank nor in the track's queries."""
        query_ids = {item.query_id for _, _, item in self.found.values()} | set(query_texts(self.folder))
        if query_id not in query_ids:
            hint = did_you_mean(query_id, query_ids, before="; ")
            raise TrecexamError(f"no query '{query_id}' in the track{hint}", path=self.folder.root)

    def write(self, path: Path, lines: Sequence[_Line], new: Item) -> Edited:
        """Write the lines of a file.

        Raises:
            TrecexamError, ConversionError: another item of the query has the new item's text, or the lines
                would not be read as the new item and all other items of the file.
        """
        if not new.text:
            raise TrecexamError("the item has no text")
        for _, _, item in self.found.values():
            same = (item.query_id, item.kind, item.text) == (new.query_id, new.kind, new.text)
            counts = not item.retired or new.item_id not in self.found
            if same and item.item_id != new.item_id and counts and not new.retired:
                hint = ", retired: take it back instead" * item.retired
                raise TrecexamError(f"query '{new.query_id}' has this item already, '{item.item_id}'{hint}")
        content, reread = path.read_bytes(), list[_Line]()
        if packed_as(content):
            raise TrecexamError("is compressed, and could not be edited: unpack it", path=path)
        with suppress(ConversionError):
            reread = [*_lines(path, enumerate((line.row for line in lines), 1))]
        if [line.items for line in reread] != [line.items for line in lines]:
            reason = f"item '{new.item_id}' cannot be changed by itself: edit the file by hand "
            raise ConversionError(path, None, reason + '(`"retired": true` takes its line out)')
        if b"".join(row_line(line.row) for line in self.lines[path]) != content:
            # A pattern in the settings could match a copy in the same folder.
            is_read = self.folder.takes_as_bank(path.with_name(f"{path.name}.orig"))
            parent = self.folder.shared_state if is_read else path.parent
            names = (parent / f"{path.name}.orig{number or ''}" for number in count())
            original = next(name for name in names if not name.exists())
            files.replace(original, content, mode=path.stat().st_mode & 0o777)
        # Keep a symbolic link.
        files.replace(Path(os.path.realpath(path)), b"".join(row_line(line.row) for line in lines))
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
        """Add an item to the end of the bank's file; `update` then grades only this item.

        Args:
            kind: "question" or "nugget".
            importance: "vital", "okay" or "".
            who, why: stored with the item in the bank's file; `why` may be "".

        Raises:
            LockedError: a model is writing the track's bank.
            TrecexamError, ConversionError: the text is empty or a duplicate, the query is unknown, or the
                bank cannot be read or written.
        """
        text, note = typed("an item", text, MAX_ITEM), {**_note(who, why), "added": True}
        if kind not in KINDS:
            raise TrecexamError(f"an item is a question or a nugget, not '{kind}'")
        if importance not in IMPORTANCES:
            raise TrecexamError(f"the importance is vital, okay or none, not '{importance}'")
        refuse_controls("an id", query_id)
        with self._bank() as bank:
            bank.check_query(query_id)
            ids = (made_id(query_id, text) + f"-{number}" * (number > 1) for number in count(1))
            item_id = next(each for each in ids if each not in bank.found)
            new = Item(query_id, item_id, text, kind, importance=importance)
            # The last file with items of this kind, else the last file.
            of_kind = {path for path, _, item in bank.found.values() if item.kind == kind}
            path = [path for path in bank.lines if path in of_kind or not of_kind][-1]
            added = _Line({**item_row(new, ""), EDITS: [note]}, (new,))
            return bank.write(path, [*bank.lines[path], added], new)

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
        return self._change(item_id, seen, _note(who, why), text=typed("an item", text, MAX_ITEM))

    def retire_item(
        self, item_id: str, *, who: str, retired: bool = True, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Retire an item, or restore it with `retired=False`; its grades are kept.

        Args:
            seen: as in `edit_item`.

        Raises:
            ItemConflictError, LockedError, TrecexamError, ConversionError: as `edit_item`.
        """
        return self._change(item_id, seen, _note(who, why), retired=retired)

    def _change(self, item_id: str, seen: str | None, note: Mapping[str, Any], **change: Any) -> Edited:
        """Change an item's text or whether it is retired."""
        with self._bank() as bank:
            path, index, item = bank.find(item_id, seen)
            new, row, values = item._replace(**change), bank.lines[path][index].row, change
            if new == item:
                return Edited(item, path, written=False)
            if "text" in change:
                keys = [key for key in SINGLE_TEXT_KEYS.get(item.kind, ()) if key in row]
                values = {f"{item.kind}_id": item_id, (*keys, item.kind)[0]: new.text}
                change = {"before": item.text}
            lines = [*bank.lines[path]]
            lines[index] = _Line({**row, **values, EDITS: [*_edits(row), {**note, **change}]}, (new,))
            return bank.write(path, lines, new)

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
        ToEdit(item, folder.shown(path), _edits(line.row), tuple(problems.get(item.item_id, ())))
        for path, lines in bank.lines.items()
        for line in lines
        for item in line.items
        if (item_by_query(item) if by_facets else item).query_id == query_id
    )
    if not items:
        bank.check_query(query_id)
    return items


def _lines(path: Path, rows: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[_Line]:
    scanned = [(row, scan_line(path, number, json.dumps(row).encode())) for number, row in rows]
    # The bank skips blank and repeated items.
    left = {*distinct_items(path, [line for _, line in scanned], lambda error: None)}
    for row, line in scanned:
        items = tuple(item for item in dict.fromkeys(line.items) if item in left)
        left -= {*items}
        if any(isinstance(row.get(key), list) for key in _LISTS):
            yield from (_Line(item_row(item, line.query_text), (item,)) for item in items)
        else:
            yield _Line(row, items)


def _note(who: str, why: str) -> dict[str, Any]:
    who, why = typed("a name", who, MAX_WHO), typed("a reason", why, MAX_WHY)
    if not who:
        raise TrecexamError("a change of the bank needs a name (who)")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"who": who, "when": when} | ({"why": why} if why else {})


def _edits(row: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    edits = row.get(EDITS)
    return tuple(edit for edit in edits if isinstance(edit, dict)) if isinstance(edits, list) else ()


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
