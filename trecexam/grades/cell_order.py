"""The order in which missing cells are graded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.bank.model import asked_digest
from trecexam.graders.base import Cell
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.sheets import MISSING, Sheet

#: Is added to all weights, so that of passages that no run has the most promising items come first, too.
_LEAST = 0.1
#: What a run adds to the passage at each rank; nothing to those below.
_AT_RANK = np.concatenate([1 / np.log2(np.arange(10) + 2), np.full(10, 0.1)])


class MissingRow(NamedTuple):
    """A passage without all of its grades: its sheet, its row there, and the items' columns."""

    sheet: Sheet
    row: int
    columns: Sequence[int]

    def cell(self, track: GradedTrack, column: int) -> Cell:
        """Return the cell at this column."""
        sheet, text = self.sheet, self.sheet.texts[self.row]
        assert text is not None
        query_text = track.query_texts.get(sheet.query_id, "")
        doc_id, item = sheet.doc_ids[self.row], sheet.items[column]
        if track.asked.recorded_as is not None:
            item = item._replace(item_id=track.asked.recorded_as(sheet.query_id, item.item_id, doc_id))
        return Cell(sheet.query_id, query_text, doc_id, text, item)


def missing_rows(
    track: GradedTrack, only: Mapping[str, Collection[str]] | None = None
) -> Iterator[MissingRow]:
    """Yield each passage with the cells that have a text and no grade of any kind; equal cells once.

    Where texts are graded on some items only, it is cell by cell, in the items' order.

    Args:
        only: query_id -> the doc_ids whose cells are meant; None for all.
    """
    # Only queries with common items can ask the same twice of a text.
    uses = Counter(asked_digest(item) for sheet in track.sheets.values() for item in sheet.items)
    queued_anywhere: set[tuple[str | None, bytes]] = set()
    for query_id, sheet in track.sheets.items():
        digests = [*map(asked_digest, sheet.items)]
        queued = queued_anywhere if any(uses[digest] > 1 for digest in digests) else set()
        chosen_ids = frozenset(sheet.doc_ids if only is None else only.get(query_id, ()))
        rows, columns = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
        if not len(rows):
            continue
        if sheet.cells is None:
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
        else:
            by_item = np.argsort(columns, kind="stable")
            rows, columns, starts = rows[by_item], columns[by_item], np.arange(len(rows))
        for row, of_row in zip(rows[starts].tolist(), np.split(columns, starts[1:]), strict=True):
            if sheet.doc_ids[row] not in chosen_ids:
                continue
            text = sheet.texts[row]
            new = []
            for column in of_row.tolist():
                if (cell := (text, digests[column])) not in queued:
                    queued.add(cell)
                    new.append(column)
            if new:
                yield MissingRow(sheet, row, new)


def is_useful(track: GradedTrack) -> bool:
    """Return True where the most useful cells are graded first, and outputs are written along the way."""
    # Nothing says that a passage without a rank is more useful than another.
    if not track.kind.ranks:
        return False
    order = track.config.cells.order
    return track.grader.cells_share is not None if order is None else order == "useful"


def cell_scores(track: GradedTrack, sheet: Sheet) -> NDArray[np.float64]:
    """Return how useful each cell of a query is, shape (passages, items).

    It is the weight of the passage, see `retrieved_weights`. Where items are ranked it is divided by the
    place of the item among those of the passage, from 1: first those that share most words with the passage,
    of which words that few passages have weigh more; equal items keep the bank's order.
    """
    pooled, n_items = track.pool[sheet.query_id], len(sheet.items)
    weights = retrieved_weights(pooled.ranks, len(pooled.doc_ids))
    # Read more than once, the beginning of shared prompts costs more than an order within passages is worth.
    if track.grader.cells_share in ("prompts", "answer"):
        return np.repeat(weights[:, None], n_items, axis=1)
    common = _common_words([text or "" for text in sheet.texts], [item.text for item in sheet.items])
    places = np.argsort(np.argsort(-common, axis=1, kind="stable"), axis=1, kind="stable")
    scores: NDArray[np.float64] = (weights + _LEAST)[:, None] / (places + 1)
    return scores


def _common_words(passages: Sequence[str], items: Sequence[str]) -> NDArray[np.float64]:
    """Return the share of an item's words that a passage has, weighed by idf; shape (passages, items)."""
    of_items = [set(_words(item)) for item in items]
    column = {word: at for at, word in enumerate(sorted(set().union(*of_items)))}
    asks = np.zeros((len(items), len(column)))
    has = np.zeros((len(passages), len(column)))
    for at, words in enumerate(of_items):
        asks[at, [column[word] for word in words]] = 1
    for at, passage in enumerate(passages):
        has[at, [column[word] for word in set(_words(passage)) if word in column]] = 1
    idf = np.log1p(len(passages) / (has.sum(axis=0) + 0.5))
    return np.asarray(has @ (asks * idf).T / np.maximum(asks @ idf, 1e-9))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def useful_cells(track: GradedTrack, only: Mapping[str, Collection[str]] | None = None) -> Iterator[Cell]:
    """Yield the cells of `missing_rows`, the most useful ones first, see `cell_scores`."""
    rows = list(missing_rows(track, only))
    scores = {query_id: cell_scores(track, sheet) for query_id, sheet in track.sheets.items()}
    # The row of each cell, as an index of `rows`, and its item's column.
    passage = np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows])
    column = [column for row in rows for column in row.columns]
    useful = [scores[row.sheet.query_id][row.row, row.columns] for row in rows]
    for at in np.argsort(-np.concatenate([np.empty(0), *useful]), kind="stable").tolist():
        yield rows[passage[at]].cell(track, column[at])


def retrieved_weights(ranks: NDArray[np.int32], n: int) -> NDArray[np.float64]:
    """Return the sum over runs of 1 / log2(rank + 1) down to rank 10, and of 0.1 to rank 20; shape (n,).

    Rounded, as the order of the runs must not decide between passages.

    Args:
        ranks: shape (runs, depth): the place of the passage at each rank; -1 for none.
        n: how many passages there are.
    """
    at_rank = ranks[:, : len(_AT_RANK)]
    is_retrieved = at_rank >= 0
    # numpy.add.at reads beyond weights that are to be repeated for each run (numpy 2.4.6).
    adds = np.broadcast_to(_AT_RANK[: at_rank.shape[1]], at_rank.shape)[is_retrieved]
    return np.round(np.bincount(at_rank[is_retrieved], adds, minlength=n), 9)
