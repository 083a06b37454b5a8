"""What a track folder lacks before its grader can grade; no grader is made, as that may fetch a model."""

from __future__ import annotations

from collections.abc import Iterator

import converters
from converters.errors import ConversionError
from converters.gold import KIND as GOLD
from converters.lines import head
from converters.scored_rows import has_texts
from trecexam.bank.model import QUERY
from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder
from trecexam.graders.base import ITEM_KINDS
from trecexam.graders.prompts import DEFAULT, named
from trecexam.graders.registry import is_standard
from trecexam.line.input_files import read_bank_file
from trecexam.line.inputs import query_texts
from trecexam.line.track_graders import declared_kind, kind_of
from trecexam.tables.text import plural

_PROMPTED = ("seq2seq", "causal", "openai")


def lacking(folder: TrackFolder) -> tuple[str, ...]:
    """A line for each thing that the grader needs and the folder does not have: what, and what to do.

    A recording is looked at when it is read: it may need no bank and no texts. What a grader from elsewhere
    needs is not known before it is made. A track with a dataset has queries and passages there.
    """
    grader, dataset = folder.config.grader, folder.config.track.dataset
    if grader.name == "recorded" or not is_standard(grader.name):
        return ()
    kinds, why = _asked(folder)
    lines: list[str] = []
    kind = declared_kind(folder)
    if kind is not None and grader.name not in kind.graders:
        try:
            kind_of(folder, kinds)
        except TrecexamError as error:
            return (str(error),)
    to_be_written = folder.write_bank is not None and folder.config.has_writer
    if kinds != {QUERY} and (kind is None or kind.items is None) and not to_be_written:
        try:
            folder.bank()
        except TrecexamError as error:
            lines.append(str(error))
    if why and dataset is None:
        lines += _query_texts(folder, kinds, why)
    brings = grader.name == "ragval" or dataset is not None or folder.passages() is not None
    if not brings and not any(_brings_texts(folder)):
        lines.append(
            f'{folder.root}: no passages: put passages.jsonl here, one {{"docid", "text"}} a line, or set '
            "`dataset` in [track]; generated responses bring their texts along"
        )
    return tuple(lines)


def _asked(folder: TrackFolder) -> tuple[frozenset[str], str]:
    """The kinds of items that the grader asks about, and what asks with the query's text; "" for nothing."""
    grader = folder.config.grader
    if grader.name == "erag":
        return frozenset({GOLD}), "`erag`"
    if grader.name not in _PROMPTED:
        return ITEM_KINDS, ""
    prompts = [named(name, folder.root) for name in ((grader.prompt,) if grader.prompt else DEFAULT)]
    needing = next((prompt for prompt in prompts if prompt.needs_query_text or prompt.asks == QUERY), None)
    return frozenset(prompt.asks for prompt in prompts), f"prompt {needing.name}" if needing else ""


def _query_texts(folder: TrackFolder, kinds: frozenset[str], why: str) -> Iterator[str]:
    path = folder.queries()
    try:
        texts = query_texts(folder).keys()
        banks = [read_bank_file(bank)[0] for bank in folder.bank(optional=True)]
    except (ConversionError, TrecexamError):
        # What cannot be read is named when the track is read.
        return
    without = len({item.query_id for bank in banks for item in bank} - texts)
    if without or (kinds == {QUERY} and not texts):
        which = f"{plural(without, 'query')} of the bank" if without else "the queries"
        verb = "has" if without == 1 else "have"
        where = path or folder.root
        yield (
            f"{where}: {which} {verb} no text, and {why} asks with it: put `query_id<TAB>text` lines into "
            f"{folder.root / 'queries.tsv' if path is None else path}, or set `dataset` in [track]"
        )


def _brings_texts(folder: TrackFolder) -> Iterator[bool]:
    """Of each file in the drop folder, whether it is more than a ranking of ids."""
    for path in folder.run_files():
        try:
            yield converters.sniff(path) != "run" or has_texts(head(path))
        except ConversionError:
            yield False
