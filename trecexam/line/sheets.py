"""The cells of a query and their grades as columns: one int8 matrix a query, never changed once made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from converters.records import Item
from trecexam.bank.model import asked_digest, item_digest
from trecexam.line.kept_codes import cells_token
from trecexam.line.overrides import QueryOverrides
from trecexam.scores.ratings import QueryRatings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trecexam.config import UnparsedPolicy

#: Codes of a cell without a rating; ratings themselves are 0..5.
MISSING, UNPARSED, REFUSED, ERROR = -1, -2, -3, -4
CODES = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR}
#: What a cell whose answer could not be read, or was refused, is rated, by the track's policy.
_INSTEAD = {"zero": 0, "seed": 1, "skip": MISSING}


@dataclass(frozen=True, eq=False)
class GradeSheet:
    """One query's cells.

    Attributes:
        query_id: the query.
        doc_ids: its pooled passages, sorted.
        texts: what store and grader know them by, in the same order: their texts, or of a grader that goes
            by ids their ids; None where a passage has no gradable text.
        items: the query's items, in the bank's order.
        codes: int8 of shape (len(doc_ids), len(items)): the grader's ratings 0..5, or MISSING, UNPARSED,
            REFUSED, ERROR.
        overrides: what people said in the grader's place; None where they said nothing.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    texts: tuple[str | None, ...]
    items: tuple[Item, ...]
    codes: NDArray[np.int8]
    overrides: QueryOverrides | None = field(default=None)

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """doc_id -> its row."""
        return {doc_id: row for row, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def digest(self) -> bytes:
        """blake2b of the cells, their codes and people's ratings: equal exactly when all of these are."""
        content = hashlib.blake2b(self.query_id.encode(errors="surrogatepass"), digest_size=16)
        content.update("\0".join(self.doc_ids).encode(errors="surrogatepass"))
        content.update(bytes(text is None for text in self.texts))
        for item in self.items:
            content.update(item.item_id.encode(errors="surrogatepass") + b"\0" + item_digest(item))
            content.update(asked_digest(item) + item.importance.encode())
            if item.weight is not None:
                content.update(repr(item.weight).encode())
        content.update(self.codes.tobytes())
        content.update(repr(self.overrides and self.overrides.token).encode(errors="surrogatepass"))
        return content.digest()

    @cached_property
    def token(self) -> bytes:
        """See `cells_token`."""
        return cells_token(self.texts, self.items)

    @property
    def without_text(self) -> frozenset[str]:
        """The pooled passages that have no gradable text."""
        return frozenset(doc for doc, text in zip(self.doc_ids, self.texts, strict=True) if text is None)

    def text_of(self, doc_id: str) -> str | None:
        """The text of a pooled passage that is graded, None where it has none."""
        return self.texts[self.row_of[doc_id]]

    def ratings(self, unparsed: UnparsedPolicy, *, human: bool = True) -> QueryRatings:
        """The ratings with the policy for unparsed (and refused) answers applied; -1 where none.

        Args:
            human: False for the grader's alone, without what people said in their place.
        """
        unread = (self.codes == UNPARSED) | (self.codes == REFUSED)
        ratings = np.where(unread, _INSTEAD[unparsed], np.maximum(self.codes, MISSING)).astype(np.int8)
        importances = tuple(item.importance for item in self.items)
        weighted = any(item.weight is not None for item in self.items)
        weights = tuple(item.counted_weight for item in self.items) if weighted else None
        machine = QueryRatings(
            self.query_id,
            self.doc_ids,
            len(self.items),
            ratings,
            importances=importances,
            weights=weights,
        )
        if self.overrides is None or not human:
            return machine
        columns = {item.item_id: column for column, item in enumerate(self.items)}
        for (doc_id, item_id), rating in self.overrides.cells.items():
            ratings[self.row_of[doc_id], columns[item_id]] = rating
        return replace(machine, human=self.overrides.passages)


@dataclass(frozen=True)
class Counts:
    """Cells of the pool by what became of them.

    Attributes:
        missing: cells that could have a grade and have none.
        no_text_cells: cells of passages without a gradable text; they never get one.
        passages: pooled passages, of which `no_text` have no gradable text.
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


def count_cells(sheets: Iterable[GradeSheet]) -> Counts:
    """What became of the cells of these queries."""
    total = dict.fromkeys(Counts.__dataclass_fields__, 0)
    for sheet in sheets:
        codes = sheet.codes
        no_text = sum(text is None for text in sheet.texts)
        total["cells"] += codes.size
        total["ok"] += int((codes >= 0).sum())
        total["passages"] += len(sheet.doc_ids)
        total["no_text"] += no_text
        total["no_text_cells"] += no_text * len(sheet.items)
        for name, code in (("missing", MISSING), *CODES.items()):
            total[name] += int((codes == code).sum())
        if sheet.overrides is not None:
            total["human_cells"] += len(sheet.overrides.cells)
            total["human_passages"] += len(sheet.overrides.passages)
    total["missing"] -= total["no_text_cells"]
    return Counts(**total)


def ungraded_items(sheets: Iterable[GradeSheet]) -> Iterator[tuple[Item, int]]:
    """Each item with cells that could have a grade and have none: the item, and how many."""
    for sheet in sheets:
        rows = [row for row, text in enumerate(sheet.texts) if text is not None]
        missing = (sheet.codes[rows] == MISSING).sum(axis=0)
        yield from ((sheet.items[column], int(missing[column])) for column in missing.nonzero()[0])
