"""Which of the missing cells are graded first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.bank.model import asked_digest
from trecexam.graders.base import Cell
from trecexam.line.assessment import Assessment
from trecexam.line.pool import PooledQuery
from trecexam.line.sheets import MISSING, Sheet

#: Is added to all weights, so that of passages that no run has the most promising items come first, too.
_LEAST = 0.1
#: What a run adds to the passage at each rank; nothing to those below.
_AT_RANK = np.concatenate([1 / np.log2(np.arange(10) + 2), np.full(10, 0.1)])


class MissingRow(NamedTuple):
    """A passage without all of its grades: its sheet, its row there, and the items' columns."""

    sheet: Sheet
    row: int
    columns: NDArray[np.intp]

    def cell(self, track: Assessment, column: int) -> Cell:
        """The cell at this column."""
        sheet, text = self.sheet, self.sheet.texts[self.row]
        assert text is not None
        query_text = track.query_texts.get(sheet.query_id, "")
        doc_id, item = sheet.doc_ids[self.row], sheet.items[column]
        if track.asked.recorded_as is not None:
            item = item._replace(item_id=track.asked.recorded_as(sheet.query_id, item.item_id, doc_id))
        return Cell(sheet.query_id, query_text, doc_id, text, item)


def missing_rows(
    track: Assessment, only: Mapping[str, Collection[str]] | None = None
) -> Iterator[MissingRow]:
    """Every cell that has a text and no grade of any kind, a passage at a time; equal cells once.

    Where texts are graded on some items only, it is cell by cell, in the items' order.

    Args:
        only: query_id -> the doc_ids whose cells are meant; None for all.
    """
    # How many queries ask an item.
    uses = Counter(asked_digest(item) for sheet in track.sheets.values() for item in sheet.items)
    queued_cells: set[tuple[str, bytes]] = set()
    for query_id, sheet in track.sheets.items():
        seen: set[str] = set()
        digests = [asked_digest(item) for item in sheet.items]
        shared = np.array([uses[digest] > 1 for digest in digests], np.bool_)
        any_shared = bool(shared.any())
        chosen_ids = None if only is None else frozenset(only.get(query_id, ()))
        if sheet.cells is not None:
            rows, of_cells = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
            for at in np.argsort(of_cells, kind="stable"):
                row, columns = int(rows[at]), of_cells[at : at + 1]
                key = sheet.texts[row] or "", digests[columns[0]]
                if key not in queued_cells and (chosen_ids is None or sheet.doc_ids[row] in chosen_ids):
                    queued_cells.add(key)
                    yield MissingRow(sheet, row, columns)
            continue
        for row, text in enumerate(sheet.texts):
            if (
                text is None
                or text in seen
                or (chosen_ids is not None and sheet.doc_ids[row] not in chosen_ids)
            ):
                continue
            seen.add(text)
            columns = (sheet.codes[row] == MISSING).nonzero()[0]
            # Only items that stand more than once can ask the same thing twice.
            if any_shared:
                new = []
                for column in columns.tolist():
                    if shared[column] and (text, digests[column]) in queued_cells:
                        continue
                    new.append(column)
                    queued_cells.add((text, digests[column]))
                columns = np.array(new, np.intp)
            if len(columns):
                yield MissingRow(sheet, row, columns)


def is_useful(track: Assessment) -> bool:
    """Whether the most useful cells are graded first, and outputs are written along the way."""
    order = track.config.cells.order
    if not track.kind.ranks:
        # Nothing says that a passage without a rank is more useful than another.
        return False
    return track.grader.cells_share is not None if order is None else order == "useful"


def ranks_items(track: Assessment) -> bool:
    """Whether the cells of a passage are put in an order, and may be parted."""
    # Read more than once, the beginning of shared prompts costs more than an order within passages is worth.
    return is_useful(track) and track.grader.cells_share not in ("prompts", "answer")


def cell_scores(track: Assessment) -> Mapping[str, NDArray[np.float64]]:
    """query_id -> how useful each cell is, shape (passages, items): the weight of the passage, see
    `retrieved_weights`, divided by the place of the item among those of the passage, counted from 1.
    """
    return {
        query_id: (_weights(track.pool[query_id]) + _LEAST)[:, None] / (ranks + 1)
        for query_id, ranks in item_places(track).items()
    }


def item_places(track: Assessment) -> Mapping[str, NDArray[np.intp]]:
    """Rank the items of each passage by the words that both share; arrays of shape (passages, items).

    Words that few passages have weigh more. The first rank is 0; equal items keep the bank's order.
    """
    places = {}
    for query_id, sheet in track.sheets.items():
        common = _common_words([text or "" for text in sheet.texts], [item.text for item in sheet.items])
        places[query_id] = np.argsort(np.argsort(-common, axis=1, kind="stable"), axis=1, kind="stable")
    return places


def _common_words(passages: Sequence[str], items: Sequence[str]) -> NDArray[np.float64]:
    """Shape (passages, items): the share of an item's words that a passage has, each weighed by its idf."""
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


def useful_cells(
    track: Assessment,
    only: Mapping[str, Collection[str]] | None = None,
) -> Iterator[Cell]:
    """The missing cells of a track, the most useful ones first.

    They go by `cell_scores`. Cells of a passage that share their prompts or an answer stay together and go by
    its weight.

    Args:
        only: query_id -> the doc_ids whose cells are meant; None for all.
    """
    rows = list(missing_rows(track, only))
    lengths = [len(row.columns) for row in rows]
    #: Of each cell its passage, as a number of `rows`, and its item's column.
    passage = np.repeat(np.arange(len(rows)), lengths)
    column = np.concatenate([np.empty(0, np.intp), *(row.columns for row in rows)])
    if ranks_items(track):
        scores = cell_scores(track)
        of_rows = (scores[row.sheet.query_id][row.row, row.columns] for row in rows)
        useful = np.concatenate([np.empty(0), *of_rows])
    else:
        weights = {query_id: _weights(pooled) for query_id, pooled in track.pool.items()}
        useful = np.array([weights[row.sheet.query_id][row.row] for row in rows])[passage]
    for at in np.argsort(-useful, kind="stable").tolist():
        yield rows[passage[at]].cell(track, int(column[at]))


def _weights(pooled: PooledQuery) -> NDArray[np.float64]:
    return retrieved_weights(pooled.ranks, len(pooled.doc_ids))


def retrieved_weights(ranks: NDArray[np.int32], n: int) -> NDArray[np.float64]:
    """The sum over runs of 1 / log2(rank + 1) down to rank 10, and of 0.1 to rank 20; shape (n,).

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
