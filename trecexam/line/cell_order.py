"""Which of the missing cells are graded first, which can change no label any more, and which are left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trecexam.bank.model import asked_digest
from trecexam.graders.base import Answer, Cell
from trecexam.line.assessment import Assessment
from trecexam.line.pool import PooledQuery
from trecexam.line.sheets import MISSING, Sheet
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.retrieved import retrieved_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: query_id -> int of shape (passages, items): the place of the item among those of the passage, the most
#: promising one at 0.
ItemPlaces = Mapping[str, "NDArray[np.intp]"]

#: Is added to all weights, so that of passages that no run has the most promising items come first, too.
_LEAST = 0.1


class MissingRow(NamedTuple):
    """A passage without all of its grades: its sheet, its row there, and the items' columns.

    `shared` says of each of these whether another query asks the same item.
    """

    sheet: Sheet
    row: int
    columns: NDArray[np.intp]
    shared: NDArray[np.bool_]

    @property
    def passage(self) -> tuple[str, str | None]:
        """What tells it from others: the query and the text."""
        return self.sheet.query_id, self.sheet.texts[self.row]

    def cell(self, track: Assessment, column: int) -> Cell:
        """The cell at this column."""
        sheet, text = self.sheet, self.sheet.texts[self.row]
        assert text is not None
        query_text = track.query_texts.get(sheet.query_id, "")
        return Cell(sheet.query_id, query_text, sheet.doc_ids[self.row], text, sheet.items[column])


def missing_rows(
    track: Assessment, only: Mapping[str, Collection[str]] | None = None
) -> Iterator[MissingRow]:
    """Every cell that has a text and no grade of any kind, a passage at a time; equal cells once.

    Where texts are asked about some items only, it is cell by cell, in the items' order.

    Args:
        only: query_id -> the doc_ids whose cells are meant; None for all.
    """
    uses = _uses(track)
    asked: set[tuple[str, bytes]] = set()
    for query_id, sheet in track.sheets.items():
        seen: set[str] = set()
        digests = [asked_digest(item) for item in sheet.items]
        shared = np.array([uses[digest] > 1 for digest in digests], np.bool_)
        any_shared = bool(shared.any())
        meant = None if only is None else frozenset(only.get(query_id, ()))
        if sheet.cells is not None:
            rows, of_cells = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
            for at in np.argsort(of_cells, kind="stable"):
                row, columns = int(rows[at]), of_cells[at : at + 1]
                key = sheet.texts[row] or "", digests[columns[0]]
                if key not in asked and (meant is None or sheet.doc_ids[row] in meant):
                    asked.add(key)
                    yield MissingRow(sheet, row, columns, shared[columns])
            continue
        for row, text in enumerate(sheet.texts):
            if text is None or text in seen or (meant is not None and sheet.doc_ids[row] not in meant):
                continue
            seen.add(text)
            columns = (sheet.codes[row] == MISSING).nonzero()[0]
            # Only items that stand more than once can ask the same thing twice.
            if any_shared:
                new = []
                for column in columns.tolist():
                    if shared[column] and (text, digests[column]) in asked:
                        continue
                    new.append(column)
                    asked.add((text, digests[column]))
                columns = np.array(new, np.intp)
            if len(columns):
                yield MissingRow(sheet, row, columns, shared[columns])


def is_useful(track: Assessment) -> bool:
    """Whether the most useful cells are graded first, and outputs are written along the way."""
    order = track.config.cells.order
    return track.traits.cells_share is not None if order is None else order == "useful"


def ranks_items(track: Assessment) -> bool:
    """Whether the cells of a passage are put in an order, and may be parted."""
    share = track.traits.cells_share
    if share == "prompts":
        # Read more than once, their beginning costs more than an order within passages is worth.
        return is_useful(track) and track.config.cells.stop is not None
    return is_useful(track) and share != "answer"


def cell_scores(track: Assessment, places: ItemPlaces) -> Mapping[str, NDArray[np.float64]]:
    """query_id -> how useful each cell is, shape (passages, items): the weight of the passage, see
    `retrieved_weights`, divided by the place of the item among those of the passage, counted from 1.
    """
    return {
        query_id: (_weights(track.pool[query_id]) + _LEAST)[:, None] / (place + 1)
        for query_id, place in places.items()
    }


def places_by(promise: NDArray[np.floating]) -> NDArray[np.intp]:
    """The place of each item among those of its passage, by falling promise; equals in the bank's order."""
    return np.argsort(np.argsort(-promise, axis=1, kind="stable"), axis=1, kind="stable")


