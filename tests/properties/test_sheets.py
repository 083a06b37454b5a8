"""A partial sheet equals the whole sheet without the other cells."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from converters.gold import KIND as GOLD
from converters.records import Item
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.graders.base import Answer, Cell, Grader, identity_digest, identity_json
from trecexam.grades.sheets import (
    CODES,
    ERROR,
    MISSING,
    NOT_ASKED,
    Sheet,
    count_cells,
    ungraded_items,
)
from trecexam.grades.store import GradeRow, GradeStore
from trecexam.grades.stored_grades import StoredGrades
from trecexam.inputs.overrides import QueryOverrides

TEXTS = ("one", "two", "three", "four", None)
#: Gold outputs of a query have the same prompts, and each parses an answer separately.
ITEMS = (
    Item("q", "a", "What is a?", "question"),
    Item("q", "b", "What is b?", "question", ("4",)),
    Item("q", "g", "", GOLD, ("2",), query_text="query"),
    Item("q", "h", "", GOLD, ("3",), query_text="query"),
    Item("q", "c", "What is c?", "question"),
)


class Said(NamedTuple):
    """An answer in the store."""

    rating: int | None
    status: str
    answer: str

    @property
    def row(self) -> tuple[Any, ...]:
        chances = np.eye(6)[self.rating or 0].tolist() if self.answer.isdigit() else None
        return self.rating, self.status, self.answer, chances


class Stored(Grader):
    """A grader that grades nothing; stored answers are parsed as it says."""

    identity: ClassVar[Mapping[str, Any]] = {"grader": "stored"}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        yield from ()


class Reading(Stored):
    """A grader that parses stored answers again: an answer equal to the item's key is a 5."""

    free_text = True

    def read(self, item: Item, text: str, cut: bool = False) -> int | None:
        if text in item.gold_answers:
            return 5
        return int(text) % 6 if text.isdigit() else None

    def cosines(self, answers: Sequence[str]) -> np.ndarray:
        return np.array([float(text) if text.isdigit() else np.nan for text in answers])


said = st.one_of(
    st.integers(0, 5).map(lambda rating: Said(rating, "ok", str(rating))),
    st.sampled_from(["unparsed", "refused", "error"]).map(
        lambda status: Said(None, status, f"a {status}\x1f")
    ),
)
grades = st.dictionaries(
    st.tuples(st.sampled_from([text for text in TEXTS if text]), st.sampled_from(ITEMS).map(asked_digest)),
    said,
    max_size=12,
)


@st.composite
def sheets(draw: st.DrawFn) -> Sheet:
    """All cells of some texts and items, without grades."""
    texts = draw(st.lists(st.sampled_from(TEXTS), max_size=5))
    items = draw(st.lists(st.sampled_from(ITEMS), max_size=4, unique=True))
    doc_ids = tuple(f"d{row}" for row in range(len(texts)))
    return Sheet(
        "q", doc_ids, tuple(texts), tuple(items), np.full((len(texts), len(items)), MISSING, np.int8)
    )


def with_cells(sheet: Sheet, cells: np.ndarray) -> Sheet:
    return replace(sheet, codes=np.full(cells.shape, MISSING, np.int8), cells=cells)


def store_of(folder: str, stored: Mapping[tuple[str, bytes], Said]) -> GradeStore:
    store = GradeStore(Path(folder) / "grades.sqlite")
    grader = store.add_grader(identity_digest(Stored.identity), identity_json(Stored.identity))
    for (text, item), each in stored.items():
        ids = store.add_ids("item", [item])[0], store.add_ids("passage", [passage_digest(text)])[0]
        store.add(grader, [GradeRow(*ids, *each.row)])
    return store


def code_by_hand(grader: Stored, item: Item, each: Said | None) -> int:
    if each is None:
        return MISSING
    rating, status = each.rating, each.status
    if isinstance(grader, Reading) and status in {"ok", "unparsed"}:
        rating, status = grader.read(item, each.answer), "unparsed"
    return CODES[status] if rating is None else rating


@given(grades, st.lists(sheets(), max_size=4), st.data(), st.sampled_from([Stored(), Reading()]))
@settings(deadline=None)
def test_codes_equal_the_stored_grades_cell_by_cell(
    stored: dict[tuple[str, bytes], Said], dense: list[Sheet], data: st.DataObject, grader: Stored
) -> None:
    some = [
        with_cells(
            sheet, np.array(sorted(data.draw(st.sets(st.integers(0, sheet.codes.size - 1)))), np.int64)
        )
        for sheet in dense
        if sheet.codes.size
    ]
    with tempfile.TemporaryDirectory() as folder, store_of(folder, stored) as store:
        every = [*dense, *some]
        for sheet, codes in zip(every, StoredGrades(store, grader).codes(every), strict=True):
            assert codes.shape == sheet.codes.shape
            graded = replace(sheet, codes=codes)
            for row, text in enumerate(sheet.texts):
                for column, item in enumerate(sheet.items):
                    if sheet.cells is None or row * len(sheet.items) + column in sheet.cells:
                        each = stored.get((text, asked_digest(item))) if text else None
                        place = sheet.place_of(f"d{row}", item.item_id)
                        assert graded.flat()[place] == code_by_hand(grader, item, each)


