"""The grades of one grader in the store, and the codes of a track's cells that are kept of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from converters.arrow import numbers
from converters.errors import ConversionError
from converters.records import HumanRating, Item
from trecexam.bank.model import asked_digest, item_digest, passage_digest
from trecexam.errors import TrecexamError
from trecexam.files.kept import read_kept, write_kept
from trecexam.graders import Grader
from trecexam.graders.base import Answer, identity_digest
from trecexam.grades.sheets import ERROR, MISSING, UNPARSED, Sheet
from trecexam.grades.store import GradeColumns, GradeRow, GradeStore
from trecexam.inputs.kind import Asked
from trecexam.inputs.overrides import Overrides
from trecexam.inputs.pool import TrackPool
from trecexam.scores.expected import usable
from trecexam.scores.ratings import MAX_RATING

Codes = NDArray[np.int8]

#: Of the file of kept codes.
_VERSION = 2
#: Grades of the queries with so many cells are read at a time.
_CELLS = 65_536


def read_codes(path: Path, key: str | None) -> Mapping[str, Codes]:
    """Return codes by `Sheet.token` as the last update kept them; {} where store or reader changed since."""
    content = None if key is None else read_kept(path, _VERSION)
    kept = {} if content is None else dict(np.load(io.BytesIO(content)))
    return kept if key in kept else {}


def write_codes(path: Path, key: str | None, codes: Mapping[str, Codes]) -> None:
    """Keep codes by `Sheet.token`; where this fails, the store is read again."""
    if key is not None and codes:
        arrays: dict[str, Any] = {key: np.empty(0, np.int8), **codes}
        content = io.BytesIO()
        np.savez(content, **arrays)
        with contextlib.suppress(TrecexamError):
            write_kept(path, content.getvalue(), _VERSION)


class StoredGrades:
    """A grader's answers, as stored; a free-text answer means what the prompt's parser reads in it now."""

    def __init__(self, store: GradeStore, grader: Grader) -> None:
        self.store = store
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
        rows = self.store.environments(self.grader_id)
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
        """Return the stored codes of each sheet's cells; codes that the sheets have do not matter.

        The store is checked for damage where some are lacking.
        """
        keys, codes_by_sheet = self._keys(sheets), list[Codes]()
        blocks = np.cumsum([of_sheet.size for of_sheet in keys]) // _CELLS
        for _, of_block in groupby(zip(blocks, sheets, keys, strict=True), lambda each: each[0]):
            block = [(sheet, of_sheet) for _, sheet, of_sheet in of_block]
            stored = self._stored([of_sheet for _, of_sheet in block], answers=self._read is not None)
            stored_codes = np.append(stored.codes, np.int8(MISSING))
            for sheet, of_sheet in block:
                at = stored.places(of_sheet)
                codes = stored_codes[at]
                if self._read is not None:
                    self._read_anew(sheet, codes, at, stored)
                codes_by_sheet.append(codes.reshape(sheet.codes.shape))
        if self.grader_id is not None and any((codes == MISSING).any() for codes in codes_by_sheet):
            self.store.check()
        return codes_by_sheet

    def _read_anew(self, sheet: Sheet, codes: Codes, at: NDArray[np.intp], stored: GradeColumns) -> None:
        """Replace the codes of a sheet by what its answers mean now; how they were read once does not count.

        Args:
            codes, at: of each cell, as of `Sheet.flat`; its place in `stored`, -1 for none.
        """
        assert self._read is not None
        cells = np.flatnonzero((at >= 0) & (codes >= UNPARSED))
        limits, texts = stored.cut_at[at[cells]], stored.answers.dictionary
        kinds = sheet.at(cells)[1] * len(texts) + numbers(stored.answers.indices)[at[cells]]
        distinct, kind_of = np.unique(kinds << 1 | (limits > 0), return_inverse=True)
        read = np.empty(len(distinct), np.int8)
        for index, kind in enumerate(distinct.tolist()):
            column, text = divmod(kind >> 1, len(texts))
            rating = self._read(sheet.items[column], texts[text].as_py(), bool(kind & 1))
            read[index] = UNPARSED if rating is None else rating
        codes[cells] = read[kind_of]
        # More tokens than ended the answer are allowed now.
        codes[cells[(limits > 0) & (limits < self._limit) & (codes[cells] == UNPARSED)]] = MISSING

    def _keys(self, sheets: Sequence[Sheet]) -> list[NDArray[np.int64]]:
        """Return the key of each cell of these sheets, as of `Sheet.flat`; negative without stored rows."""
        texts = list({text for sheet in sheets for text in sheet.texts if text is not None})
        passage_ids = self.store.ids("passage", [*map(passage_digest, texts)])
        rows = dict[str | None, int | None](zip(texts, passage_ids, strict=True))
        items = iter(self.store.ids("item", [asked_digest(item) for sheet in sheets for item in sheet.items]))
        return [
            sheet.keys(_numbers(map(rows.get, sheet.texts)), _numbers(islice(items, len(sheet.items))))
            for sheet in sheets
        ]

    def _stored(self, keys: Sequence[NDArray[np.int64]], *, answers: bool) -> GradeColumns:
        """Return the stored grades of cells with these keys, and maybe of some others."""
        cells = np.concatenate([np.empty(0, np.int64), *keys])
        items, passages = np.divmod(cells[cells >= 0], 2**32)
        # Items that all queries have are graded on many passages of others.
        between = int(passages.min(initial=2**31)), int(passages.max(initial=0))
        return self.store.columns(self.grader_id, np.unique(items).tolist(), between, answers=answers)

    def n_cut(self, sheets: Mapping[str, Sheet]) -> int:
        """Count the unparsed cells whose answer was cut off."""
        cut = self.store.cut_keys(self.grader_id)
        return int(np.isin(self._chosen_keys(sheets, (UNPARSED,)), cut).sum()) if len(cut) else 0

    def forget(self, sheets: Mapping[str, Sheet], codes: Sequence[int]) -> int:
        """Drop the stored answers of cells with these codes, so that they are sent again; return how many."""
        keys = np.unique(self._chosen_keys(sheets, codes))
        self.store.forget(self.grader_id, keys[keys >= 0].tolist())
        return int((keys >= 0).sum())

    def _chosen_keys(self, sheets: Mapping[str, Sheet], codes: Sequence[int]) -> NDArray[np.int64]:
        """Return the keys of the cells with these codes."""
        some = [sheet for sheet in sheets.values() if np.isin(sheet.codes, codes).any()]
        keys = zip(some, self._keys(some), strict=True)
        return np.concatenate(
            [np.empty(0, np.int64), *(key[np.isin(sheet.flat(), codes)] for sheet, key in keys)]
        )

    @cached_property
    def has_probabilities(self) -> bool:
        """True where grades have probabilities, stored or read from answers; looked up once."""
        reads = self._grader.probabilities is not None and self.grader_id is not None
        return reads or self.store.has_probabilities(self.grader_id)

    def unparsed_answer(self, sheets: Mapping[str, Sheet]) -> Answer | None:
        """Return the first stored answer that cannot be read; None where there is none."""
        for sheet in sheets.values():
            for _, _, grade in self._graded(sheet, np.flatnonzero(sheet.flat() == UNPARSED)[:1]):
                return Answer(None, "unparsed", grade.answer, cut_at=grade.cut_at)
        return None

    def failed_items(self, sheets: Mapping[str, Sheet]) -> Iterator[tuple[Item, str, int]]:
        """Yield each item with cells that could not be graded, the first one's reason, and how many."""
        for sheet in sheets.values():
            reasons: dict[int, list[str]] = {}
            for _, column, grade in self._graded(sheet, np.flatnonzero(sheet.flat() == ERROR)):
                reasons.setdefault(column, []).append(grade.answer)
            yield from ((sheet.items[column], each[0], len(each)) for column, each in reasons.items())

    def distributions(self, sheet: Sheet, *, read: bool = False) -> NDArray[np.float64]:
        """Return the probabilities of the ratings 0..5, shape (n_docs, n_items, 6); NaN where there are none.

        Stored numbers that cannot be probabilities count as none.

        Args:
            read: take those that the grader reads from its stored answers, where it does that.
        """
        if read and self._grader.probabilities is not None:
            return self._read_answers(sheet, self._grader.probabilities, (MAX_RATING + 1,))
        chances = np.full((len(sheet.doc_ids), len(sheet.items), MAX_RATING + 1), np.nan)
        for row, column, grade in self._graded(sheet):
            # A grader of users' own may have stored anything.
            if grade.probabilities is not None:
                whole = len(grade.probabilities) == MAX_RATING + 1
                chances[row, column] = grade.probabilities if whole else np.nan
        chances[~usable(chances)] = np.nan
        total = chances.sum(axis=2, keepdims=True)
        # Rounding is left unchanged.
        np.divide(chances, total, out=chances, where=np.abs(total - 1) > 1e-6)
        return chances

    def cosines(self, sheet: Sheet) -> NDArray[np.float64] | None:
        """Return the cosines of the query's cells, NaN without one; None where the grader gives none."""
        read = self._grader.cosines
        return None if read is None else self._read_answers(sheet, read)

    def _read_answers(
        self, sheet: Sheet, read: Callable[[Sequence[str]], NDArray[np.float64]], each: tuple[int, ...] = ()
    ) -> NDArray[np.float64]:
        """Return numbers read from raw answers, shape (rows, columns, *each); NaN without an answer."""
        keys = self._keys([sheet])
        stored = self._stored(keys, answers=True)
        at = stored.places(keys[0])
        found = np.full((at.size, *each), np.nan)
        if len(stored.codes):
            values = read(stored.answers.dictionary.to_pylist())
            found[at >= 0] = values[numbers(stored.answers.indices)[at[at >= 0]]]
        return sheet.spread(found, np.nan)

    def _graded(
        self, sheet: Sheet, cells: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[int, int, GradeRow]]:
        """Yield the row, the column and the whole grade of each cell with an answer, item by item.

        Args:
            cells: only these, by their indices in `Sheet.flat`.
        """
        cells = np.arange(sheet.codes.size) if cells is None else cells
        if not len(cells):
            return
        keys, (rows, columns) = self._keys([sheet])[0][cells], sheet.at(cells)
        in_order = np.argsort(columns, kind="stable")
        for item, of_item in groupby(in_order[keys[in_order] >= 0].tolist(), lambda i: int(keys[i] >> 32)):
            answers = self.store.answers(self.grader_id, item)
            for index in of_item:
                grade = answers.get(int(keys[index]) % 2**32)
                if grade is not None:
                    yield int(rows[index]), int(columns[index]), grade

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
        """
        model, prompt = self.model_and_prompt()
        for query_id, sheet in sheets.items():
            if query_ids is not None and query_id not in query_ids:
                continue
            digests = ["" if text is None else passage_digest(text).hex() for text in sheet.texts]
            item_digests = [item_digest(item).hex() for item in sheet.items]
            for row, column, grade in self._graded(sheet):
                doc_id, item = sheet.doc_ids[row], sheet.items[column]
                rating, status = grade.rating, grade.status
                if self._read is not None and status in {"ok", "unparsed"}:
                    rating = self._read(item, grade.answer, grade.cut_at is not None)
                    status = "unparsed" if rating is None else "ok"
                person = human.get((query_id, doc_id, item.item_id))
                grade_row = {
                    "query_id": query_id,
                    "doc_id": doc_id,
                    "item_id": item.item_id,
                    "rating": rating,
                    "status": status,
                    "answer": grade.answer,
                    "probabilities": grade.probabilities,
                    "model": model,
                    "prompt": prompt or self._prompt(item.kind),
                    "passage_sha256": digests[row],
                    "item_sha256": item_digests[column],
                }
                if grade.cut_at is not None:
                    grade_row["cut_at"] = grade.cut_at
                if person is not None:
                    grade_row |= {"human_rating": person.rating, "who": person.who, "why": person.why}
                yield grade_row

    def model_and_prompt(self, items: Iterable[Item] = ()) -> tuple[str, str]:
        """Return the names of the model, and of the prompts that ask about these items; "" without one."""
        model, prompt = None, None
        # A recording that is gone names nobody; its grades are stored.
        with contextlib.suppress(ConversionError, TrecexamError):
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


def sheets_of(
    before: Mapping[str, Sheet],
    kept: Mapping[str, Codes],
    grades: StoredGrades,
    questions: Asked,
    pool: TrackPool,
    overrides: Overrides,
) -> Mapping[str, Sheet]:
    """Return the cells of every query; grades are looked up where passages, texts or items changed."""
    sheets: dict[str, Sheet] = {}
    new: list[Sheet] = []
    for query_id in pool.queries:
        doc_ids, items = pool.queries[query_id].doc_ids, questions.bank.items[query_id]
        texts = tuple(map(pool.gradable.get, doc_ids))
        cells = None if questions.citing is None else _cells(doc_ids, questions.citing[query_id])
        old, human = before.get(query_id), overrides.queries.get(query_id)
        same = old is not None and (old.doc_ids, old.texts, old.items) == (doc_ids, texts, items)
        if old is not None and same and np.array_equal(old.cells, cells):  # type: ignore[arg-type]
            sheets[query_id] = old if old.overrides == human else replace(old, overrides=human)
        else:
            codes = np.full((len(texts), len(items)) if cells is None else cells.shape, MISSING, np.int8)
            sheets[query_id] = Sheet(query_id, doc_ids, texts, items, codes, human, cells)
            new.append(sheets[query_id])
    known = {sheet.query_id: kept[sheet.token] for sheet in new if kept and sheet.token in kept}
    unknown = [sheet for sheet in new if sheet.query_id not in known]
    known.update(zip((sheet.query_id for sheet in unknown), grades.codes(unknown), strict=True))
    return sheets | {sheet.query_id: replace(sheet, codes=known[sheet.query_id]) for sheet in new}


def _cells(doc_ids: Sequence[str], citing: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the store keys of the cells of these items and passages, see `Sheet`."""
    row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    keys = [row_of[doc] * len(citing) + column for column, docs in enumerate(citing) for doc in docs]
    return np.array(sorted(keys), np.int64)


def with_new_grades(sheets: Mapping[str, Sheet], grades: StoredGrades) -> Mapping[str, Sheet]:
    """Return the same cells, with the grades that came since for those without one, or with an error."""
    stale = [sheet for sheet in sheets.values() if ((sheet.codes == MISSING) | (sheet.codes == ERROR)).any()]
    new_codes = grades.codes(stale)
    changed = {
        sheet.query_id: replace(sheet, codes=codes)
        for sheet, codes in zip(stale, new_codes, strict=True)
        if (codes != sheet.codes).any()
    }
    return {query_id: changed.get(query_id, sheet) for query_id, sheet in sheets.items()}
