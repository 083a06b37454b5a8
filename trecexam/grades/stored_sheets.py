"""The grade sheets of a track from its store; what did not change is shared with the sheets before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trecexam.grades.sheets import ERROR, MISSING, Sheet
from trecexam.grades.stored_grades import StoredGrades
from trecexam.inputs.kind import Asked
from trecexam.inputs.overrides import Overrides
from trecexam.inputs.pool import TrackPool

#: query_id -> its cells.
Sheets = Mapping[str, Sheet]


def sheets_of(
    before: Sheets, grades: StoredGrades, questions: Asked, pool: TrackPool, overrides: Overrides
) -> Sheets:
    """Return the cells of every query; grades are looked up where passages, texts or items changed."""
    sheets: dict[str, Sheet] = {}
    new: list[Sheet] = []
    for query_id in pool.queries:
        doc_ids, items = pool.queries[query_id].doc_ids, questions.bank.items[query_id]
        texts = tuple(pool.gradable.get(doc_id) for doc_id in doc_ids)
        cells = None if questions.citing is None else _cells(doc_ids, questions.citing[query_id])
        old, human = before.get(query_id), overrides.queries.get(query_id)
        same = old is not None and (old.doc_ids, old.texts, old.items) == (doc_ids, texts, items)
        if old is not None and same and _equal(old.cells, cells):
            sheets[query_id] = old if old.overrides == human else replace(old, overrides=human)
        else:
            codes = np.full((len(texts), len(items)) if cells is None else cells.shape, MISSING, np.int8)
            sheets[query_id] = Sheet(query_id, doc_ids, texts, items, codes, human, cells)
            new.append(sheets[query_id])
    for sheet, codes in zip(new, grades.codes(new), strict=True):
        sheets[sheet.query_id] = replace(sheet, codes=codes)
    return sheets


def _equal(some: NDArray[np.int64] | None, other: NDArray[np.int64] | None) -> bool:
    return some is other or (some is not None and other is not None and np.array_equal(some, other))


def _cells(doc_ids: Sequence[str], citing: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the keys of the cells of items that are graded with these passages, see `Sheet`."""
    row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    keys = [row_of[doc] * len(citing) + column for column, docs in enumerate(citing) for doc in docs]
    return np.array(sorted(keys), np.int64)


def with_new_grades(sheets: Sheets, grades: StoredGrades) -> Sheets:
    """Return the same cells, with the grades that came since for those without one, or with an error."""
    stale = [sheet for sheet in sheets.values() if ((sheet.codes == MISSING) | (sheet.codes == ERROR)).any()]
    new_codes = grades.codes(stale)
    changed = {
        sheet.query_id: replace(sheet, codes=codes)
        for sheet, codes in zip(stale, new_codes, strict=True)
        if (codes != sheet.codes).any()
    }
    return {query_id: changed.get(query_id, sheet) for query_id, sheet in sheets.items()}
