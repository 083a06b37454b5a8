"""The grades of one grader in the store: read in bulk as columns, or with their raw answers, item by item."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from converters.errors import ConversionError
from converters.records import HumanRating, Item
from trecexam.bank.model import asked_digest, item_digest, passage_digest
from trecexam.errors import TrecexamError
from trecexam.graders import Grader
from trecexam.graders.base import Answer, identity_digest
from trecexam.line.environments import Environments
from trecexam.line.kept_codes import KeptCodes
from trecexam.line.sheets import CODES, ERROR, MISSING, UNPARSED, Sheet, SheetShape
from trecexam.line.store import GradeColumns, GradeRow, GradeStore
from trecexam.scores.expected import usable
from trecexam.scores.ratings import MAX_RATING
from trecexam.tables.text import plural

Codes = NDArray[np.int8]

#: Grades of the queries with so many items are in memory at a time. They are read in blocks of so many
#: grades, of fewer with their answers, which may be long.
_MOST_ITEMS, _MOST_GRADES, _MOST_ANSWERS = 4096, 65_536, 4096


class Distributions(NamedTuple):
    """How probable each rating of a query's cells is.

    Attributes:
        values: the probabilities of the ratings 0..5, shape (n_docs, n_items, 6), in the order of the sheet;
            NaN where there are none.
        unusable: how many cells have numbers stored that can be none, see `usable`; they count as none.
    """

    values: NDArray[np.float64]
    unusable: int


def unusable_lines(n: int) -> tuple[str, ...]:
    """A line on so many cells with numbers that can be no probabilities; none where there are none."""
    what = "with stored numbers that cannot be probabilities (six numbers of 0 or more, not all 0): ignored"
    return (f"{plural(n, 'row')} {what}",) if n else ()


class StoredGrades:
    """What one grader said, as the store has it.

    Free text that a model wrote stays as stored; what it means follows the prompt's parser.
    """

    def __init__(self, store: GradeStore, grader: Grader, kept_codes: KeptCodes | None = None) -> None:
        """Args: kept_codes: the codes as they were read last, where they may be taken from there."""
        self.store = store
        self._kept = kept_codes
        self._grader = grader
        self.identity = grader.identity
        self._read = grader.read if grader.free_text else None
        self._limit = grader.reply_limit or 0
        self._probabilities = grader.probabilities
        self._cosines = grader.cosines

    @property
    def grader_id(self) -> int | None:
        """The grader's row in the store; None where it never graded here."""
        return self.store.grader_id(identity_digest(self.identity))

    def environments(self) -> Environments:
        """What its answers were made on, all that are stored."""
        grader_id = self.grader_id
        return Environments.of_rows([] if grader_id is None else self.store.environments(grader_id))

    def codes(self, shapes: Sequence[SheetShape]) -> list[Codes]:
        """The codes of each query's cells, see `Sheet`.

        Args:
            shapes: which cells each query has.
        """
        codes_by_token = self._kept.read(self.store.at_rest()) if self._kept and shapes else {}
        cached_codes = [codes_by_token.get(shape.token) if codes_by_token else None for shape in shapes]
        new = iter(
            self._codes([shape for shape, codes in zip(shapes, cached_codes, strict=True) if codes is None])
        )
        return [next(new) if codes is None else codes for codes in cached_codes]

    def read_anew(self, sheets: Mapping[str, Sheet]) -> tuple[int, int]:
        """Count the kept answers that are read anew, and those that read differently than when stored."""
        if self._read is None:
            return 0, 0
        n_answers = n_differ = 0
        stored_codes = self._codes([sheet.shape for sheet in sheets.values()], anew=False)
        for sheet, stored in zip(sheets.values(), stored_codes, strict=True):
            answered = (stored >= UNPARSED) & (stored != MISSING) & (sheet.codes != MISSING)
            n_answers += int(answered.sum())
            n_differ += int((answered & (sheet.codes != stored)).sum())
        return n_answers, n_differ

    def n_cut(self, sheets: Mapping[str, Sheet]) -> int:
        """Count the unparsed cells whose answer was cut off."""
        unread = [sheet for sheet in sheets.values() if (sheet.codes == UNPARSED).any()]
        grader_id = self.grader_id
        if not unread or grader_id is None:
            return 0
        keys = self.store.cut_keys(grader_id)
        if not len(keys):
            return 0
        count = 0
        for sheet, texts in zip(unread, self._passage_rows([each.shape for each in unread]), strict=True):
            item_rows = self.store.item_ids([asked_digest(item) for item in sheet.items])
            items = np.array([-1 if row is None else row for row in item_rows], np.int64)
            at = _looked_up(keys, sheet.shape.keys(texts, items))
            count += int(((at >= 0) & (sheet.codes == UNPARSED)).sum())
        return count

    def _codes(self, shapes: Sequence[SheetShape], *, anew: bool = True) -> list[Codes]:
        """As `codes`, from the store; where some are lacking, that is looked at for damage, too."""
        codes_by_query = self._stored_codes(shapes, anew=anew)
        if any((codes == MISSING).any() for codes in codes_by_query):
            self.store.check()
        return codes_by_query

    def _stored_codes(self, shapes: Sequence[SheetShape], *, anew: bool) -> list[Codes]:
        grader_id = self.grader_id
        if grader_id is None or not shapes:
            return [np.full(shape.size, MISSING, np.int8) for shape in shapes]
        texts, (items, readers) = self._passage_rows(shapes), self._item_keys(shapes)
        codes_by_query: list[Codes] = []
        for part in _together([len(shape.items) for shape in shapes]):
            rows = {row for query_index in part for row in items[query_index].tolist() if row in readers}
            n_cells = sum(shapes[query_index].n_cells for query_index in part)
            # What was read of an answer when it was stored is looked at only where it holds still.
            anew = anew and self._read is not None
            read = [
                of_keys
                for columns in self._columns(grader_id, rows, n_cells, answers=anew)
                for of_keys in (self._read_anew(columns, readers) if anew else [_of_keys(columns)])
            ]
            keys, codes = _in_order(read)
            for query_index in part:
                at = _looked_up(keys, shapes[query_index].keys(texts[query_index], items[query_index]))
                codes_by_query.append(np.where(at >= 0, codes[at], np.int8(MISSING)).astype(np.int8))
        return codes_by_query

    def _item_keys(
        self, shapes: Sequence[SheetShape]
    ) -> tuple[list[NDArray[np.int64]], Mapping[int, Sequence[tuple[int, Item]]]]:
        """The key of each query's items, -1 where none is stored; and row -> the items asked there by key.

        A key is an item's row in the store, but for items with the same prompt and another reading, by
        another answer key: all but the first have one beyond the rows.
        """
        alike: dict[tuple[bytes, tuple[str, ...]], int] = {}
        distinct: list[Item] = []
        numbers: list[list[int]] = []
        for shape in shapes:
            numbers.append([])
            for item in shape.items:
                number = alike.setdefault((asked_digest(item), item.gold_answers), len(distinct))
                if number == len(distinct):
                    distinct.append(item)
                numbers[-1].append(number)
        rows = self.store.item_ids([digest for digest, _ in alike])
        readers: dict[int, list[tuple[int, Item]]] = {}
        keys: list[int] = []
        beyond = max((row for row in rows if row is not None), default=0)
        for row, item in zip(rows, distinct, strict=True):
            if row is None:
                keys.append(-1)
                continue
            of_row = readers.setdefault(row, [])
            key = row
            if of_row and self._read is not None:
                key = beyond = beyond + 1
            of_row.append((key, item))
            keys.append(key)
        of_number = np.array(keys, np.int64)
        return [of_number[of_query] for of_query in numbers], readers

    def _columns(
        self, grader_id: int, item_rows: Collection[int], n_cells: int, *, answers: bool
    ) -> Iterator[GradeColumns]:
        """The grades on these items, which have so many cells, in blocks of a good size."""
        most = _MOST_ANSWERS if answers else _MOST_GRADES
        n_items = np.clip(most * len(item_rows) // max(n_cells, 1), 1, _MOST_ITEMS)
        return self.store.columns(grader_id, item_rows, int(n_items), answers=answers)

    def _read_anew(
        self, columns: GradeColumns, readers: Mapping[int, Sequence[tuple[int, Item]]]
    ) -> Iterator[tuple[NDArray[np.int64], Codes]]:
        """(keys, codes) of these answers as they are read now, see `SheetShape.keys`."""
        assert self._read is not None
        # Models say the same few things again and again.
        numbers: dict[tuple[str, bool], int] = {}
        assert columns.cut_at is not None
        answer_index = np.array(
            [
                numbers.setdefault((answer, cut), len(numbers))
                for answer, cut in zip(columns.answers, (columns.cut_at > 0).tolist(), strict=True)
            ],
            np.int64,
        )
        again = (columns.cut_at > 0) & (columns.cut_at < self._limit)
        answers = list(numbers)
        rows, row_of = np.unique(columns.item_ids, return_inverse=True)
        readable = columns.codes >= UNPARSED
        pairs, pair_of = np.unique((row_of * len(answers) + answer_index)[readable], return_inverse=True)
        of_rows = [readers.get(row, ()) for row in rows.tolist()]
        for variant in range(max(map(len, of_rows))):
            keys = np.array([of[variant][0] if len(of) > variant else -1 for of in of_rows], np.int64)[row_of]
            read = np.full(len(pairs), MISSING, np.int8)
            for at, pair in enumerate(pairs.tolist()):
                row, answer = divmod(pair, len(answers))
                if len(of_rows[row]) > variant:
                    rating, status = self._read(of_rows[row][variant][1], *answers[answer])
                    read[at] = CODES[status] if rating is None else rating
            codes = columns.codes.copy()
            codes[readable] = read[pair_of]
            # More tokens than ended the answer are allowed now.
            codes[again & (codes == UNPARSED)] = MISSING
            yield (keys << 32 | columns.passage_ids)[keys >= 0], codes[keys >= 0]

    def _passage_rows(self, shapes: Sequence[SheetShape]) -> list[NDArray[np.int64]]:
        """The row in the store of each query's passages; -1 where there is none."""
        texts = list({text for shape in shapes for text in shape.texts if text is not None})
        passage_ids = self.store.passage_ids([passage_digest(text) for text in texts])
        rows: dict[str | None, int] = {
            text: row for text, row in zip(texts, passage_ids, strict=True) if row is not None
        }
        return [np.array([rows.get(text, -1) for text in shape.texts], np.int64) for shape in shapes]

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether its grades have probabilities, stored or read from answers, when that was first asked."""
        if self.grader_id is None:
            return False
        return self._probabilities is not None or self.store.has_probabilities(self.grader_id)

    def reading(self, item: Item, grade: GradeRow) -> tuple[int | None, str]:
        """(rating, status) of a stored answer."""
        if self._read is None or grade.status not in {"ok", "unparsed"}:
            return grade.rating, grade.status
        return self._read(item, grade.answer, grade.cut_at is not None)

    def _stored_cells(self, sheet: Sheet, codes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(item row, passage row) of the query's cells with these codes that are stored."""
        rows, columns = sheet.where(np.isin(sheet.flat(), codes))
        if not len(rows):
            return
        (passages,) = self._passage_rows([sheet.shape])
        items = self.store.item_ids([asked_digest(item) for item in sheet.items])
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            item, passage = items[column], int(passages[row])
            if item is not None and passage >= 0:
                yield item, passage

    def forget(self, sheets: Mapping[str, Sheet], codes: Sequence[int]) -> int:
        """Drops the stored answers of cells with these codes, so that they are sent again; how many."""
        grader_id = self.grader_id
        cells = {cell for sheet in sheets.values() for cell in self._stored_cells(sheet, codes)}
        if grader_id is not None:
            self.store.forget_cells(grader_id, cells)
        return len(cells)

    def unparsed_answer(self, sheets: Mapping[str, Sheet]) -> Answer | None:
        """The first stored answer that cannot be read; None where there is none."""
        grader_id = self.grader_id
        cells = (cell for sheet in sheets.values() for cell in self._stored_cells(sheet, (UNPARSED,)))
        cell = next(cells, None)
        if grader_id is None or cell is None:
            return None
        grade = self.store.answer(grader_id, *cell)
        return None if grade is None else Answer(None, "unparsed", grade.answer, cut_at=grade.cut_at)

    def failed_items(self, sheets: Mapping[str, Sheet]) -> Iterator[tuple[Item, str, int]]:
        """Each item with cells that could not be graded: the item, the first one's reason, and how many."""
        grader_id = self.grader_id
        for sheet in sheets.values():
            _, columns = sheet.where(sheet.flat() == ERROR)
            failed = np.bincount(columns, minlength=len(sheet.items))
            for column in failed.nonzero()[0]:
                item = sheet.items[column]
                row = self.store.item_ids([asked_digest(item)])[0]
                if grader_id is None or row is None:
                    continue
                answers = self.store.answers(grader_id, row).values()
                reason = next((grade.answer for grade in answers if grade.status == "error"), "")
                yield item, reason, int(failed[column])

    def distributions(self, sheet: Sheet, *, read: bool = False) -> Distributions:
        """The stored probabilities of the ratings 0..5 of the query's cells.

        Args:
            read: take those that the grader reads from its stored answers, where it does that.
        """
        chances = np.full((sheet.codes.size, MAX_RATING + 1), np.nan)
        grader_id = self.grader_id
        if grader_id is None:
            return Distributions(sheet.spread(chances, np.nan), 0)
        if read and self._probabilities is not None:
            read_values = self._read_answers(grader_id, sheet, self._probabilities)
            return Distributions(sheet.spread(chances if read_values is None else read_values, np.nan), 0)
        stored = np.zeros(sheet.codes.size, np.bool_)
        for cell_index, grade in self._graded(grader_id, sheet):
            # A grader of users' own may have stored anything.
            if grade.probabilities is not None:
                whole = len(grade.probabilities) == MAX_RATING + 1
                chances[cell_index] = grade.probabilities if whole else np.inf
                stored[cell_index] = True
        good = usable(chances)
        chances[~good] = np.nan
        total = chances.sum(axis=1, keepdims=True)
        # Rounding is left unchanged.
        np.divide(chances, total, out=chances, where=np.abs(total - 1) > 1e-6)
        return Distributions(sheet.spread(chances, np.nan), int((stored & ~good).sum()))

    def cosines(self, sheet: Sheet) -> NDArray[np.float64] | None:
        """The cosines of the query's cells, NaN where there is none; None where the grader gives none."""
        if self._cosines is None:
            return None
        grader_id = self.grader_id
        cosines = None if grader_id is None else self._read_answers(grader_id, sheet, self._cosines)
        return sheet.spread(np.full(sheet.codes.size, np.nan) if cosines is None else cosines, np.nan)

    def _read_answers(
        self,
        grader_id: int,
        sheet: Sheet,
        read: Callable[[Sequence[str]], NDArray[np.float64]],
    ) -> NDArray[np.float64] | None:
        """What the raw answers of the query's cells mean, one a cell; None where there are none."""
        (texts,) = self._passage_rows([sheet.shape])
        item_rows = self.store.item_ids([asked_digest(item) for item in sheet.items])
        items = np.array([-1 if row is None else row for row in item_rows], np.int64)
        stored = [row for row in item_rows if row is not None]
        parts = [
            (_of_keys(columns)[0], read(columns.answers))
            for columns in self._columns(grader_id, stored, sheet.codes.size, answers=True)
        ]
        if not parts:
            return None
        keys, values = _in_order(parts)
        at = _looked_up(keys, sheet.shape.keys(texts, items)).reshape(-1)
        read_values: NDArray[np.float64] = values[at]
        read_values[at < 0] = np.nan
        return read_values

    def _graded(self, grader_id: int, sheet: Sheet) -> Iterator[tuple[int, GradeRow]]:
        """Where each cell with an answer is in `Sheet.flat`, and its whole grade, item by item."""
        (passages,) = self._passage_rows([sheet.shape])
        item_rows = self.store.item_ids([asked_digest(item) for item in sheet.items])
        rows, columns = sheet.at(np.arange(sheet.codes.size))
        in_order = np.argsort(columns, kind="stable")
        for column, cell_indices in groupby(in_order.tolist(), lambda cell_index: int(columns[cell_index])):
            item_row = item_rows[column]
            answers = {} if item_row is None else self.store.answers(grader_id, item_row)
            for cell_index in cell_indices if answers else ():
                grade = answers.get(int(passages[rows[cell_index]]))
                if grade is not None:
                    yield cell_index, grade

    def rows(
        self,
        sheets: Mapping[str, Sheet],
        human: Mapping[tuple[str, str, str], HumanRating],
        query_ids: Collection[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Every grade of these cells, for `export grades`: ids, rating, status, answer, digests.

        The rating is the grader's. Where a person rated the cell, that is next to it, so that what is
        read back as this grader's grades is.

        Args:
            human: (query_id, doc_id, item_id) -> the rating of a person that counts.
            query_ids: only of these queries.
        """
        grader_id = self.grader_id
        if grader_id is None:
            return
        model, prompt = self._model_and_prompt()
        model = self._named(model)
        for query_id, sheet in sheets.items():
            if query_ids is not None and query_id not in query_ids:
                continue
            digests = ["" if text is None else passage_digest(text).hex() for text in sheet.texts]
            item_digests = [item_digest(item).hex() for item in sheet.items]
            rows, columns = (of_cell.tolist() for of_cell in sheet.at(np.arange(sheet.codes.size)))
            for cell_index, grade in self._graded(grader_id, sheet):
                doc_id, item = sheet.doc_ids[rows[cell_index]], sheet.items[columns[cell_index]]
                rating, status = self.reading(item, grade)
                yield {
                    "query_id": query_id,
                    "doc_id": doc_id,
                    "item_id": item.item_id,
                    "rating": rating,
                    "status": status,
                    "answer": grade.answer,
                    "probabilities": grade.probabilities,
                    "model": model,
                    "prompt": prompt or self._prompt(item.kind),
                    "passage_sha256": digests[rows[cell_index]],
                    "item_sha256": item_digests[columns[cell_index]],
                    **({} if grade.cut_at is None else {"cut_at": grade.cut_at}),
                    **_human(human.get((query_id, doc_id, item.item_id))),
                }

    def model_and_prompt(self, items: Iterable[Item]) -> tuple[str, str]:
        """The model, and the prompts that ask about these items, as people know them; "" without a name."""
        model, prompt = self._model_and_prompt()
        return self._named(model), prompt or ", ".join(self.prompts(items))

    def prompts(self, items: Iterable[Item]) -> tuple[str, ...]:
        """The names of the prompts that ask about these items, sorted, as far as there are names."""
        return tuple(sorted({self._prompt(kind) for kind in {item.kind for item in items}} - {""}))

    def _named(self, model: str | None) -> str:
        return str(model or self.identity.get("model") or self.identity.get("grader") or "")

    def _prompt(self, kind: str) -> str:
        for prompt in self.identity.get("prompts", ()):
            if prompt["asks"] == kind:
                return str(prompt["name"])
        return str(self.identity.get("prompt") or "")

    def _model_and_prompt(self) -> tuple[str | None, str | None]:
        """What the grader is called where its identity does not say it."""
        try:
            return self._grader.model_and_prompt or (None, None)
        except (ConversionError, TrecexamError):
            # A recording that is gone names nobody; its grades are stored.
            return None, None


def _together(sizes: Sequence[int]) -> Iterator[range]:
    """Queries, by their places, that are looked up together: so many that they have `_MOST_ITEMS` or more."""
    begin = total = 0
    for query_index, size in enumerate(sizes):
        total += size
        if total >= _MOST_ITEMS or query_index == len(sizes) - 1:
            yield range(begin, query_index + 1)
            begin, total = query_index + 1, 0


def _of_keys(columns: GradeColumns) -> tuple[NDArray[np.int64], Codes]:
    """(keys, codes) of grades, see `SheetShape.keys`."""
    return columns.item_ids << 32 | columns.passage_ids, columns.codes


def _in_order(parts: Sequence[tuple[NDArray[np.int64], NDArray[Any]]]) -> tuple[Any, Any]:
    """Keys with a value each of several parts as one, sorted by key."""
    if not parts:
        return np.empty(0, np.int64), np.empty(1, np.int8)
    keys, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    return keys, values


def _looked_up(keys: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where each of these is among sorted keys; -1 where it is not."""
    if not len(keys):
        return np.full(targets.shape, -1)
    at = np.searchsorted(keys, targets)
    at[at == len(keys)] = 0
    return np.where(keys[at] == targets, at, -1)


def _human(row: HumanRating | None) -> dict[str, Any]:
    return {} if row is None else {"human_rating": row.rating, "who": row.who, "why": row.why}
