"""The grades of one grader in the store: read in bulk as columns, or with their raw answers, item by item."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from converters.errors import ConversionError
from converters.records import HumanRating, Item
from trecexam.bank.model import asked_digest, item_digest, passage_digest
from trecexam.errors import TrecexamError
from trecexam.graders import Grader
from trecexam.graders.base import identity_digest
from trecexam.graders.traits import traits_of
from trecexam.line.environments import Environments
from trecexam.line.kept_codes import KeptCodes, cells_token
from trecexam.line.sheets import CODES, ERROR, MISSING, UNPARSED, GradeSheet
from trecexam.line.store import GradeRow, GradeStore, ItemGrades
from trecexam.scores.expected import usable
from trecexam.scores.ratings import MAX_RATING
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int8]


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
    what = "stored as probabilities cannot be any (six numbers from 0 on, not all 0), and count as none"
    return (f"{plural(n, 'row')} {what}",) if n else ()


class StoredGrades:
    """What one grader said, as the store has it.

    Free text that a model wrote stays as it is stored; what it means follows the prompt's parser.
    """

    def __init__(self, store: GradeStore, grader: Grader, kept: KeptCodes | None = None) -> None:
        """Args: kept: the codes as they were read last, where they may be taken from there."""
        self.store = store
        self._kept = kept
        self._grader = grader
        self.identity = grader.identity
        traits = traits_of(grader)
        self._read = traits.read if traits.free_text else None
        self._probabilities = traits.probabilities
        self._cosines = traits.cosines

    @property
    def grader_id(self) -> int | None:
        """The grader's row in the store; None where it never graded here."""
        return self.store.grader_id(identity_digest(self.identity))

    def environments(self) -> Environments:
        """What its answers were made on, all that are stored."""
        grader_id = self.grader_id
        return Environments.of_rows([] if grader_id is None else self.store.environments(grader_id))

    def codes(self, cells: Sequence[tuple[Sequence[str | None], Sequence[Item]]]) -> list[Codes]:
        """The codes of each query's cells, see `GradeSheet`.

        Args:
            cells: the texts and the items of each query.
        """
        kept = self._kept.read(self.store.at_rest()) if self._kept and cells else {}
        known = [kept.get(cells_token(*of_query)) if kept else None for of_query in cells]
        new = iter(
            self._codes([of_query for of_query, codes in zip(cells, known, strict=True) if codes is None])
        )
        return [next(new) if codes is None else codes for codes in known]

    def _codes(self, cells: Sequence[tuple[Sequence[str | None], Sequence[Item]]]) -> list[Codes]:
        matrices = [np.full((len(texts), len(items)), MISSING, np.int8) for texts, items in cells]
        grader_id = self.grader_id
        if grader_id is None or not cells:
            return matrices
        passages = self._passage_rows(cells)
        digests = [[asked_digest(item) for item in items] for _, items in cells]
        flat = [digest for of_query in digests for digest in of_query]
        rows = dict(zip(flat, self.store.item_ids(flat), strict=True))
        row_numbers = sorted({row for row in rows.values() if row is not None})
        places: dict[int, list[tuple[int, int]]] = {}
        for place, of_query in enumerate(digests):
            for column, digest in enumerate(of_query):
                row = rows[digest]
                if row is not None:
                    places.setdefault(row, []).append((place, column))
        # What was read of an answer when it was stored is looked at only where it holds still.
        columns = self.store.grade_columns if self._read is None else self.store.answer_columns
        for grades in columns(grader_id, row_numbers):
            for place, column in places.get(grades.item_id, ()):
                codes = self._codes_of(cells[place][1][column], grades)
                matrices[place][:, column] = _looked_up(passages[place], grades.passage_ids, codes)
        return matrices

    def codes_of_pairs(self, pairs: Sequence[tuple[str, Item]]) -> list[int]:
        """As `codes`, of cells that make no matrix: passages' texts, each with an item."""
        grader_id = self.grader_id
        if grader_id is None or not pairs:
            return [MISSING] * len(pairs)
        texts = list(dict.fromkeys(text for text, _ in pairs))
        passages = dict(
            zip(texts, self.store.passage_ids([passage_digest(text) for text in texts]), strict=True)
        )
        items = self.store.item_ids([asked_digest(item) for _, item in pairs])
        stored: dict[tuple[int | None, int | None], tuple[int, str]] = {
            (item, passage): (code, answer)
            for item, passage, code, answer in self.store.coded_answers(grader_id)
        }
        # Models say the same few things again and again; how they are read hangs on no more of an item.
        known: dict[tuple[str, tuple[str, ...]], int] = {}
        codes = []
        for (text, item), row in zip(pairs, items, strict=True):
            graded = stored.get((row, passages[text]))
            code = MISSING if graded is None else graded[0]
            if graded is not None and self._read is not None and code >= UNPARSED:
                key = graded[1], item.gold_answers
                if key not in known:
                    rating, status = self._read(item, graded[1])
                    known[key] = CODES[status] if rating is None else rating
                code = known[key]
            codes.append(code)
        return codes

    def _codes_of(self, item: Item, grades: ItemGrades) -> Codes:
        """The codes of one item's answers as they are read now."""
        if self._read is None:
            return grades.codes
        codes = grades.codes.copy()
        # Models say the same few things again and again.
        known: dict[str, int] = {}
        for place, (answer, code) in enumerate(zip(grades.answers, codes.tolist(), strict=True)):
            if code < UNPARSED:
                continue
            if answer not in known:
                rating, status = self._read(item, answer)
                known[answer] = CODES[status] if rating is None else rating
            codes[place] = known[answer]
        return codes

    def _passage_rows(
        self, cells: Sequence[tuple[Sequence[str | None], Sequence[Item]]]
    ) -> list[NDArray[np.int64]]:
        """The row in the store of each query's passages; -1 where there is none."""
        texts = list({text for of_query, _ in cells for text in of_query if text is not None})
        known = self.store.passage_ids([passage_digest(text) for text in texts])
        rows: dict[str | None, int] = {
            text: row for text, row in zip(texts, known, strict=True) if row is not None
        }
        return [np.array([rows.get(text, -1) for text in of_query], np.int64) for of_query, _ in cells]

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
        return self._read(item, grade.answer)

    def failed_items(self, sheets: Mapping[str, GradeSheet]) -> Iterator[tuple[Item, str, int]]:
        """Each item with cells that could not be graded: the item, the first one's reason, and how many."""
        grader_id = self.grader_id
        for sheet in sheets.values():
            failed = (sheet.codes == ERROR).sum(axis=0)
            for column in failed.nonzero()[0]:
                item = sheet.items[column]
                row = self.store.item_ids([asked_digest(item)])[0]
                if grader_id is None or row is None:
                    continue
                answers = self.store.answers(grader_id, row).values()
                reason = next((grade.answer for grade in answers if grade.status == "error"), "")
                yield item, reason, int(failed[column])

    def distributions(self, sheet: GradeSheet, *, read: bool = False) -> Distributions:
        """The stored probabilities of the ratings 0..5 of the query's cells.

        Args:
            read: take those that the grader reads from its stored answers, where it does that.
        """
        chances = np.full((*sheet.codes.shape, MAX_RATING + 1), np.nan)
        grader_id = self.grader_id
        if grader_id is None:
            return Distributions(chances, 0)
        if read and self._probabilities is not None:
            for column, given in self._read_answers(grader_id, sheet, self._probabilities):
                chances[:, column] = given
            return Distributions(chances, 0)
        passages = self._passage_rows([(sheet.texts, sheet.items)])[0].tolist()
        item_rows = self.store.item_ids([asked_digest(item) for item in sheet.items])
        stored = np.zeros(sheet.codes.shape, np.bool_)
        for column, item in enumerate(item_rows):
            answers = {} if item is None else self.store.answers(grader_id, item)
            for row, passage in enumerate(passages):
                grade = answers.get(passage)
                # A grader of users' own may have stored anything.
                if grade is not None and grade.probabilities is not None:
                    whole = len(grade.probabilities) == MAX_RATING + 1
                    chances[row, column] = grade.probabilities if whole else np.inf
                    stored[row, column] = True
        good = usable(chances)
        chances[~good] = np.nan
        total = chances.sum(axis=2, keepdims=True)
        # Rounding is left as it is.
        np.divide(chances, total, out=chances, where=np.abs(total - 1) > 1e-6)
        return Distributions(chances, int((stored & ~good).sum()))

    def cosines(self, sheet: GradeSheet) -> NDArray[np.float64] | None:
        """The cosines of the query's cells, NaN where there is none; None where the grader gives none."""
        if self._cosines is None:
            return None
        cosines = np.full(sheet.codes.shape, np.nan)
        if self.grader_id is not None:
            for column, given in self._read_answers(self.grader_id, sheet, self._cosines):
                cosines[:, column] = given
        return cosines

    def _read_answers(
        self,
        grader_id: int,
        sheet: GradeSheet,
        read: Callable[[Sequence[str]], NDArray[np.float64]],
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """(column of the sheet, what the raw answers there mean; NaN where a passage has no grade)."""
        passages = self._passage_rows([(sheet.texts, sheet.items)])[0].tolist()
        item_rows = self.store.item_ids([asked_digest(item) for item in sheet.items])
        columns = {item: column for column, item in enumerate(item_rows) if item is not None}
        for grades in self.store.answer_columns(grader_id, list(columns)):
            values = read(grades.answers)
            # The last one stands for passages without a grade.
            values = np.concatenate([values, np.full_like(values[:1], np.nan)])
            row_of = {passage: row for row, passage in enumerate(grades.passage_ids.tolist())}
            yield columns[grades.item_id], values[[row_of.get(passage, -1) for passage in passages]]

    def rows(
        self,
        sheets: Mapping[str, GradeSheet],
        human: Mapping[tuple[str, str, str], HumanRating],
        query_ids: Collection[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Every grade of these cells, for `export grades`: ids, rating, status, answer, digests.

        The rating is the grader's. Where a person rated the cell, that stands beside it, so that what is
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
            digests = [None if text is None else passage_digest(text) for text in sheet.texts]
            passages = self.store.passage_ids([digest or b"" for digest in digests])
            item_rows = self.store.item_ids([asked_digest(item) for item in sheet.items])
            for item, item_row in zip(sheet.items, item_rows, strict=True):
                if item_row is None:
                    continue
                answers = self.store.answers(grader_id, item_row)
                item_sha256 = item_digest(item).hex()
                for doc_id, digest, row in zip(sheet.doc_ids, digests, passages, strict=True):
                    if digest is None or row is None or row not in answers:
                        continue
                    grade = answers[row]
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
                        "passage_sha256": digest.hex(),
                        "item_sha256": item_sha256,
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
            return traits_of(self._grader).model_and_prompt() or (None, None)
        except (ConversionError, TrecexamError):
            # A recording that is gone names nobody; what was taken from it is stored.
            return None, None


def _looked_up(passages: NDArray[np.int64], graded: NDArray[np.int64], codes: Codes) -> Codes:
    """The codes of passages among those of an item; MISSING where one has none.

    Args:
        passages: rows in the store, -1 for none.
        graded, codes: the item's graded passages, and their codes.
    """
    if not len(graded):
        return np.full(len(passages), MISSING, np.int8)
    if (graded[1:] < graded[:-1]).any():
        order = np.argsort(graded)
        graded, codes = graded[order], codes[order]
    places = np.searchsorted(graded, passages)
    places[places == len(graded)] = 0
    return np.where(graded[places] == passages, codes[places], np.int8(MISSING)).astype(np.int8)


def _human(row: HumanRating | None) -> dict[str, Any]:
    return {} if row is None else {"human_rating": row.rating, "who": row.who, "why": row.why}
