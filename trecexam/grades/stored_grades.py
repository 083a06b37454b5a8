"""The grades of one grader in the store: read in bulk as columns, or with their raw answers, item by item."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
from trecexam.grades.kept_codes import KeptCodes
from trecexam.grades.sheets import CODES, ERROR, MISSING, UNPARSED, Sheet
from trecexam.grades.store import GradeColumns, GradeRow, GradeStore
from trecexam.results.text import plural
from trecexam.scores.expected import usable
from trecexam.scores.ratings import MAX_RATING

Codes = NDArray[np.int8]

#: Grades of the queries with so many items are in memory at a time. They are read in blocks of so many
#: grades, of fewer with their answers, which may be long.
_MOST_ITEMS, _MOST_GRADES, _MOST_ANSWERS = 4096, 65_536, 4096


class Distributions(NamedTuple):
    """Probabilities of the ratings of a query's cells.

    Attributes:
        values: the probabilities of the ratings 0..5, shape (n_docs, n_items, 6), in the order of the sheet;
            NaN where there are none.
        unusable: how many cells have numbers stored that can be none, see `usable`; they count as none.
    """

    values: NDArray[np.float64]
    unusable: int


def unusable_lines(n: int) -> tuple[str, ...]:
    """Return a line on so many cells with numbers that can be no probabilities; none for 0."""
    what = "with stored numbers that cannot be probabilities (six numbers of 0 or more, not all 0): ignored"
    return (f"{plural(n, 'row')} {what}",) if n else ()


class StoredGrades:
    """One grader's answers, as stored; a free-text answer means what the prompt's parser reads in it now."""

    def __init__(self, store: GradeStore, grader: Grader, kept_codes: KeptCodes | None = None) -> None:
        """Args: kept_codes: the codes as they were read last, where they may be taken from there."""
        self.store = store
        self._kept = kept_codes
        self._grader = grader
        self.identity = grader.identity
        self._read = grader.read if grader.free_text else None
        self._limit = grader.reply_limit or 0

    @property
    def grader_id(self) -> int | None:
        """The grader's row in the store; None where it never graded here."""
        return self.store.grader_id(identity_digest(self.identity))

    def environments(self) -> dict[str, Any]:
        """Return what the stored answers were made on, for manifest.json; {} where nothing is known.

        `graded_on` has each environment (see `Grader`), the most frequent first, with its number of answers
        where there are several; `unknown` counts answers of graders that say nothing of it; `mixed` names,
        sorted, what differs between answers, as far as known.
        """
        grader_id = self.grader_id
        rows = [] if grader_id is None else self.store.environments(grader_id)
        known = [(details, n) for details, n in rows if details is not None]
        if not known:
            return {}
        unknown = sum(n for details, n in rows if details is None)
        names = sorted({name for details, _ in known for name in details})
        return {
            "mixed": [name for name in names if len({details.get(name) for details, _ in known}) > 1],
            "graded_on": [{**details, **({"answers": n} if len(rows) > 1 else {})} for details, n in known],
            **({"unknown": unknown} if unknown else {}),
        }

    def codes(self, sheets: Sequence[Sheet]) -> list[Codes]:
        """Return the stored codes of each sheet's cells; codes that the sheets have do not matter."""
        codes_by_token = self._kept.read(self.store.at_rest()) if self._kept and sheets else {}
        kept = [codes_by_token.get(sheet.token) if codes_by_token else None for sheet in sheets]
        new = iter(self._codes([sheet for sheet, codes in zip(sheets, kept, strict=True) if codes is None]))
        return [next(new) if codes is None else codes for codes in kept]

    def n_cut(self, sheets: Mapping[str, Sheet]) -> int:
        """Count the unparsed cells whose answer was cut off."""
        grader_id = self.grader_id
        cut = frozenset() if grader_id is None else self.store.cut_cells(grader_id)
        return sum(cell in cut for cell in self._stored_cells(sheets, (UNPARSED,))) if cut else 0

    def _codes(self, sheets: Sequence[Sheet]) -> list[Codes]:
        """Return the codes from the store, which is checked for damage where some are lacking."""
        grader_id = self.grader_id
        if grader_id is None or not sheets:
            return [np.full(sheet.codes.shape, MISSING, np.int8) for sheet in sheets]
        texts, (items, readers) = self._passage_rows(sheets), self._item_keys(sheets)
        # How an answer was read when it was stored counts only where that still holds.
        anew = self._read is not None
        codes_by_query: list[Codes] = []
        for part in _together([len(sheet.items) for sheet in sheets]):
            rows = {row for query_index in part for row in items[query_index].tolist() if row in readers}
            n_cells = sum(sheets[query_index].codes.size for query_index in part)
            read = [
                of_keys
                for columns in self._columns(grader_id, rows, n_cells, answers=anew)
                for of_keys in (self._read_anew(columns, readers) if anew else [_of_keys(columns)])
            ]
            keys, codes = _in_order(read)
            for query_index in part:
                at = _looked_up(keys, sheets[query_index].keys(texts[query_index], items[query_index]))
                codes_by_query.append(np.where(at >= 0, codes[at], np.int8(MISSING)).astype(np.int8))
        if any((codes == MISSING).any() for codes in codes_by_query):
            self.store.check()
        return codes_by_query

    def _item_keys(
        self, sheets: Sequence[Sheet]
    ) -> tuple[list[NDArray[np.int64]], Mapping[int, Sequence[tuple[int, Item]]]]:
        """The key of each query's items, -1 where none is stored; and row -> the items asked there by key.

        A key is an item's row in the store, but for items with the same prompt and another reading, by
        another answer key: all but the first have one beyond the rows.
        """
        alike = [[(asked_digest(item), item.gold_answers) for item in sheet.items] for sheet in sheets]
        distinct: dict[tuple[bytes, tuple[str, ...]], Item] = {}
        for sheet, of_sheet in zip(sheets, alike, strict=True):
            for each, item in zip(of_sheet, sheet.items, strict=True):
                distinct.setdefault(each, item)
        rows = self.store.item_ids([digest for digest, _ in distinct])
        readers: dict[int, list[tuple[int, Item]]] = {}
        keys: dict[tuple[bytes, tuple[str, ...]], int] = {}
        beyond = max((row for row in rows if row is not None), default=0)
        for (each, item), row in zip(distinct.items(), rows, strict=True):
            keys[each] = -1 if row is None else row
            if row is not None:
                if row in readers and self._read is not None:
                    keys[each] = beyond = beyond + 1
                readers.setdefault(row, []).append((keys[each], item))
        return [np.array([keys[each] for each in of_sheet], np.int64) for of_sheet in alike], readers

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
        """(keys, codes) of these answers as they are read now, see `Sheet.keys`."""
        assert self._read is not None
        # Models say the same few things again and again.
        numbers: dict[tuple[str, bool], int] = {}
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

    def _passage_rows(self, sheets: Sequence[Sheet]) -> list[NDArray[np.int64]]:
        """The row in the store of each query's passages; -1 where there is none."""
        texts = list({text for sheet in sheets for text in sheet.texts if text is not None})
        passage_ids = self.store.passage_ids([passage_digest(text) for text in texts])
        rows = dict[str | None, int | None](zip(texts, passage_ids, strict=True))
        return [_numbers([rows.get(text) for text in sheet.texts]) for sheet in sheets]

    def _item_rows(self, sheet: Sheet) -> NDArray[np.int64]:
        """Return the row in the store of each item; -1 where there is none."""
        return _numbers(self.store.item_ids([asked_digest(item) for item in sheet.items]))

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether its grades have probabilities, stored or read from answers, when that was first asked."""
        if self.grader_id is None:
            return False
        return self._grader.probabilities is not None or self.store.has_probabilities(self.grader_id)

    def reading(self, item: Item, grade: GradeRow) -> tuple[int | None, str]:
        """Return (rating, status) of a stored answer."""
        if self._read is None or grade.status not in {"ok", "unparsed"}:
            return grade.rating, grade.status
        return self._read(item, grade.answer, grade.cut_at is not None)

    def _stored_cells(self, sheets: Mapping[str, Sheet], codes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield (item row, passage row) of each stored cell with one of these codes."""
        for sheet in sheets.values():
            rows, columns = sheet.where(np.isin(sheet.flat(), codes))
            if len(rows):
                (passages,) = self._passage_rows([sheet])
                cells = zip(self._item_rows(sheet)[columns].tolist(), passages[rows].tolist(), strict=True)
                yield from (cell for cell in cells if min(cell) >= 0)

    def forget(self, sheets: Mapping[str, Sheet], codes: Sequence[int]) -> int:
        """Drop the stored answers of cells with these codes, so that they are sent again; return how many."""
        grader_id = self.grader_id
        cells = set(self._stored_cells(sheets, codes))
        if grader_id is not None:
            self.store.forget_cells(grader_id, cells)
        return len(cells)

    def unparsed_answer(self, sheets: Mapping[str, Sheet]) -> Answer | None:
        """Return the first stored answer that cannot be read; None where there is none."""
        grader_id = self.grader_id
        item, passage = next(self._stored_cells(sheets, (UNPARSED,)), (-1, -1))
        grade = None if grader_id is None else self.store.answers(grader_id, item).get(passage)
        return None if grade is None else Answer(None, "unparsed", grade.answer, cut_at=grade.cut_at)

    def failed_items(self, sheets: Mapping[str, Sheet]) -> Iterator[tuple[Item, str, int]]:
        """Yield each item with cells that could not be graded, the first one's reason, and how many."""
        grader_id = self.grader_id
        for sheet in sheets.values():
            _, columns = sheet.where(sheet.flat() == ERROR)
            failed = np.bincount(columns, minlength=len(sheet.items))
            rows = self._item_rows(sheet) if len(columns) else ()
            for column in failed.nonzero()[0]:
                if grader_id is not None and rows[column] >= 0:
                    answers = self.store.answers(grader_id, int(rows[column])).values()
                    reason = next((grade.answer for grade in answers if grade.status == "error"), "")
                    yield sheet.items[column], reason, int(failed[column])

    def distributions(self, sheet: Sheet, *, read: bool = False) -> Distributions:
        """Return the stored probabilities of the ratings 0..5 of the query's cells.

        Args:
            read: take those that the grader reads from its stored answers, where it does that.
        """
        if read and self._grader.probabilities is not None:
            return Distributions(self._read_answers(sheet, self._grader.probabilities, (MAX_RATING + 1,)), 0)
        chances = np.full((sheet.codes.size, MAX_RATING + 1), np.nan)
        stored = np.zeros(sheet.codes.size, np.bool_)
        for cell_index, grade in self._graded(sheet):
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
        """Return the cosines of the query's cells, NaN without one; None where the grader gives none."""
        read = self._grader.cosines
        return None if read is None else self._read_answers(sheet, read)

    def _read_answers(
        self, sheet: Sheet, read: Callable[[Sequence[str]], NDArray[np.float64]], each: tuple[int, ...] = ()
    ) -> NDArray[np.float64]:
        """Return numbers read from raw answers, shape (rows, columns, *each); NaN without an answer."""
        grader_id, items = self.grader_id, self._item_rows(sheet)
        (texts,) = self._passage_rows([sheet])
        stored = items[items >= 0].tolist()
        parts = [
            (_of_keys(columns)[0], read(columns.answers))
            for columns in (
                () if grader_id is None else self._columns(grader_id, stored, sheet.codes.size, answers=True)
            )
        ]
        found = np.full((sheet.codes.size, *each), np.nan)
        if parts:
            keys, values = _in_order(parts)
            at = _looked_up(keys, sheet.keys(texts, items)).reshape(-1)
            found[at >= 0] = values[at[at >= 0]]
        return sheet.spread(found, np.nan)

    def _graded(self, sheet: Sheet) -> Iterator[tuple[int, GradeRow]]:
        """Yield the index in `Sheet.flat` of each cell with an answer, and its whole grade, item by item."""
        grader_id, item_rows = self.grader_id, self._item_rows(sheet)
        (passages,) = self._passage_rows([sheet])
        rows, columns = sheet.at(np.arange(sheet.codes.size))
        in_order = np.argsort(columns, kind="stable")
        for column, cell_indices in groupby(in_order.tolist(), lambda cell_index: int(columns[cell_index])):
            item_row = int(item_rows[column])
            answers = {} if grader_id is None or item_row < 0 else self.store.answers(grader_id, item_row)
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
        """Yield every grade of these cells, for `export grades`: ids, rating, status, answer, digests.

        The rating is the grader's. A person's rating of the cell is next to it, so that the rows can be read
        back as this grader's grades.

        Args:
            human: (query_id, doc_id, item_id) -> the rating of a person that counts.
            query_ids: only of these queries.
        """
        if self.grader_id is None:
            return
        model, prompt = self.model_and_prompt()
        for query_id, sheet in sheets.items():
            if query_ids is not None and query_id not in query_ids:
                continue
            digests = ["" if text is None else passage_digest(text).hex() for text in sheet.texts]
            item_digests = [item_digest(item).hex() for item in sheet.items]
            rows, columns = (of_cell.tolist() for of_cell in sheet.at(np.arange(sheet.codes.size)))
            for cell_index, grade in self._graded(sheet):
                doc_id, item = sheet.doc_ids[rows[cell_index]], sheet.items[columns[cell_index]]
                rating, status = self.reading(item, grade)
                person = human.get((query_id, doc_id, item.item_id))
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
                    **(
                        {}
                        if person is None
                        else {"human_rating": person.rating, "who": person.who, "why": person.why}
                    ),
                }

    def model_and_prompt(self, items: Iterable[Item] = ()) -> tuple[str, str]:
        """Return the names of the model, and of the prompts that ask about these items; "" without one."""
        model, prompt = None, None
        # A recording that is gone names nobody; its grades are stored.
        with suppress(ConversionError, TrecexamError):
            model, prompt = self._grader.model_and_prompt or (None, None)
        model = model or self.identity.get("model") or self.identity.get("grader") or ""
        return str(model), prompt or ", ".join(self.prompts(items))

    def prompts(self, items: Iterable[Item]) -> tuple[str, ...]:
        """Return the names of the prompts that ask about these items, sorted, as far as there are names."""
        return tuple(sorted({self._prompt(kind) for kind in {item.kind for item in items}} - {""}))

    def _prompt(self, kind: str) -> str:
        prompts = self.identity.get("prompts", ())
        names = (prompt["name"] for prompt in prompts if prompt["asks"] == kind)
        return str(next(names, self.identity.get("prompt") or ""))


def _numbers(rows: Iterable[int | None]) -> NDArray[np.int64]:
    return np.array([-1 if row is None else row for row in rows], np.int64)


def _together(sizes: Sequence[int]) -> Iterator[range]:
    """Queries, by their places, that are looked up together: so many that they have `_MOST_ITEMS` or more."""
    begin = total = 0
    for query_index, size in enumerate(sizes):
        total += size
        if total >= _MOST_ITEMS or query_index == len(sizes) - 1:
            yield range(begin, query_index + 1)
            begin, total = query_index + 1, 0


def _of_keys(columns: GradeColumns) -> tuple[NDArray[np.int64], Codes]:
    """(keys, codes) of grades, see `Sheet.keys`."""
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
