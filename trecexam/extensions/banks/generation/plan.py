"""Finds the queries or sub-topics for which a model must write items."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from converters.bank_lines import BankLine, scan_bank
from converters.errors import ConversionError
from converters.lines import decode, iter_filled, open_input
from converters.records import Item
from trecexam.bank.model import folded
from trecexam.errors import TrackError, TrecexamError
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.lines import replaceable
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.inputs.missing_banks import lines_of, read_target

_HEADERS = (("query_id", "subtopic"), ("query_id", "facet_id", "subtopic"))


@dataclass(frozen=True)
class BankPlan:
    """The requests to the model, and the changes of the file.

    Attributes:
        requests: in the order of the queries.
        output: the file that items go to; `content` is what it holds now.
        known: query_id -> folded texts of the items that stay, of all files of the bank, former texts too: an
            edited item is not to come again.
        replaced_lines: (query_id, facet_id) -> numbers of lines of `output`, from 1, that a model wrote and
            nobody edited; they give way to new ones, if there are.
        whole: nothing is written before every query is through.
        asks_again: a sentence that says how to send prompts again whose answers cannot be read.
    """

    requests: tuple[ItemRequest, ...]
    output: Path
    content: bytes
    known: Mapping[str, set[tuple[str, ...]]]
    replaced_lines: Mapping[tuple[str, str | None], Sequence[int]]
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
    """Plan requests for queries without an item of the prompt's kind; with `again` for all queries."""
    content = read_target(folder, target)
    requests = tuple(_requests(folder, prompt, _queries(folder, query_ids)))
    keys = {(request.query_id, request.facet_id) for request in requests} if again else set()
    written = lines_of(content)
    kept: dict[str, list[Item]] = {}
    replaced: dict[tuple[str, str | None], list[int]] = {}
    for path in {*folder.bank(optional=True), target}:
        for line in _lines(path):
            number = line.number or 0
            in_target = path == target and 0 < number <= len(written)
            item = replaceable(line, written[number - 1], prompt.kind) if in_target else None
            if item is not None and (item.query_id, item.facet_id) in keys:
                replaced.setdefault((item.query_id, item.facet_id), []).append(number)
                continue
            for each in line.items:
                kept.setdefault(each.query_id, []).append(each)
    lacking = (
        request
        for request in requests
        if again
        or not any(
            item.kind == prompt.kind and request.facet_id in (None, item.facet_id)
            for item in kept.get(request.query_id, ())
        )
    )
    known = {query_id: _texts(items) for query_id, items in kept.items()}
    return BankPlan(tuple(lacking), target, content, known, replaced)


def _lines(path: Path) -> Iterator[BankLine]:
    """Yield the lines of a file of the bank, which may be missing or blank."""
    with suppress(OSError), open_input(path) as file:
        if not file.read().strip():
            return
    for line in scan_bank(path) if path.exists() else ():
        if line.error is not None:
            raise line.error
        yield line


def _texts(items: Iterable[Item]) -> set[tuple[str, ...]]:
    both = ((item.text, item.origin.text if item.origin else "") for item in items)
    return {folded(text) for texts in both for text in texts if text.strip()}


def _queries(folder: TrackFolder, query_ids: Collection[str]) -> dict[str, str]:
    """query_id -> text of these queries of the track; of all if none is named."""
    texts = query_texts(folder)
    if not texts:
        raise TrackError("no queries: put queries.tsv here, `query_id<TAB>text`", path=folder.root)
    unknown = [query_id for query_id in query_ids if query_id not in texts]
    if unknown:
        raise TrecexamError(f"the track has no query '{unknown[0]}'", path=folder.root)
    return {query_id: text for query_id, text in texts.items() if not query_ids or query_id in query_ids}


def _requests(folder: TrackFolder, prompt: ItemPrompt, texts: Mapping[str, str]) -> Iterator[ItemRequest]:
    if not prompt.by_subtopic:
        yield from (ItemRequest(query_id, text) for query_id, text in texts.items())
        return
    path = folder.root / "subtopics.tsv"
    if not path.exists():
        reason = f"prompt {prompt.name} asks about sub-topics: put `query_id<TAB>subtopic` lines here"
        raise TrecexamError(reason, path=path)
    rows = list(read_subtopics(path))
    if not any(row.query_id in texts for row in rows):
        raise TrecexamError("the track has none of these queries", path=path)
    for query_id, text in texts.items():
        yield from (row._replace(query_text=text) for row in rows if row.query_id == query_id)


def read_subtopics(path: Path) -> Iterator[ItemRequest]:
    """Yield the sub-topics of a file in its order, without the queries' texts.

    A line is `query_id<TAB>subtopic`, or has an id, `query_id<TAB>facet_id<TAB>subtopic`; without one, the
    sub-topic is its id. A header line with these names is skipped.
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
        query_id, facet_id = columns[:2]
        first = seen.setdefault((query_id, facet_id), number)
        if first != number:
            what = f"sub-topic '{facet_id}' of query '{query_id}'"
            raise ConversionError(path, number, f"{what} occurs twice (first on line {first})")
        yield ItemRequest(query_id, "", columns[-1], facet_id)
    if not seen:
        raise ConversionError(path, None, "the file has no sub-topics")