@given(grades, sheets(), st.data(), st.sampled_from([Stored(), Reading()]))
@settings(deadline=None)
def test_a_partial_sheet_equals_the_whole_sheet_without_the_other_cells(
    stored: dict[tuple[str, bytes], Said], shape: Sheet, data: st.DataObject, grader: Stored
) -> None:
    n_cells, n_items = shape.codes.size, len(shape.items)
    cells = np.array(sorted(data.draw(st.sets(st.integers(0, n_cells - 1)))) if n_cells else [], np.int64)
    asked = np.zeros(n_cells, bool)
    asked[cells] = True
    chosen = data.draw(st.sets(st.sampled_from(cells.tolist()))) if len(cells) else set()
    people = QueryOverrides({(f"d{key // n_items}", shape.items[key % n_items].item_id): 1 for key in chosen})
    with tempfile.TemporaryDirectory() as folder, store_of(folder, stored) as store:
        of_grader = StoredGrades(store, grader)
        kinds = [shape, with_cells(shape, np.arange(n_cells)), with_cells(shape, cells)]
        dense, full, sparse = (
            replace(sheet, codes=codes, overrides=people)
            for sheet, codes in zip(kinds, of_grader.codes(kinds), strict=True)
        )
        # A sheet with all cells is the dense one.
        assert np.array_equal(full.flat(), dense.flat())
        assert np.array_equal(full.matrix(), dense.matrix())
        assert full.token != dense.token or not n_cells
        # A partial sheet has no trace of the others: they are neither 0 nor missing.
        assert np.array_equal(sparse.flat(), dense.flat()[asked])
        assert np.array_equal(sparse.gradable, dense.gradable[asked])
        outside = ~asked.reshape(dense.matrix().shape)
        assert (sparse.matrix()[outside] == NOT_ASKED).all()
        assert np.array_equal(sparse.matrix()[~outside], dense.matrix()[~outside])
        for sheet in (full, sparse):
            rows, columns = sheet.where(sheet.flat() == MISSING)
            assert (sheet.matrix()[rows, columns] == MISSING).all()
            assert len(rows) == (sheet.matrix() == MISSING).sum()
            assert count_cells([sheet]).missing == sum(count for _, count in ungraded_items([sheet]))
        rated = dense.ratings("zero").ratings
        expected = np.where(outside, MISSING, rated)
        assert np.array_equal(sparse.ratings("zero").ratings, expected)
        assert np.array_equal(full.ratings("zero").ratings, rated)
        counted = count_cells([sparse])
        assert (
            counted.cells
            == asked.sum()
            == sum(
                getattr(counted, name)
                for name in ("ok", "unparsed", "refused", "error", "missing", "no_text_cells")
            )
        )
        assert count_cells([full]) == count_cells([dense])
        for read in (False, True):
            values = of_grader.distributions(dense, read=read).values
            same(of_grader.distributions(full, read=read).values, values)
            same(
                of_grader.distributions(sparse, read=read).values,
                np.where(outside[..., None], np.nan, values),
            )
        if isinstance(grader, Reading):
            values = of_grader.cosines(dense)
            assert values is not None
            same(of_grader.cosines(full), values)
            same(of_grader.cosines(sparse), np.where(outside, np.nan, values))
        rows_of = [list(of_grader.rows({"q": sheet}, {})) for sheet in (dense, full, sparse)]
        assert rows_of[1] == rows_of[0]
        names = {(f"d{key // n_items}", shape.items[key % n_items].item_id) for key in cells.tolist()}
        assert rows_of[2] == [row for row in rows_of[0] if (row["doc_id"], row["item_id"]) in names]
        failed = [list(of_grader.failed_items({"q": sheet})) for sheet in (dense, full, sparse)]
        assert failed[1] == failed[0]
        errors = np.where(outside, MISSING, dense.matrix()) == ERROR
        assert {item.item_id: count for item, _, count in failed[2]} == {
            item.item_id: int(errors[:, column].sum())
            for column, item in enumerate(shape.items)
            if errors[:, column].any()
        }
        assert replace(full, overrides=None).digest != full.digest or not chosen


def same(found: Any, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(found, expected)
