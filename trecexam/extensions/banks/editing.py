"""Writes a person's change of one item to the track's bank file, and returns warnings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from converters.bank_lines import scan_bank
from converters.errors import ConversionError
from converters.lines import open_input
from converters.nuggets import IMPORTANCES
from converters.records import Item
from trecexam.bank.model import item_by_query, lines_by_query
from trecexam.errors import ItemConflictError, TrecexamError, did_you_mean
from trecexam.extensions.banks.bank_editing import (
    edits_of,
    items_of,
    new_id,
    with_item,
    with_retired,
    with_text,
)
from trecexam.extensions.banks.checks import BankFinding, check_lines
from trecexam.files import atomic as files
from trecexam.files.track_lock import TrackLock, exclusive_lock
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.inputs.overrides import digest_of
from trecexam.inputs.typed_text import MAX_ITEM, MAX_WHO, MAX_WHY, refuse_controls, typed
from trecexam.track_groups import Group

KINDS = ("question", "nugget")
#: The warning for an edited item with recorded grades, which do not change.
_RECORDED = "the `recorded` grader matches items by id, so both texts get the same grades"


@dataclass(frozen=True)
class Edited:
    """Result of a change of the bank.

    Attributes:
        item: the current item.
        before: as it was; None where it is new.
        file: the bank's file that has it.
        written: False where it was so already.
        warnings: what `bank check` says of the item now, and of others because of it.
    """

    item: Item
    before: Item | None
    file: Path
    written: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ToEdit:
    """An item in the bank.

    Attributes:
        file: the bank's file, as people see it.
        edits: who changed it, when, and what it was before: see `trecexam.extensions.banks.bank_editing`.
        warnings: what `bank check` says of it.
    """

    item: Item
    file: str
    edits: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]


class _Bank(NamedTuple):
    """The bank's files, read again, and their items."""

    contents: dict[Path, bytes]
    items: dict[Path, list[Item]]

    def find(self, item_id: str) -> tuple[Path, Item] | None:
        for path, items in self.items.items():
            for item in items:
                if item.item_id == item_id:
                    return path, item
        return None


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
        """Adds an item to the end of a query's items; `update` then grades only this item.

        Args:
            kind: "question" or "nugget".
            importance: "vital", "okay" or "".
            who, why: noted beside the item in the bank's file; a reason is not needed.

        Raises:
            LockedError: a model is writing the track's bank.
            TrecexamError, ConversionError: the text is empty or the query has it already, the query is not
                the track's, or the bank cannot be read or written.
        """
        folder = self._track.folder
        text, note = _text(text), _note(who, why)
        if kind not in KINDS:
            raise TrecexamError(f"an item is a question or a nugget, not '{kind}'")
        if importance not in IMPORTANCES:
            raise TrecexamError(f"the importance is vital, okay or none, not '{importance}'")

        def change(bank: _Bank) -> tuple[Path, bytes, str]:
            everything = _all(bank)
            refuse_controls("an id", query_id)
            if all(item.query_id != query_id for item in everything):
                _check_query(folder, query_id, everything)
            _refuse_twice(everything, Item(query_id, "", text, kind))
            item_id = new_id(query_id, text, {item.item_id: item.query_id for item in everything})
            path = _file_for(bank, query_id, kind)
            item = Item(query_id, item_id, text, kind, importance=importance)
            return path, with_item(bank.contents[path], path, item, note), item_id

        return _change(folder, None, change)

    def edit_item(
        self, item_id: str, text: str, *, who: str, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Changes an item's text and keeps its id and answer key; `update` then grades only this item.

        Args:
            seen: `trecexam.inputs.overrides.digest_of` the item that the person saw; None to change it
                whatever it is by now.

        Raises:
            ItemConflictError: the item is another one by now, or gone; nothing was written.
            LockedError, TrecexamError, ConversionError: as `add_item`, or there is no such item.
        """
        folder = self._track.folder
        text, note = _text(text), _note(who, why)

        def change(bank: _Bank) -> tuple[Path, bytes, str]:
            path, item = _seen(folder, bank, item_id, seen)
            if item.text == text:
                return path, bank.contents[path], item_id
            if not item.retired:
                _refuse_twice(_all(bank), item._replace(text=text))
            return path, with_text(bank.contents[path], path, item_id, text, note), item_id

        done = _change(folder, item_id, change)
        if done.written and folder.config.grader.name == "recorded":
            return replace(done, warnings=(*done.warnings, _RECORDED))
        return done

    def retire_item(
        self, item_id: str, *, who: str, retired: bool = True, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Retires an item, or (`retired` False) back into it; its grades are kept.

        Args:
            seen: as in `edit_item`.

        Raises:
            ItemConflictError, LockedError, TrecexamError, ConversionError: as `edit_item`.
        """
        folder = self._track.folder
        note = _note(who, why)

        def change(bank: _Bank) -> tuple[Path, bytes, str]:
            path, item = _seen(folder, bank, item_id, seen)
            if item.retired == retired:
                return path, bank.contents[path], item_id
            if not retired:
                _refuse_twice(_all(bank), item)
            return path, with_retired(bank.contents[path], path, item_id, retired=retired, note=note), item_id

        return _change(folder, item_id, change)

    def edits(self, query_id: str) -> dict[str, list[dict[str, Any]]]:
        """item_id -> the changes of a query's items, oldest first: who, when, and the text before.

        Raises:
            TrecexamError, ConversionError: the bank cannot be read.
        """
        return edits(self._track.folder, query_id)


def edits(folder: TrackFolder, query_id: str) -> dict[str, list[dict[str, Any]]]:
    """item_id -> the changes of a query's items, oldest first: who, when, and the text before."""
    bank = _read(folder)
    edits_by_item: dict[str, list[dict[str, Any]]] = {}
    for path, content in bank.contents.items():
        for in_file in _ids_in_files(folder, bank, query_id):
            edits_by_item.update(edits_of(content, path, in_file))
    return edits_by_item


def items_to_edit(folder: TrackFolder, query_id: str) -> tuple[ToEdit, ...]:
    """The items of a query in file order, read from the bank's files again, including retired ones.

    Raises:
        TrecexamError: the bank cannot be read, or neither it nor the track's queries know the query.
    """
    bank = _read(folder)
    ids = _ids_in_files(folder, bank, query_id)
    if all(item.query_id not in ids for item in _all(bank)):
        _check_query(folder, query_id, _all(bank))
    noted = edits(folder, query_id)
    checked = _findings(folder, query_id)
    return tuple(
        ToEdit(
            item,
            folder.shown(path),
            tuple(noted.get(item.item_id, ())),
            tuple(finding.problem for finding in checked if finding.item_id == item.item_id),
        )
        for path, items in bank.items.items()
        for item in items
        if item.query_id in ids
    )


def _ids_in_files(folder: TrackFolder, bank: _Bank, query_id: str) -> dict[str, None]:
    """The query ids of a query's items in the files: the query's id, and query/facet with `facets`."""
    ids = {query_id: None}
    if folder.config.track.facets:
        ids.update((each.query_id, None) for each in _all(bank) if item_by_query(each).query_id == query_id)
    return ids


def _change(
    folder: TrackFolder, item_id: str | None, change: Callable[[_Bank], tuple[Path, bytes, str]]
) -> Edited:
    with _locked(folder):
        bank = _read(folder)
        before = None if item_id is None else bank.find(item_id)
        path, content, changed = change(bank)
        # A link stays a link.
        written = content != bank.contents[path] and files.replace(Path(os.path.realpath(path)), content)
        item = next(item for item in items_of(content, path) if item.item_id == changed)
        of_query = item_by_query(item) if folder.config.track.facets else item
        return Edited(item, before and before[1], path, written, _warnings(folder, of_query))


@contextmanager
def _locked(folder: TrackFolder) -> Iterator[None]:
    # Generating a bank holds the second lock until it ends.
    with (
        exclusive_lock(folder.shared_state / "bank.lock"),
        TrackLock(folder.shared_state / "generate.lock", "writing this track's bank"),
    ):
        yield


def _read(folder: TrackFolder) -> _Bank:
    contents = {path: _content(path) for path in folder.bank()}
    return _Bank(contents, {path: items_of(content, path) for path, content in contents.items()})


def _content(path: Path) -> bytes:
    try:
        with open_input(path) as file:
            return file.read()
    except OSError as error:
        raise TrecexamError(f"cannot be read: {error.strerror}", path=path) from None


def _seen(folder: TrackFolder, bank: _Bank, item_id: str, seen: str | None) -> tuple[Path, Item]:
    found_in = bank.find(item_id)
    if found_in is None:
        if seen is not None:
            raise ItemConflictError(f"item '{item_id[:80]}' is no longer in the bank", None, path=folder.root)
        hint = did_you_mean(item_id, [candidate.item_id for candidate in _all(bank)], before="; ")
        raise TrecexamError(f"no item '{item_id[:80]}' in the bank{hint}", path=folder.root)
    path, item = found_in
    if seen is not None and seen != digest_of(item):
        raise ItemConflictError(
            f"item '{item_id[:80]}' was changed meanwhile, and nothing was written; its text is now: "
            f"{item.text}",
            item,
            path=path,
        )
    return path, item


def _all(bank: _Bank) -> list[Item]:
    return [item for items in bank.items.values() for item in items]


def _refuse_twice(items: list[Item], new: Item) -> None:
    for item in items:
        if item.item_id == new.item_id or (item.query_id, item.kind) != (new.query_id, new.kind):
            continue
        if item.text == new.text:
            how = ", retired: take it back instead" if item.retired else ""
            raise TrecexamError(f"query '{new.query_id}' has this item already, '{item.item_id}'{how}")


def _check_query(folder: TrackFolder, query_id: str, items: list[Item]) -> None:
    """Raises an error for a query that is neither in the bank nor in the track's queries.

    Raises:
        TrecexamError: there is no such query.
    """
    query_ids = {item.query_id for item in items} | set(query_texts(folder))
    if query_id not in query_ids:
        hint = did_you_mean(query_id, query_ids, before="; ")
        raise TrecexamError(f"no query '{query_id}' in the track{hint}", path=folder.root)


def _file_for(bank: _Bank, query_id: str, kind: str) -> Path:
    """The last file with items of the query and kind; else of the kind, of the query, or the last file."""
    paths = list(bank.items)

    def rank(path: Path) -> tuple[bool, bool, bool, int]:
        items = bank.items[path]
        return (
            any((item.query_id, item.kind) == (query_id, kind) for item in items),
            any(item.kind == kind for item in items),
            any(item.query_id == query_id for item in items),
            paths.index(path),
        )

    return max(paths, key=rank)


def _warnings(folder: TrackFolder, item: Item) -> tuple[str, ...]:
    """Results of the bank's checks for an item, its query, and items that it affects."""
    findings = [(finding.item_id, finding.problem) for finding in _findings(folder, item.query_id)]
    return tuple(
        problem if item_id in ("", item.item_id) else f"item '{item_id}': {problem}"
        for item_id, problem in findings
        if item_id in ("", item.item_id) or f"'{item.item_id}'" in problem
    )


def _findings(folder: TrackFolder, query_id: str) -> list[BankFinding]:
    """Results of the bank's checks for a query and its items."""
    lines = [
        (folder.shown(path), line)
        for path in folder.bank()
        for line in lines_by_query(scan_bank(path), facets=folder.config.track.facets)
        if line.query_id == query_id
    ]
    texts: Mapping[str, str] = {}
    with suppress(ConversionError):
        texts = query_texts(folder)
    return [finding for finding in check_lines(lines, texts or None).problems if finding.query_id == query_id]


def _note(who: str, why: str) -> dict[str, str]:
    who, why = typed("a name", who, MAX_WHO), typed("a reason", why, MAX_WHY)
    if not who:
        raise TrecexamError("a change of the bank needs a name (who)")
    return {"who": who, "when": datetime.now(UTC).isoformat(timespec="seconds"), "why": why}


def _text(text: str) -> str:
    text = typed("an item", text, MAX_ITEM)
    if not text:
        raise TrecexamError("the item has no text")
    return text
