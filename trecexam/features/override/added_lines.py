"""Functions to add lines to overrides.tsv or judgments.tsv, and to find a person's earlier lines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from converters.errors import ConversionError
from converters.lines import open_input
from converters.overrides import ADJUDICATED, UNDONE, overrides_in, with_overrides
from converters.records import HumanRating
from trecexam.errors import TrecexamError
from trecexam.files import atomic as files
from trecexam.inputs.overrides import REFUSED, Decision, Overrides, takes_back


def add_lines(path: Path, rows: Sequence[HumanRating], *, known_too: bool = True) -> int:
    """Add lines to a file, create a missing file, and return the number of added lines.

    `known_too`: also add lines that the file has already. A file that would change otherwise stays untouched.
    """
    content = b""
    try:
        with open_input(path) as file:
            content = file.read()
    except FileNotFoundError:
        if not Path(os.path.realpath(path)).parent.is_dir():
            raise TrecexamError("is a link into a folder that is not there", path=path) from None
    except OSError as error:
        raise TrecexamError(f"cannot be read: {error.strerror}", path=path) from None
    try:
        # Every update reports rejected lines; a wrong header rejects all lines.
        added = with_overrides(content, rows)
        if not known_too:
            # The same line means something else under other columns.
            existing, new = Counter(overrides_in(content)), []
            for row, as_read in zip(rows, overrides_in(added)[-len(rows) :], strict=True):
                existing[as_read] -= 1
                if existing[as_read] < 0:
                    new.append(row)
            rows, added = new, with_overrides(content, new) if new else content
    except ConversionError as error:
        raise TrecexamError(
            f"{error.reason}; nothing is added until that is mended", path=path, line=error.line
        ) from None
    except ValueError as error:
        raise TrecexamError(str(error), path=path) from None
    if content and added.startswith(content):
        files.append(path, added[len(content) :])
    elif added != content:
        # Keep a symbolic link.
        files.replace(Path(os.path.realpath(path)), added)
    return len(rows)


def lines_of_writer(
    overrides: Overrides, texts: Mapping[str, str | None], row: HumanRating
) -> list[Decision]:
    """Return the earlier lines of a line's writer on the same cell, or on a cell with the same text."""
    text = texts[row.doc_id]
    return [
        decision
        for decision in overrides.decisions
        if decision.state != REFUSED
        and (decision.row.who, decision.row.item_id) == (row.who, row.item_id)
        and (decision.row.kind == ADJUDICATED) == (row.kind == ADJUDICATED)
        and (
            decision.row.doc_id == row.doc_id or (text is not None and texts.get(decision.row.doc_id) == text)
        )
    ]


def earlier_opinion(spoken: Iterable[Decision]) -> HumanRating | None:
    """Return a person's rating before the current one, from her lines; None if there is none."""
    opinions: list[HumanRating] = []
    for _, row, _ in spoken:
        if takes_back(row):
            opinions.clear()
        elif row.kind != UNDONE:
            opinions.append(row)
        else:
            del opinions[-1:]
            # A person may have edited the file.
            if not opinions or without_circumstances(opinions[-1]) != without_circumstances(row):
                opinions = [row]
    return opinions[-2] if len(opinions) > 1 else None


def without_circumstances(row: HumanRating) -> HumanRating:
    """Return the line without time, duration and kind."""
    return row._replace(when="", seconds=None, kind="")
