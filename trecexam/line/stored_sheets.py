"""The grade sheets of a track from its store; what did not change is shared with the sheets before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trecexam.bank import Bank
from trecexam.line.overrides import Overrides
from trecexam.line.sheets import ERROR, MISSING, Sheet, SheetShape
from trecexam.line.stored_grades import StoredGrades
from trecexam.line.track_pool import TrackPool

#: query_id -> its cells.
Sheets = Mapping[str, Sheet]


def sheets_of(
    before: Sheets, grades: StoredGrades, bank: Bank, pool: TrackPool, overrides: Overrides
) -> Sheets:
    """The cells of every query; only where passages, texts or items changed grades are looked up."""
    sheets: dict[str, Sheet] = {}
    new: dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]] = {}
    for query_id, doc_ids in pool.doc_ids.items():
        keys = tuple(map(pool.gradable.get, doc_ids))
        known, human = before.get(query_id), overrides.queries.get(query_id)
        if known and (known.doc_ids, known.texts, known.items) == (doc_ids, keys, bank.items[query_id]):
            sheets[query_id] = known if known.overrides == human else replace(known, overrides=human)
        else:
            new[query_id] = doc_ids, keys
    found = grades.codes([SheetShape(keys, bank.items[query_id]) for query_id, (_, keys) in new.items()])
    for (query_id, (doc_ids, keys)), codes in zip(new.items(), found, strict=True):
        sheets[query_id] = Sheet(
            query_id, doc_ids, keys, bank.items[query_id], codes, overrides.queries.get(query_id)
        )
    return {query_id: sheets[query_id] for query_id in pool.queries}


def with_new_grades(sheets: Sheets, grades: StoredGrades) -> Sheets:
    """The same cells with the grades that came since for those without one, or with an error."""
    stale = [sheet for sheet in sheets.values() if ((sheet.codes == MISSING) | (sheet.codes == ERROR)).any()]
    found = grades.codes([sheet.shape for sheet in stale])
    changed = {
        sheet.query_id: replace(sheet, codes=codes)
        for sheet, codes in zip(stale, found, strict=True)
        if (codes != sheet.codes).any()
    }
    return {query_id: changed.get(query_id, sheet) for query_id, sheet in sheets.items()}
