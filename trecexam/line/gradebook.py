"""Cells and their grades: which are there, which are missing, and the ratings matrix of each query."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from converters.records import HumanRating, Item
from trecexam.bank.model import Bank, asked_digest, item_digest, passage_digest
from trecexam.graders.base import Answer, Cell, Usage, identity_digest, identity_json
from trecexam.line.overrides import Overrides
from trecexam.line.store import GradeRow, GradeStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trecexam.config import UnparsedPolicy
    from trecexam.scores.ratings import QueryRatings

#: Codes of a cell without a rating; ratings themselves are 0..5.
MISSING, UNPARSED, REFUSED, ERROR = -1, -2, -3, -4
#: Never the same number twice in a process, whichever gradebook asks.
_VERSIONS = itertools.count(1)
_CODE = {"unparsed": UNPARSED, "refused": REFUSED, "error": ERROR}


@dataclass
class _Sheet:
    """One query's cells: rows are pooled documents, columns the query's items."""

    doc_ids: tuple[str, ...]
    texts: tuple[str | None, ...]
    items: tuple[Item, ...]
    codes: NDArray[np.int8]
    version: int


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


class Gradebook:
    """The grades that one grader has given to the cells of a pool."""

    def __init__(
        self,
        store: GradeStore,
        identity: Mapping[str, Any],
        min_text: int,
        read: Callable[[Item, str], tuple[int | None, str]] | None = None,
        said_by: Callable[[], tuple[str | None, str | None]] = lambda: (None, None),
    ) -> None:
        """The grades of the grader with this identity.

        Args:
            read: (item, raw answer) -> (rating, status); in place of the ratings that are stored with the
                answers.
            said_by: names the model and the prompt, where the identity does not.
        """
        self._said_by = said_by
        self._store = store
        self._identity = identity
        self._min_text = min_text
        self._read = read
        self._sheets: dict[str, _Sheet] = {}
        self._has_importance = False
        self._overrides = Overrides()

    def set_pool(self, bank: Bank, pool: Mapping[str, tuple[str, ...]], texts: Mapping[str, str]) -> None:
        """Takes a new pool; only queries whose passages, texts or items changed are looked up again."""
        self._has_importance = bank.has_importance
        for query_id in self._sheets.keys() - pool.keys():
            del self._sheets[query_id]
        for query_id, doc_ids in pool.items():
            items = bank.items[query_id]
            found = tuple(self._gradable(texts.get(doc_id)) for doc_id in doc_ids)
            sheet = self._sheets.get(query_id)
            if sheet and (sheet.doc_ids, sheet.texts, sheet.items) == (doc_ids, found, items):
                continue
            self._sheets[query_id] = self._sheet(doc_ids, found, items)

    def set_overrides(self, overrides: Overrides) -> None:
        """Takes the ratings that people gave in place of the grader's, which stay as they are."""
        self._overrides = overrides

    def pooled(self, query_id: str) -> tuple[str, ...]:
        """The query's pooled passages, sorted."""
        return self._sheets[query_id].doc_ids

    def text_of(self, query_id: str, doc_id: str) -> str | None:
        """The text of a pooled passage that is graded, None where it has none."""
        sheet = self._sheets[query_id]
        return sheet.texts[sheet.doc_ids.index(doc_id)]

    def missing(
        self, query_texts: Mapping[str, str], only: Mapping[str, Collection[str]] | None = None
    ) -> Iterator[Cell]:
        """Every cell that has a text and no grade of any kind, passage by passage; equal cells once.

        Args:
            only: query_id -> the doc_ids whose cells are meant; None for all.
        """
        uses = Counter(asked_digest(item) for sheet in self._sheets.values() for item in sheet.items)
        asked: set[tuple[str, bytes]] = set()
        for query_id, sheet in self._sheets.items():
            seen: set[str] = set()
            digests = [asked_digest(item) for item in sheet.items]
            meant = None if only is None else frozenset(only.get(query_id, ()))
            for row, text in enumerate(sheet.texts):
                if text is None or text in seen or (meant is not None and sheet.doc_ids[row] not in meant):
                    continue
                seen.add(text)
                for column in (sheet.codes[row] == MISSING).nonzero()[0]:
                    # Only items that stand more than once can ask the same thing twice.
                    if uses[digests[column]] > 1:
                        if (text, digests[column]) in asked:
                            continue
                        asked.add((text, digests[column]))
                    yield Cell(
                        query_id, query_texts.get(query_id, ""), sheet.doc_ids[row], text, sheet.items[column]
                    )

    def record(self, batch: Sequence[tuple[Cell, Answer]]) -> None:
        """Stores a batch of answers in one transaction. `refresh` makes the ratings show them."""
        items = list(dict.fromkeys(cell.item for cell, _ in batch))
        texts = list(dict.fromkeys(cell.text for cell, _ in batch))
        grader_id = self._store.add_grader(identity_digest(self._identity), identity_json(self._identity))
        item_rows = dict(zip(items, self._store.add_items([asked_digest(i) for i in items]), strict=True))
        passage_rows = dict(
            zip(texts, self._store.add_passages([passage_digest(t) for t in texts]), strict=True)
        )
        rows = (GradeRow(item_rows[cell.item], passage_rows[cell.text], *answer) for cell, answer in batch)
        self._store.add(grader_id, rows)

    def add_usage(self, used: Usage) -> None:
        """Notes what the grader used beside what it used before."""
        grader_id = self._store.add_grader(identity_digest(self._identity), identity_json(self._identity))
        self._store.add_usage(grader_id, used)

    def usage(self) -> Usage:
        """What the grader used so far, in all."""
        grader_id = self._store.grader_id(identity_digest(self._identity))
        return Usage() if grader_id is None else Usage(*self._store.usage(grader_id))

    def forget_errors(self) -> int:
        """Drops the grader's answers with the status "error"; the pool must be set anew to see it."""
        self._sheets.clear()
        grader_id = self._store.grader_id(identity_digest(self._identity))
        return 0 if grader_id is None else self._store.forget(grader_id, "error")

    def codes(self, query_id: str) -> NDArray[np.int8]:
        """The grader's own ratings of the query's cells, 0..5, and MISSING, UNPARSED, REFUSED or ERROR.

        Returns:
            Shape (n_docs, n_items), in the order of `ratings`.
        """
        return self._sheets[query_id].codes

    def refresh(self) -> None:
        """Looks up again the grades of every query that had cells without one, or with an error."""
        for sheet in self._sheets.values():
            if not ((sheet.codes == MISSING) | (sheet.codes == ERROR)).any():
                continue
            codes = self._codes(sheet.texts, sheet.items)
            if (codes != sheet.codes).any():
                sheet.codes, sheet.version = codes, next(_VERSIONS)

    def version(self, query_id: str) -> Hashable:
        """A token that changes exactly when the query's cells, their grades or people's ratings change."""
        human = self._overrides.queries.get(query_id)
        return self._sheets[query_id].version, human and human.token

    def ratings(self, query_id: str, unparsed: UnparsedPolicy, *, human: bool = True) -> QueryRatings:
        """The query's ratings with the policy for unparsed (and refused) answers applied; -1 where none.

        Args:
            human: False for the grader's alone, without what people said in their place.
        """
        import numpy as np

        from trecexam.scores.ratings import QueryRatings

        sheet = self._sheets[query_id]
        instead = {"zero": 0, "seed": 1, "skip": MISSING}[unparsed]
        codes = sheet.codes
        unread = (codes == UNPARSED) | (codes == REFUSED)
        ratings = np.where(unread, instead, np.maximum(codes, MISSING)).astype(np.int8)
        importances = tuple(item.importance for item in sheet.items) if self._has_importance else None
        found = QueryRatings(query_id, sheet.doc_ids, len(sheet.items), ratings, importances=importances)
        said = self._overrides.queries.get(query_id) if human else None
        if said is None:
            return found
        rows = {doc_id: row for row, doc_id in enumerate(sheet.doc_ids)}
        columns = {item.item_id: column for column, item in enumerate(sheet.items)}
        for (doc_id, item_id), rating in said.cells.items():
            ratings[rows[doc_id], columns[item_id]] = rating
        return replace(found, human=said.passages)

    def without_text(self, query_id: str) -> frozenset[str]:
        """The query's pooled passages that have no gradable text."""
        sheet = self._sheets[query_id]
        return frozenset(doc for doc, text in zip(sheet.doc_ids, sheet.texts, strict=True) if text is None)

    def distributions(self, query_id: str) -> NDArray[np.float64]:
        """The stored probabilities of the ratings 0..5 of the query's cells; NaN where there are none.

        Returns:
            Shape (n_docs, n_items, 6), in the order of `ratings`.
        """
        import numpy as np

        from trecexam.scores.ratings import MAX_RATING

        sheet = self._sheets[query_id]
        found = np.full((*sheet.codes.shape, MAX_RATING + 1), np.nan)
        grader_id = self._store.grader_id(identity_digest(self._identity))
        if grader_id is None:
            return found
        digests = [b"" if text is None else passage_digest(text) for text in sheet.texts]
        passages = self._store.passage_ids(digests)
        for column, item in enumerate(self._item_rows(sheet.items)):
            answers = {} if item is None else self._store.answers(grader_id, item)
            for row, passage in enumerate(passages):
                grade = None if passage is None else answers.get(passage)
                if grade is not None and grade.probabilities is not None:
                    found[row, column, : len(grade.probabilities)] = grade.probabilities
        return found

    def prompts(self, query_id: str) -> tuple[str, ...]:
        """The names of the prompts that ask about the query's items, sorted, as far as there are names."""
        kinds = {item.kind for item in self._sheets[query_id].items}
        return tuple(sorted({self._prompt(kind) for kind in kinds} - {""}))

    def counts(self) -> Counts:
        """What became of the pool's cells."""
        total = dict.fromkeys(Counts.__dataclass_fields__, 0)
        for sheet in self._sheets.values():
            codes = sheet.codes
            total["cells"] += codes.size
            total["ok"] += int((codes >= 0).sum())
            total["passages"] += len(sheet.doc_ids)
            no_text = sum(text is None for text in sheet.texts)
            total["no_text"] += no_text
            total["no_text_cells"] += no_text * len(sheet.items)
            for name, code in (("missing", MISSING), *_CODE.items()):
                total[name] += int((codes == code).sum())
        total["missing"] -= total["no_text_cells"]
        for said in self._overrides.queries.values():
            total["human_cells"] += len(said.cells)
            total["human_passages"] += len(said.passages)
        return Counts(**total)

    def failed_items(self) -> Iterator[tuple[Item, str, int]]:
        """Each item with cells that could not be graded: the item, the first one's reason, and how many."""
        grader_id = self._store.grader_id(identity_digest(self._identity))
        for sheet in self._sheets.values():
            failed = (sheet.codes == ERROR).sum(axis=0)
            for column in failed.nonzero()[0]:
                item = sheet.items[column]
                row = self._item_rows([item])[0]
                if grader_id is None or row is None:
                    continue
                answers = self._store.answers(grader_id, row).values()
                reason = next((grade.answer for grade in answers if grade.status == "error"), "")
                yield item, reason, int(failed[column])

    def ungraded_items(self) -> Iterator[tuple[Item, int]]:
        """Each item with cells that could have a grade and have none: the item, and how many."""
        for sheet in self._sheets.values():
            rows = [row for row, text in enumerate(sheet.texts) if text is not None]
            missing = (sheet.codes[rows] == MISSING).sum(axis=0)
            yield from ((sheet.items[column], int(missing[column])) for column in missing.nonzero()[0])

    def rows(self, query_ids: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
        """Every grade of the pool, for `export grades`: ids, rating, status, answer, digests.

        The rating is the grader's. Where a person rated the cell, that stands beside it, so that what is
        read back as this grader's grades is.

        Args:
            query_ids: only of these queries.
        """
        grader_id = self._store.grader_id(identity_digest(self._identity))
        model, prompt = self._said_by()
        for query_id, sheet in self._sheets.items():
            if query_ids is not None and query_id not in query_ids:
                continue
            digests = [None if text is None else passage_digest(text) for text in sheet.texts]
            passages = self._store.passage_ids([digest or b"" for digest in digests])
            for item, item_row in zip(sheet.items, self._item_rows(sheet.items), strict=True):
                if grader_id is None or item_row is None:
                    continue
                answers = self._store.answers(grader_id, item_row)
                item_sha256 = item_digest(item).hex()
                for doc_id, digest, row in zip(sheet.doc_ids, digests, passages, strict=True):
                    if digest is None or row is None or row not in answers:
                        continue
                    grade = answers[row]
                    rating, status = self._reading(item, grade)
                    yield {
                        "query_id": query_id,
                        "doc_id": doc_id,
                        "item_id": item.item_id,
                        "rating": rating,
                        "status": status,
                        "answer": grade.answer,
                        "probabilities": grade.probabilities,
                        "model": str(
                            model or self._identity.get("model") or self._identity.get("grader") or ""
                        ),
                        "prompt": prompt or self._prompt(item.kind),
                        "passage_sha256": digest.hex(),
                        "item_sha256": item_sha256,
                        **_human(self._overrides.said.get((query_id, doc_id, item.item_id))),
                    }

    def _gradable(self, text: str | None) -> str | None:
        return text if text is not None and len(text) >= self._min_text else None

    def _sheet(
        self, doc_ids: tuple[str, ...], texts: tuple[str | None, ...], items: tuple[Item, ...]
    ) -> _Sheet:
        return _Sheet(doc_ids, texts, items, self._codes(texts, items), next(_VERSIONS))

    def _codes(self, texts: Sequence[str | None], items: Sequence[Item]) -> NDArray[np.int8]:
        import numpy as np

        codes = np.full((len(texts), len(items)), MISSING, dtype=np.int8)
        grader_id = self._store.grader_id(identity_digest(self._identity))
        if grader_id is None:
            return codes
        known = [(row, passage_digest(text)) for row, text in enumerate(texts) if text is not None]
        rows: dict[int, list[int]] = {}
        for (row, _), passage in zip(known, self._store.passage_ids([d for _, d in known]), strict=True):
            if passage is not None:
                rows.setdefault(passage, []).append(row)
        for column, item in enumerate(self._item_rows(items)):
            if item is None:
                continue
            for passage, rating, status in self._grades(grader_id, item, items[column]):
                if passage in rows:
                    codes[rows[passage], column] = rating if rating is not None else _CODE[status]
        return codes

    def _grades(self, grader_id: int, row: int, item: Item) -> Iterable[tuple[int, int | None, str]]:
        if self._read is None:
            return self._store.grades(grader_id, row)
        answers = self._store.answers(grader_id, row)
        return [(passage, *self._reading(item, grade)) for passage, grade in answers.items()]

    def _reading(self, item: Item, grade: GradeRow) -> tuple[int | None, str]:
        if self._read is None or grade.status not in {"ok", "unparsed"}:
            return grade.rating, grade.status
        return self._read(item, grade.answer)

    def _prompt(self, kind: str) -> str:
        for prompt in self._identity.get("prompts", ()):
            if prompt["asks"] == kind:
                return str(prompt["name"])
        return str(self._identity.get("prompt") or "")

    def _item_rows(self, items: Sequence[Item]) -> list[int | None]:
        return self._store.item_ids([asked_digest(item) for item in items])


def _human(row: HumanRating | None) -> dict[str, Any]:
    return {} if row is None else {"human_rating": row.rating, "who": row.who, "why": row.why}