def item_places(track: Assessment) -> ItemPlaces:
    """Items by the words that they share with a passage; those that few passages have weigh more."""
    return {
        query_id: places_by(
            _common_words([text or "" for text in sheet.texts], [item.text for item in sheet.items])
        )
        for query_id, sheet in track.sheets.items()
    }


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


def settled(track: Assessment, sheet: Sheet) -> NDArray[np.bool_]:
    """Of each passage whether no missing rating can change its label, or its label has reached `stop`."""
    ratings = track.ratings((sheet.query_id,))[0]
    by_people = np.array([doc_id in ratings.human for doc_id in sheet.doc_ids], np.bool_)
    level = _level(track)
    if level is None:
        return by_people
    reached = (ratings.ratings >= level).sum(axis=1)
    return np.asarray(by_people | (reached >= track.config.scores.min_answers))


def _level(track: Assessment) -> int | None:
    """The rating from which on more of it changes nothing; None where labels are numbers of items."""
    stop = track.config.cells.stop
    if isinstance(stop, int):
        return stop
    return track.traits.scale.max_rating if track.config.scores.label == "max" else None


def left_out_cells(track: Assessment) -> Mapping[str, NDArray[np.bool_]]:
    """query_id -> which cells without a grade `stop` leaves out, by passage and item; {} where unset."""
    if track.config.cells.stop is None or track.traits.cells_share == "answer":
        return {}
    uses = _uses(track)
    left_out = {}
    for query_id, sheet in track.sheets.items():
        has_text = np.array([text is not None for text in sheet.texts], np.bool_)
        own = np.array([uses[asked_digest(item)] == 1 for item in sheet.items], np.bool_)
        left_out[query_id] = (sheet.matrix() == MISSING) & (has_text & settled(track, sheet))[:, None] & own
    return left_out


def count_left_out(track: Assessment) -> int:
    """How many cells without a grade `stop` leaves out."""
    return sum(int(cells.sum()) for cells in left_out_cells(track).values())


def _uses(track: Assessment) -> Counter[bytes]:
    """How many queries ask an item."""
    return Counter(asked_digest(item) for sheet in track.sheets.values() for item in sheet.items)


def left_out_cautions(track: Assessment) -> tuple[str, ...]:
    """A line on the cells that `stop` left out, and on the track's measures that need them."""
    count, stop = count_left_out(track), track.config.cells.stop
    if not count:
        return ()
    needing = ", ".join(name for name in track.measures if not is_exact(name, stop))
    how = f"`stop` = {json.dumps(stop)} in [cells]"
    return (
        f"{count:,} of {track.counts.cells:,} cells are left out ({how})"
        + (f", without which {needing} may be too low or too high" if needing else "")
        + "; `trecexam watch --all-cells` grades them",
    )


def is_exact(name: str, stop: object) -> bool:
    """Whether a measure has the same value without the cells that `stop` leaves out."""
    each = measure(name)
    if each.NAME in COVER or each.NAME in DIVERSITY:
        return False
    return stop == "label" or each.params.get("rel", 9) <= stop


