"""The cells of a query and their grades: all its texts with all its items, or some of these pairs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from converters.records import Item
from trecexam.bank.model import asked_digest, item_digest
from trecexam.config.sections import UnparsedPolicy
from trecexam.inputs.overrides import QueryOverrides
from trecexam.scores.ratings import QueryRatings

#: Codes of a cell without a rating; ratings themselves are 0..5.
MISSING, UNPARSED, REFUSED, ERROR = -1, -2, -3, -4
CODES = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR}
#: Codes of replies that name no rating.
UNREAD = (UNPARSED, REFUSED)
#: What `Sheet.matrix` has where a text with an item is no cell: nothing is graded, and nothing is missing.
NOT_ASKED = -6
#: What a cell whose answer could not be read, or was refused, is rated, by the track's policy.
_INSTEAD = {"zero": 0, "seed": 1, "skip": MISSING}


@dataclass(frozen=True, eq=False)
class Sheet:
    """A query's cells: all its texts with all its items, or some of these pairs.

    Attributes:
        doc_ids: its pooled passages, sorted.
        texts: keys of the passages for store and grader, in the same order: their texts, or their ids for a
            grader that goes by ids; None where a passage has no gradable text.
        items: the query's items, in the bank's order.
        codes: the grader's ratings 0..5, or MISSING, UNPARSED, REFUSED, ERROR; int8, C order, of shape
            (len(doc_ids), len(items)), or with `cells` one a cell.
        overrides: people's ratings in the grader's place; None without any.
        cells: row * len(items) + column of each cell, rising; None where every text has every item.
        memo: what was read of its cells beside their codes, by the function that reads it.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    texts: tuple[str | None, ...]
    items: tuple[Item, ...]
    codes: NDArray[np.int8]
    overrides: QueryOverrides | None = field(default=None)
    cells: NDArray[np.int64] | None = None
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def flat(self) -> NDArray[np.int8]:
        """Return the codes, one a cell: a view."""
        return self.codes.reshape(-1)

    def at(self, flat_indices: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (rows, columns) of the cells at these indices of `flat`."""
        keys = flat_indices if self.cells is None else self.cells[flat_indices]
        return np.divmod(keys, max(len(self.items), 1))

    def where(self, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (rows, columns) of the cells where a mask of the shape of `flat` holds."""
        return self.at(np.flatnonzero(mask))

    def place_of(self, doc_id: str, item_id: str) -> int:
        """Return the index in `flat` of the cell of a passage and an item, which are one."""
        key = self.row_of[doc_id] * len(self.items) + self.column_of[item_id]
        return key if self.cells is None else int(np.searchsorted(self.cells, key))

    def keys(self, texts: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for each cell, made of its item's and its text's, in the order of `flat`.

        Args:
            texts, items: a number below 2**31 for each text and item; negative for none, as is the cell's.
        """
        rows, columns = self.at(np.arange(self.codes.size))
        return np.asarray((items << 32)[columns] | texts[rows])

    def matrix(self) -> NDArray[np.int8]:
        """Return the codes of shape (len(doc_ids), len(items)), NOT_ASKED where there is no cell."""
        return self.spread(self.flat(), NOT_ASKED)

    def spread(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """Return values in the order of `flat` as an array of shape (rows, columns, ...)."""
        size, rest = (len(self.doc_ids), len(self.items)), values.shape[1:]
        if self.cells is None:
            return values.reshape(*size, *rest)
        whole = np.full((math.prod(size), *rest), fill, values.dtype)
        whole[self.cells] = values
        return whole.reshape(*size, *rest)

    @property
    def gradable(self) -> NDArray[np.bool_]:
        """True for each cell, in the order of `flat`, whose passage has a gradable text."""
        has_text = np.array([text is not None for text in self.texts], np.bool_)
        return np.asarray(has_text[self.at(np.arange(self.codes.size))[0]], np.bool_)

    @property
    def rated(self) -> NDArray[np.bool_]:
        """True for each cell, in the order of `flat`, that the grader or a person rated."""
        rated = self.flat() >= 0
        if self.overrides is not None:
            for key in self.overrides.cells:
                rated[self.place_of(*key)] = True
            whole = np.array([doc_id in self.overrides.passages for doc_id in self.doc_ids], np.bool_)
            rated |= whole[self.at(np.arange(rated.size))[0]]
        return rated

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """doc_id -> its row."""
        return {doc_id: row for row, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def column_of(self) -> Mapping[str, int]:
        """item_id -> its column."""
        return {item.item_id: column for column, item in enumerate(self.items)}

    @cached_property
    def digest(self) -> bytes:
        """blake2b of the cells, their codes and people's ratings: equal exactly when all of these are."""
        people = self.overrides and self.overrides.token
        content = repr((self.query_id, self.doc_ids, self.items, people)).encode(errors="surrogatepass")
        return hashlib.blake2b(self.token.encode() + content + self.codes.tobytes(), digest_size=16).digest()

    @cached_property
    def token(self) -> str:
        """Key of these cells, whatever their grades: 16 bytes of blake2b, hex."""
        content = hashlib.blake2b(digest_size=16)
        lengths = [-1 if text is None else len(text) for text in self.texts]
        content.update(np.array([len(self.texts), *lengths], np.int64).tobytes())
        content.update("".join(filter(None, self.texts)).encode(errors="surrogatepass"))
        for item in self.items:
            content.update(asked_digest(item) + item_digest(item))
        if self.cells is not None:
            content.update(b"cells" + self.cells.tobytes())
        return content.hexdigest()

    @property
    def without_text(self) -> frozenset[str]:
        """The pooled passages that have no gradable text."""
        return frozenset(doc for doc, text in zip(self.doc_ids, self.texts, strict=True) if text is None)

    def text_of(self, doc_id: str) -> str | None:
        """Return the text of a pooled passage that is graded, None where it has none."""
        return self.texts[self.row_of[doc_id]]

    def ratings(self, unparsed: UnparsedPolicy, *, human: bool = True) -> QueryRatings:
        """Return the ratings with the policy for unparsed and refused answers; -1 where none, or no cell.

        Args:
            human: False for the grader's alone, without what people said in their place.
        """
        codes = self.matrix()
        unread = (codes == UNPARSED) | (codes == REFUSED)
        ratings = np.where(unread, _INSTEAD[unparsed], np.maximum(codes, MISSING)).astype(np.int8)
        importances = tuple(item.importance for item in self.items)
        weighted = any(item.weight is not None for item in self.items)
        weights = tuple(item.counted_weight for item in self.items) if weighted else None
        machine = QueryRatings(
            self.query_id, self.doc_ids, len(self.items), ratings, importances=importances, weights=weights
        )
        if self.overrides is None or not human:
            return machine
        for (doc_id, item_id), rating in self.overrides.cells.items():
            ratings[self.row_of[doc_id], self.column_of[item_id]] = rating
        return replace(machine, human=self.overrides.passages)


@dataclass(frozen=True)
class Counts:
    """Cells of the pool by what became of them.

    Attributes:
        missing: cells that could have a grade and have none.
        no_text_cells: cells of passages without a gradable text; they never get one.
        passages: pooled passages; `no_text` of them have no gradable text.
        human_cells, human_passages: cells, and passages as a whole, that a person rated; a cell that the
            grader graded too is counted there as well.
    """

    cells: int = 0
    ok: int = 0
    unparsed: int = 0
    refused: int = 0
    error: int = 0
    missing: int = 0
    no_text_cells: int = 0
    passages: int = 0
    no_text: int = 0
    human_cells: int = 0
    human_passages: int = 0

    @property
    def is_graded(self) -> bool:
        """True where there is something to score: no cells, or one that the grader or a person rated."""
        return not self.cells or self.ok + self.human_cells + self.human_passages > 0


def count_cells(sheets: Iterable[Sheet]) -> Counts:
    """Count the cells of these queries by what became of them."""
    total = dict.fromkeys(Counts.__dataclass_fields__, 0)
    for sheet in sheets:
        codes = sheet.flat()
        no_text = sheet.texts.count(None)
        total["cells"] += codes.size
        total["ok"] += int((codes >= 0).sum())
        total["passages"] += len(sheet.doc_ids)
        total["no_text"] += no_text
        total["no_text_cells"] += int((~sheet.gradable).sum()) if no_text else 0
        for name, code in (("missing", MISSING), *CODES.items()):
            total[name] += int((codes == code).sum())
        if sheet.overrides is not None:
            total["human_cells"] += len(sheet.overrides.cells)
            total["human_passages"] += len(sheet.overrides.passages)
    total["missing"] -= total["no_text_cells"]
    return Counts(**total)
