"""What one person said of a cell, line by line: what stands, and what an undo brings back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from converters.overrides import ADJUDICATED, UNDONE
from converters.records import HumanRating
from trecexam.line.overrides import REFUSED, Decision, Overrides, takes_back


def lines_of_writer(known: Overrides, texts: Mapping[str, str | None], row: HumanRating) -> list[Decision]:
    """What the writer of a line said before of the same cell, or of one with the same text."""
    text = texts[row.doc_id]
    return [
        decision
        for decision in known.decisions
        if decision.state != REFUSED
        and (decision.row.who, decision.row.item_id) == (row.who, row.item_id)
        and (decision.row.kind == ADJUDICATED) == (row.kind == ADJUDICATED)
        and (
            decision.row.doc_id == row.doc_id or (text is not None and texts.get(decision.row.doc_id) == text)
        )
    ]


def earlier_opinion(spoken: Iterable[Decision]) -> HumanRating | None:
    """What a person said before what she says now; None where that was nothing."""
    opinions: list[HumanRating] = []
    for _, row, _ in spoken:
        if takes_back(row):
            opinions.clear()
        elif row.kind != UNDONE:
            opinions.append(row)
        else:
            del opinions[-1:]
            # Somebody may have edited the file.
            if not opinions or without_circumstances(opinions[-1]) != without_circumstances(row):
                opinions = [row]
    return opinions[-2] if len(opinions) > 1 else None


def without_circumstances(row: HumanRating) -> HumanRating:
    """The line without what a person did not say."""
    return row._replace(when="", seconds=None, kind="")
