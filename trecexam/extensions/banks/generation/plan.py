"""Plan of the queries or sub-topics for which a model must write items."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from converters.bank_lines import BankLine, scan_bank
from converters.errors import ConversionError
from converters.lines import decode, iter_filled
from converters.records import Item
from trecexam.bank.model import folded
from trecexam.errors import TrackError, TrecexamError
from trecexam.extensions.banks.editing import item_row
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.generation.reading import Kind
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.inputs.missing_banks import lines_of, read_target

#: (query_id, facet_id); facet_id None for the whole query.
Facet = tuple[str, str | None]


@dataclass(frozen=True)
class BankPlan:
    """The requests to the model, and the changes of the file.

    Attributes:
        requests: requests in the order of the queries.
        output: the file for new items; `content` is its current content.
        existing_texts: query_id -> folded texts of items that stay, in all files of the bank; with texts that
            people edited since, so that these do not come again.
        replaced_lines: (query_id, facet_id) -> indices of unedited lines of `output` by a model, which new
            items replace.
    """

    requests: tuple[ItemRequest, ...]
    output: Path
    content: bytes
    existing_texts: Mapping[str, set[tuple[str, ...]]]
    replaced_lines: Mapping[Facet, Sequence[int]]


def plan_bank(
    folder: TrackFolder,
    prompt: ItemPrompt,
    *,
    query_ids: Collection[str] = (),
    target: Path,
    again: bool = False,
) -> BankPlan:
    """Plan requests for queries without an item of the prompt's kind; with `again` for all queries."""
    content = read_target(folder, target)
    requests = [*_requests(folder, prompt, _queries(folder, query_ids))]
    to_replace = {(request.query_id, request.facet_id) for request in requests} if again else set()
    stored: dict[str, set[tuple[str, ...]]] = {}
    filled: set[Facet] = set()
    replaced: dict[Facet, list[int]] = {}
    for path in {*folder.bank(optional=True), target}:
        target_lines = lines_of(content) if path == target else []
        for line in scan_bank(path) if path.exists() and path.stat().st_size else ():
            if line.error is not None:
                raise line.error
            index = (line.number or 0) - 1
            item = _untouched(line, target_lines[index], prompt.kind) if index < len(target_lines) else None
            if item is not None and (item.query_id, item.facet_id) in to_replace:
                replaced.setdefault((item.query_id, item.facet_id), []).append(index)
                continue
            for item in line.items:
                texts = (item.text, item.origin.text if item.origin else "")
                stored.setdefault(item.query_id, set()).update(folded(text) for text in texts if text.strip())
                if item.kind == prompt.kind:
                    filled |= {(item.query_id, None), (item.query_id, item.facet_id)}
    lacking = (each for each in requests if again or (each.query_id, each.facet_id) not in filled)
    return BankPlan(tuple(lacking), target, content, stored, replaced)


def _untouched(line: BankLine, content: bytes, kind: Kind) -> Item | None:
    """Return the item of an unedited line by a model; None for other lines."""
    item = line.items[0] if line.items else None
    if item is None or item.origin is None:
        return None
    text, importance = item.origin.text, item.origin.importance
    generated = Item(
        item.query_id, item.item_id, text, kind, (), item.facet_id, importance=importance, origin=item.origin
    )
    with suppress(ValueError):
        # A person's answer key or note is an edit, too.
        return item if json.loads(content) == item_row(generated, line.query_text) else None
    return None


def _queries(folder: TrackFolder, query_ids: Collection[str]) -> dict[str, str]:
    """Return query_id -> text of these queries of the track; of all if none is given."""
    texts = query_texts(folder)
    if not texts:
        raise TrackError("no queries: put queries.tsv here, `query_id<TAB>text`", path=folder.root)
    for unknown in (query_id for query_id in query_ids if query_id not in texts):
        raise TrecexamError(f"the track has no query '{unknown}'", path=folder.root)
    return {query_id: text for query_id, text in texts.items() if not query_ids or query_id in query_ids}


def _requests(folder: TrackFolder, prompt: ItemPrompt, texts: Mapping[str, str]) -> Iterator[ItemRequest]:
    if not prompt.by_subtopic:
        yield from (ItemRequest(query_id, text) for query_id, text in texts.items())
        return
    path = folder.root / "subtopics.tsv"
    if not path.exists():
        reason = f"prompt {prompt.name} asks about sub-topics: put `query_id<TAB>subtopic` lines here"
        raise TrecexamError(reason, path=path)
    rows: dict[ItemRequest, None] = {}
    for number, line in iter_filled(path):
        columns = [part.strip() for part in decode(path, number, line).split("\t")]
        if len(columns) not in (2, 3) or not all(columns):
            reason = "a line is `query_id<TAB>subtopic`, or `query_id<TAB>facet_id<TAB>subtopic`"
            raise ConversionError(path, number, reason)
        # Without an id, the sub-topic is its id.
        query_id, facet_id, *_ = columns
        rows[ItemRequest(query_id, texts.get(query_id, ""), columns[-1], facet_id)] = None
    if not any(row.query_id in texts for row in rows):
        raise TrecexamError("the track has none of these queries", path=path)
    for query_id in texts:
        yield from (row for row in rows if row.query_id == query_id)