class UsefulCells:
    """The missing cells of a track, the most useful ones first.

    They go by `cell_scores`. Those that can change no label any more come last where all measures are on
    labels, and not at all where `stop` says so. Cells of a passage that share their prompts or an answer stay
    together, and go by its weight.

    Args:
        places: see `ItemPlaces`; None for `item_places`.
        all_cells: leaves out none.
    """

    def __init__(
        self,
        track: Assessment,
        only: Mapping[str, Collection[str]] | None = None,
        places: ItemPlaces | None = None,
        *,
        all_cells: bool = False,
    ) -> None:
        self._track = track
        self._rows = list(missing_rows(track, only))
        stop = None if all_cells else track.config.cells.stop
        self._parted = ranks_items(track) or (stop is not None and track.traits.cells_share != "answer")
        self._stops = stop is not None and self._parted
        # Measures on items move with all cells: on DL 2019 Cover's tau stays at .8 until the last ones come.
        on_labels = all(is_exact(name, "label") for name in track.measures)
        self._tells_settled = self._stops or (self._parted and on_labels)
        self._level = _level(track)
        lengths = [len(row.columns) for row in self._rows]
        #: Of each cell its passage, as a number of `_rows`, and its item's column.
        self._passage = np.repeat(np.arange(len(lengths)), lengths)
        self._column = np.concatenate([np.empty(0, np.intp), *(row.columns for row in self._rows)])
        self._shared = np.concatenate([np.empty(0, np.bool_), *(row.shared for row in self._rows)])
        self._order = np.arange(len(self._passage))
        if is_useful(track):
            self._order = np.argsort(-self._scores(places), kind="stable")
        #: Ratings that a passage lacks until it is settled, by its query and text.
        self._lacking = self._lacks() if self._tells_settled else {}
        self.left_out = 0

    def __len__(self) -> int:
        """How many there are, without those that were left out so far."""
        return len(self._passage) - self.left_out

    def _scores(self, places: ItemPlaces | None) -> NDArray[np.float64]:
        """How useful each cell is; of passages that stay whole all cells alike."""
        if not self._parted:
            weights = {query_id: _weights(pooled) for query_id, pooled in self._track.pool.items()}
            return np.array([weights[row.sheet.query_id][row.row] for row in self._rows])[self._passage]
        scores = cell_scores(self._track, item_places(self._track) if places is None else places)
        of_rows = (scores[row.sheet.query_id][row.row, row.columns] for row in self._rows)
        return np.concatenate([np.empty(0), *of_rows])

    def _lacks(self) -> dict[tuple[str, str | None], int]:
        least, level, lacks = self._track.config.scores.min_answers, self._level, {}
        for query_id, rows in groupby(self._rows, lambda row: row.sheet.query_id):
            ratings = self._track.ratings((query_id,))[0].ratings
            reached = np.zeros(len(ratings), int) if level is None else (ratings >= level).sum(axis=1)
            lacking = np.where(settled(self._track, self._track.sheets[query_id]), 0, least - reached)
            lacks.update({row.passage: int(lacking[row.row]) for row in rows})
        return lacks

    def note(self, batch: Sequence[tuple[Cell, Answer]]) -> None:
        """Takes in what the grader answered."""
        if self._level is None:
            return
        for cell, answer in batch:
            key = cell.query_id, cell.text
            if answer.rating is None or answer.rating < self._level or key not in self._lacking:
                continue
            people = self._track.sheets[cell.query_id].overrides
            # What a person said of the cell counts in place of it, and counts already.
            if people is None or (cell.doc_id, cell.item.item_id) not in people.cells:
                self._lacking[key] -= 1

    def __iter__(self) -> Iterator[Cell]:
        last = []
        for at in self._order.tolist():
            row = self._rows[self._passage[at]]
            if self._lacking and not self._shared[at] and self._lacking[row.passage] <= 0:
                if self._stops:
                    self.left_out += 1
                else:
                    last.append(at)
                continue
            yield row.cell(self._track, int(self._column[at]))
        for at in last:
            yield self._rows[self._passage[at]].cell(self._track, int(self._column[at]))


def _weights(pooled: PooledQuery) -> NDArray[np.float64]:
    return retrieved_weights(pooled.ranks, len(pooled.doc_ids))
