"""What a track's bank lacks: which queries, or sub-topics of queries, a model is to be asked about."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from converters.bank_lines import BankLine, scan_bank
from converters.records import Item
from converters.subtopics import read_subtopics
from trecexam.bank.lines import lines_of, replaceable
from trecexam.errors import TrackError, TrecexamError
from trecexam.features.banks.generation.prompts import ItemPrompt, Wanted
from trecexam.line.bank_target import check_target
from trecexam.line.inputs import InputReader
from trecexam.track import TrackFolder


@dataclass(frozen=True)
class Plan:
    """What is to be asked, and what becomes of the file.

    Attributes:
        wanted: in the order of the queries.
        output: the file that items go to; `content` is what it holds now.
        kept: query_id -> items that stay, of all files of the bank.
        dropped: numbers of the lines of each (query_id, facet_id) that give way to new ones, if there are.
    """

    wanted: tuple[Wanted, ...]
    output: Path
    content: bytes
    kept: Mapping[str, tuple[Item, ...]]
    dropped: Mapping[tuple[str, str | None], tuple[int, ...]]


def plan(
    folder: TrackFolder,
    prompt: ItemPrompt,
    *,
    query_ids: Collection[str] = (),
    output: Path | None = None,
    subtopics: Path | None = None,
    again: bool = False,
) -> Plan:
    """What is to be asked about: queries that have no item of the prompt's kind; with `again` all.

    Raises:
        ConversionError: a file of the bank, the queries or the sub-topics cannot be read.
        TrecexamError: there are no queries, one that is named is unknown, the output would not be a file of
            the bank, or the prompt needs sub-topics.
    """
    target = folder.root / f"bank.{prompt.kind}s.jsonl" if output is None else output
    check_target(folder, target)
    texts = InputReader(folder).query_texts()
    if not texts:
        raise TrackError("no queries: put queries.tsv here, `query_id<TAB>text`", path=folder.root)
    unknown = [query_id for query_id in query_ids if query_id not in texts]
    if unknown:
        raise TrecexamError(f"the track has no query '{unknown[0]}'", path=folder.root)
    chosen = {each: texts[each] for each in texts if not query_ids or each in query_ids}
    wanted = list(_wanted(folder, prompt, chosen, subtopics))
    # Before it is looked at: an edit in between is then seen when it is written.
    content = b""
    with suppress(OSError):
        content = target.read_bytes()
    lines = {path: tuple(scan_bank(path)) for path in {*folder.bank(optional=True), target} if path.exists()}
    for path, found in lines.items():
        error = next((line.error for line in found if line.error is not None), None)
        # An empty file is one that somebody has just made.
        if error is not None and not _is_blank(path):
            raise error
    asked = {(one.query_id, one.facet_id) for one in wanted} if again else set()
    going = _going(lines.get(target, ()), lines_of(content), prompt, asked)
    gone = {number for numbers in going.values() for number in numbers}
    kept: dict[str, list[Item]] = {}
    for path, found in lines.items():
        for line in found:
            if path != target or line.number not in gone:
                for item in line.items:
                    kept.setdefault(item.query_id, []).append(item)
    if not again:
        wanted = [one for one in wanted if not _has(kept.get(one.query_id, ()), one, prompt)]
    return Plan(tuple(wanted), target, content, {key: tuple(each) for key, each in kept.items()}, going)


def _is_blank(path: Path) -> bool:
    with suppress(OSError):
        return not path.read_bytes().strip()
    return False


def _wanted(
    folder: TrackFolder, prompt: ItemPrompt, texts: Mapping[str, str], subtopics: Path | None
) -> Iterator[Wanted]:
    if not prompt.by_subtopic:
        if subtopics is not None:
            raise TrecexamError(f"prompt {prompt.name} does not ask about sub-topics", path=subtopics)
        yield from (Wanted(query_id, text) for query_id, text in texts.items())
        return
    path = folder.root / "subtopics.tsv" if subtopics is None else subtopics
    if not path.exists():
        raise TrecexamError(
            f"prompt {prompt.name} asks about sub-topics: put `query_id<TAB>subtopic` lines here, or name a "
            "file with --subtopics",
            path=path,
        )
    found = list(read_subtopics(path))
    if not any(one.query_id in texts for one in found):
        raise TrecexamError("none of these queries is in the track", path=path)
    for query_id, text in texts.items():
        for one in found:
            if one.query_id == query_id:
                yield Wanted(query_id, text, one.text, one.facet_id)


def _going(
    lines: tuple[BankLine, ...],
    written: Sequence[bytes],
    prompt: ItemPrompt,
    asked: Collection[tuple[str, str | None]],
) -> dict[tuple[str, str | None], tuple[int, ...]]:
    found: dict[tuple[str, str | None], list[int]] = {}
    for line in lines:
        if line.number is None or line.number > len(written):
            continue
        item = replaceable(line, written[line.number - 1], prompt.kind)
        if item is not None and (item.query_id, item.facet_id) in asked:
            found.setdefault((item.query_id, item.facet_id), []).append(line.number)
    return {key: tuple(numbers) for key, numbers in found.items()}


def _has(items: Collection[Item], wanted: Wanted, prompt: ItemPrompt) -> bool:
    return any(
        item.kind == prompt.kind and (wanted.facet_id is None or item.facet_id == wanted.facet_id)
        for item in items
    )
