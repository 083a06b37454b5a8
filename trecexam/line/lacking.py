"""Missing inputs of a track folder; no grader is made, as that may fetch a model."""

from __future__ import annotations

from collections.abc import Iterator

import converters
from converters.errors import ConversionError
from converters.lines import head
from converters.scored_rows import has_texts
from trecexam.bank.model import QUERY
from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder
from trecexam.graders.base import ITEM_KINDS
from trecexam.graders.prompts import named
from trecexam.graders.registry import is_standard
from trecexam.line.track_graders import declared_kind, kind_of

_PROMPTED = ("seq2seq", "causal", "openai")


def lacking(folder: TrackFolder) -> tuple[str, ...]:
    """Name each input that the grader needs and the folder does not have, with what to do.

    Recordings, and graders from elsewhere, may need no bank and no texts: they name what they lack when they
    are used.
    """
    grader, kind = folder.config.grader, declared_kind(folder)
    if grader.name == "recorded" or not is_standard(grader.name):
        return ()
    kinds = ITEM_KINDS
    if grader.name in _PROMPTED and grader.prompt:
        kinds = frozenset((named(grader.prompt, folder.root).asks,))
    lines: list[str] = []
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
    has_passages = folder.passages() is not None or folder.config.track.dataset is not None
    # Answers bring their texts along.
    if not has_passages and grader.name != "ragval" and not any(_brings_texts(folder)):
        lines.append(
            f'{folder.root}: no passages: put passages.jsonl here, one {{"docid", "text"}} a line, or set '
            "`dataset` in [track]; generated responses bring their texts along"
        )
    return tuple(lines)


def _brings_texts(folder: TrackFolder) -> Iterator[bool]:
    """Yield True for each file in the drop folder that is more than a ranking of ids."""
    for path in folder.run_files():
        try:
            yield converters.sniff(path) != "run" or has_texts(head(path))
        except ConversionError:
            yield False
