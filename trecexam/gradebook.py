"""Cells and their grades: which are there, which are missing, and the ratings matrix of each query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from converters.records import Item
from trecexam.bank.model import Bank, item_digest, passage_digest
from trecexam.graders.base import Answer, Cell
from trecexam.store import GradeRow, GradeStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trecexam.config import UnparsedPolicy
    from trecexam.scores.ratings import QueryRatings

#: Codes of a cell without a rating; ratings themselves are 0..5.
MISSING, UNPARSED, REFUSED, ERROR = -1, -2, -3, -4
_CODE = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR}


@dataclass
class _Sheet:
    """One query's cells: rows are pooled documents, columns the query's items."""

    doc_ids: tuple[str, ...]
    texts: tuple[str | None, ...]
    items: tuple[Item, ...]
    passage_ids: list[int | None]
    item_ids: list[int]
    codes: NDArray[np.int8]
    version: int


@dataclass(frozen=True)
class Counts:
    """Cells of the pool by what became of them. `no_text` counts passages without a gradable text."""

    cells: int = 0
    ok: int = 0
    unparsed: int = 0
    refused: int = 0
    error: int = 0
    missing: int = 0
    passages: int = 0
    no_text: int = 0


class Gradebook:
    """The grades that one grader has given to the cells of a pool."""

    def __init__(self, store: GradeStore, grader_id: int, min_text: int) -> None:
        self._store = store
        self._grader_id = grader_id
        self._min_text = min_text
        self._sheets: dict[str, _Sheet] = {}
        self._item_rows: dict[Item, int] = {}
        self._passage_rows: dict[str, int] = {}
        self._versions = 0

    def set_pool(self, bank: Bank, pool: Mapping[str, tuple[str, ...]], texts: Mapping[str, str]) -> None:
        """Takes a new pool; only queries whose passages, texts or items changed are looked up again."""
        for query_id in self._sheets.keys() - pool.keys():
            del self._sheets[query_id]
        for query_id, doc_ids in pool.items():
            items = bank.items[query_id]
            found = tuple(self._gradable(texts.get(doc_id)) for doc_id in doc_ids)
            sheet = self._sheets.get(query_id)
            if sheet and (sheet.doc_ids, sheet.texts, sheet.items) == (doc_ids, found, items):
                continue
            self._sheets[query_id] = self._sheet(doc_ids, found, items)

    def missing(self, query_texts: Mapping[str, str]) -> Iterator[Cell]:
        """Every cell that has a text and no grade of any kind, passage by passage; equal cells once."""
        uses = Counter(item_id for sheet in self._sheets.values() for item_id in sheet.item_ids)
        asked: set[tuple[int, int]] = set()
        for query_id, sheet in self._sheets.items():
            seen: set[int] = set()
            for row, passage_id in enumerate(sheet.passage_ids):
                text = sheet.texts[row]
                if passage_id is None or text is None or passage_id in seen:
                    continue
                seen.add(passage_id)
                for column in (sheet.codes[row] == MISSING).nonzero()[0]:
                    item_id = sheet.item_ids[column]
                    # Only items that stand more than once can ask the same thing twice.
                    if uses[item_id] > 1:
                        if (passage_id, item_id) in asked:
                            continue
                        asked.add((passage_id, item_id))
                    yield Cell(
                        query_id, query_texts.get(query_id, ""), sheet.doc_ids[row], text, sheet.items[column]
                    )

    def record(self, batch: Sequence[tuple[Cell, Answer]]) -> None:
        """Stores a batch of answers in one transaction. `refresh` makes the ratings show them."""
        self._store.add(
            self._grader_id,
            (
                GradeRow(
                    self._item_rows[cell.item],
                    self._passage_rows[cell.text],
                    answer.rating,
                    answer.status,
                    answer.raw,
                    answer.probabilities,
                )
                for cell, answer in batch
            ),
        )

    def refresh(self) -> None:
        """Looks up again the grades of every query that had cells without one."""
        for sheet in self._sheets.values():
            if not (sheet.codes == MISSING).any():
                continue
            codes = self._codes(sheet.passage_ids, sheet.item_ids)
            if (codes != sheet.codes).any():
                sheet.codes, sheet.version = codes, self._next_version()

    def version(self, query_id: str) -> int:
        """A number that changes exactly when the query's cells or their grades change."""
        return self._sheets[query_id].version

    def ratings(self, query_id: str, unparsed: UnparsedPolicy) -> QueryRatings:
        """The query's ratings with the policy for unparsed (and refused) answers applied; -1 where none."""
        import numpy as np

        from trecexam.scores.ratings import QueryRatings

        sheet = self._sheets[query_id]
        instead = {"zero": 0, "seed": 1, "skip": MISSING}[unparsed]
        codes = sheet.codes
        unread = (codes == UNPARSED) | (codes == REFUSED)
        ratings = np.where(unread, instead, np.maximum(codes, MISSING)).astype(np.int8)
        return QueryRatings(query_id, sheet.doc_ids, len(sheet.items), ratings)

    def counts(self) -> Counts:
        """What became of the pool's cells."""
        total = dict.fromkeys(Counts.__dataclass_fields__, 0)
        for sheet in self._sheets.values():
            codes = sheet.codes
            total["cells"] += codes.size
            total["ok"] += int((codes >= 0).sum())
            total["passages"] += len(sheet.doc_ids)
            total["no_text"] += sum(text is None for text in sheet.texts)
            for name, code in (("missing", MISSING), *_CODE.items()):
                total[name] += int((codes == code).sum())
        return Counts(**total)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every grade of the pool, for `export grades`: ids, rating, status, answer, digests."""
        for query_id, sheet in self._sheets.items():
            for item, item_id in zip(sheet.items, sheet.item_ids, strict=True):
                answers = self._store.answers(self._grader_id, item_id)
                for doc_id, text, passage_id in zip(
                    sheet.doc_ids, sheet.texts, sheet.passage_ids, strict=True
                ):
                    if text is None or passage_id is None or passage_id not in answers:
                        continue
                    grade = answers[passage_id]
                    yield {
                        "query_id": query_id,
                        "doc_id": doc_id,
                        "item_id": item.item_id,
                        "rating": grade.rating,
                        "status": grade.status,
                        "answer": grade.answer,
                        "probabilities": grade.probabilities,
                        "passage_sha256": passage_digest(text).hex(),
                        "item_sha256": item_digest(item).hex(),
                    }

    def _gradable(self, text: str | None) -> str | None:
        return text if text is not None and len(text) >= self._min_text else None

    def _sheet(
        self, doc_ids: tuple[str, ...], texts: tuple[str | None, ...], items: tuple[Item, ...]
    ) -> _Sheet:
        item_ids = self._store.item_ids([item_digest(item) for item in items])
        known = [text for text in texts if text is not None]
        rows = dict(
            zip(known, self._store.passage_ids([passage_digest(text) for text in known]), strict=True)
        )
        passage_ids = [None if text is None else rows[text] for text in texts]
        self._passage_rows.update(rows)
        self._item_rows.update(zip(items, item_ids, strict=True))
        return _Sheet(
            doc_ids,
            texts,
            items,
            passage_ids,
            item_ids,
            self._codes(passage_ids, item_ids),
            self._next_version(),
        )

    def _codes(self, passage_ids: list[int | None], item_ids: list[int]) -> NDArray[np.int8]:
        import numpy as np

        codes = np.full((len(passage_ids), len(item_ids)), MISSING, dtype=np.int8)
        rows: dict[int, list[int]] = {}
        for row, passage_id in enumerate(passage_ids):
            if passage_id is not None:
                rows.setdefault(passage_id, []).append(row)
        for column, item_id in enumerate(item_ids):
            for passage_id, rating, status in self._store.grades(self._grader_id, item_id):
                if passage_id in rows:
                    codes[rows[passage_id], column] = rating if rating is not None else _CODE[status]
        return codes

    def _next_version(self) -> int:
        self._versions += 1
        return self._versions
