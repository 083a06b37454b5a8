"""Finds the queries or sub-topics for which a model must write items."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from converters.bank_lines import BankLine, scan_bank
from converters.errors import ConversionError
from converters.lines import decode, iter_filled, open_input
from converters.records import Item
from trecexam.errors import TrackError, TrecexamError
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.lines import replaceable
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.inputs.missing_banks import lines_of, read_target

#: (query_id, facet_id) -> numbers of lines, from 1.
LineNumbers = Mapping[tuple[str, str | None], Sequence[int]]
_HEADERS = (("query_id", "subtopic"), ("query_id", "facet_id", "subtopic"))


@dataclass(frozen=True)
class BankPlan:
    """The requests to the model, and the changes of the file.

    Attributes:
        requests: in the order of the queries.
        output: the file that items go to; `content` is what it holds now.
        kept: query_id -> items that stay, of all files of the bank.
        replaced_lines: lines of `output` that give way to new ones, if there are.
        whole: nothing is written before every query is through.
        asks_again: a sentence that says how to send prompts again whose answers cannot be read.
    """

    requests: tuple[ItemRequest, ...]
    output: Path
    content: bytes
    kept: Mapping[str, Sequence[Item]]
    replaced_lines: LineNumbers
    whole: bool = False
    asks_again: str = ""


def plan_bank(
    folder: TrackFolder,
    prompt: ItemPrompt,
    *,
    query_ids: Collection[str] = (),
    target: Path,
    again: bool = False,
) -> BankPlan:
    """Plans requests for queries without an item of the prompt's kind; with `again` for all queries.

    Raises:
        ConversionError: a file of the bank, the queries or the sub-topics cannot be read.
        TrecexamError: there are no queries, one that is named is unknown, the output would not be a file of
            the bank, or the prompt needs sub-topics.
    """
    content = read_target(folder, target)
    requests = tuple(_requests(folder, prompt, _queries(folder, query_ids)))
    files = {path: _readable(path) for path in {*folder.bank(optional=True), target} if path.exists()}
    replaced: LineNumbers = {}
    if again:
        keys = {(request.query_id, request.facet_id) for request in requests}
        replaced = _replaced_lines(files.get(target, ()), lines_of(content), prompt, keys)
    replaced_lines = {(target, number) for numbers in replaced.values() for number in numbers}
    kept_items: dict[str, list[Item]] = {}
    for path, lines in files.items():
        for line in lines:
            if (path, line.number) not in replaced_lines:
                for item in line.items:
                    kept_items.setdefault(item.query_id, []).append(item)
    if not again:
        requests = tuple(
            request
            for request in requests
            if not _has_items(kept_items.get(request.query_id, ()), request, prompt)
        )
    return BankPlan(requests, target, content, kept_items, replaced)


def _queries(folder: TrackFolder, query_ids: Collection[str]) -> dict[str, str]:
    """query_id -> text of these queries of the track; of all if none is named."""
    texts = query_texts(folder)
    if not texts:
        raise TrackError("no queries: put queries.tsv here, `query_id<TAB>text`", path=folder.root)
    unknown = [query_id for query_id in query_ids if query_id not in texts]
    if unknown:
        raise TrecexamError(f"the track has no query '{unknown[0]}'", path=folder.root)
    return {query_id: text for query_id, text in texts.items() if not query_ids or query_id in query_ids}


def _readable(path: Path) -> tuple[BankLine, ...]:
    lines = tuple(scan_bank(path))
    error = next((line.error for line in lines if line.error is not None), None)
    # An empty file counts as new.
    if error is not None and not _is_blank(path):
        raise error
    return lines


def _is_blank(path: Path) -> bool:
    with suppress(OSError), open_input(path) as file:
        return not file.read().strip()
    return False


def _requests(folder: TrackFolder, prompt: ItemPrompt, texts: Mapping[str, str]) -> Iterator[ItemRequest]:
    if not prompt.by_subtopic:
        yield from (ItemRequest(query_id, text) for query_id, text in texts.items())
        return
    path = folder.root / "subtopics.tsv"
    if not path.exists():
        raise TrecexamError(
            f"prompt {prompt.name} asks about sub-topics: put `query_id<TAB>subtopic` lines here",
            path=path,
        )
    rows = list(read_subtopics(path))
    if not any(row.query_id in texts for row in rows):
        raise TrecexamError("the track has none of these queries", path=path)
    for query_id, text in texts.items():
        for row in rows:
            if row.query_id == query_id:
                yield ItemRequest(query_id, text, row.text, row.facet_id)


def _replaced_lines(
    lines: Sequence[BankLine],
    written: Sequence[bytes],
    prompt: ItemPrompt,
    keys: Collection[tuple[str, str | None]],
) -> LineNumbers:
    """The lines of these (query_id, facet_id) that a model wrote and nobody edited."""
    numbers: dict[tuple[str, str | None], list[int]] = {}
    for line in lines:
        if line.number is None or line.number > len(written):
            continue
        item = replaceable(line, written[line.number - 1], prompt.kind)
        if item is not None and (item.query_id, item.facet_id) in keys:
            numbers.setdefault((item.query_id, item.facet_id), []).append(line.number)
    return numbers


def _has_items(items: Collection[Item], request: ItemRequest, prompt: ItemPrompt) -> bool:
    return any(
        item.kind == prompt.kind and (request.facet_id is None or item.facet_id == request.facet_id)
        for item in items
    )


class Subtopic(NamedTuple):
    """A sub-topic of a query. `facet_id` is its text where the file gives it no id."""

    query_id: str
    facet_id: str
    text: str


def read_subtopics(path: str | os.PathLike[str]) -> Iterator[Subtopic]:
    """The sub-topics in a file's order; lines may have an id, `query_id<TAB>facet_id<TAB>subtopic`.

    A header line with these names is skipped.

    Raises:
        ConversionError: with the line: another number of columns, an empty one, the same id twice, or an
            empty file.
    """
    seen: dict[tuple[str, str], int] = {}
    for number, line in iter_filled(path):
        columns = tuple(part.strip() for part in decode(path, number, line).split("\t"))
        if number == 1 and tuple(column.lower() for column in columns) in _HEADERS:
            continue
        if len(columns) not in (2, 3) or not all(columns):
            raise ConversionError(
                path, number, "a line is `query_id<TAB>subtopic`, or `query_id<TAB>facet_id<TAB>subtopic`"
            )
        subtopic = Subtopic(columns[0], columns[1], columns[-1])
        first = seen.setdefault(subtopic[:2], number)
        if first != number:
            raise ConversionError(
                path,
                number,
                f"sub-topic '{subtopic.facet_id}' of query '{subtopic.query_id}' occurs twice (first on line "
                f"{first})",
            )
        yield subtopic
    if not seen:
        raise ConversionError(path, None, "the file has no sub-topics")
