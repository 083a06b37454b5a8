"""Grades a sample of cells again, alone and in batches, and compares the answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import GraderError, TrecexamError
from trecexam.graders import create
from trecexam.graders.base import Answer, Cell, Estimate, Grader, UngradedError
from trecexam.graders.kept_vectors import no_kept_vectors
from trecexam.graders.traits import traits_of
from trecexam.line.environments import Environments
from trecexam.line.grading import Grading, Progress
from trecexam.line.sheets import ERROR, MISSING
from trecexam.line.stored_grades import StoredGrades
from trecexam.tables.result import Result
from trecexam.tables.table import Table, Value
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.loader import TrackLoader

#: Where a graded cell stands; all but its last part name the passage.
_Place = tuple[Any, ...]
#: Cells that are looked at unless somebody says otherwise.
SAMPLE = 100
#: In company of a cell of the sample are so many others: one of its passage, the rest of any.
COMPANY = 3
_COLUMNS = (
    "comparison",
    "cells",
    "answers_differ",
    "ratings_differ",
    "probabilities_differ",
    "largest_difference",
    "share_differing",
)
_COMPARISONS = (("stored", "alone"), ("stored", "company"), ("alone", "company"))


class RegradedCell(NamedTuple):
    """A cell with its stored answer, and its answers alone and in a batch (None if missing)."""

    cell: Cell
    stored: Answer
    alone: Answer | None
    company: Answer | None

    @property
    def lacking(self) -> bool:
        """Whether an answer is missing."""
        return self.alone is None or self.company is None

    @property
    def differs(self) -> bool:
        """Whether any two of its answers differ in anything."""
        answers = [answer for answer in self[1:] if answer is not None]
        return any(answer != answers[0] for answer in answers)


class AnswerDifference(NamedTuple):
    """Counts of cells with different answers.

    Attributes:
        comparison: as "stored-alone".
        cells: that have both answers.
        answers, ratings, probabilities: how many differ in each; all in the last bit.
        largest: the largest difference of a probability, 0..1; None where no cell has probabilities.
        differing: how many differ in anything.
    """

    comparison: str
    cells: int
    answers: int
    ratings: int
    probabilities: int
    largest: float | None
    differing: int

    @property
    def share(self) -> float | None:
        """The share of cells with any difference."""
        return self.differing / self.cells if self.cells else None


@dataclass(frozen=True)
class Reproduction(Result):
    """Result of grading a sample again; `differing` has cells with different answers.

    Attributes:
        cells: the sample, in its order.
        graded: cells of the track that have an answer.
        why: why it ended early; "" where it did not.
        notes: what there is to know, and what it comes to.
    """

    cells: tuple[RegradedCell, ...]
    graded: int
    why: str
    notes: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[AnswerDifference, ...]:
        """Differences between stored, alone and batched answers."""
        return tuple(self._difference(*names) for names in _COMPARISONS)

    @property
    def same(self) -> bool:
        """Whether every cell was answered twice, and as stored."""
        return not any(cell.lacking or cell.differs for cell in self.cells)

    def declare(self) -> dict[str, Table]:
        """A row per comparison, and a row for each answer of a differing cell."""
        rows = tuple((*row[:-1], row.share) for row in self.differences)
        differing = tuple(row for cell in self.cells if cell.differs for row in _answers(cell))
        header = ("query_id", "doc_id", "item_id", "graded", *Answer._fields)
        return {"comparisons": Table(_COLUMNS, rows), "differing": Table(header, differing)}

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of checked cells, and of cells without an answer."""
        return {
            "sample": len(self.cells),
            "graded": self.graded,
            "complete": not self.why,
            "lacking": sum(cell.lacking for cell in self.cells),
        }

    def _difference(self, first: str, second: str) -> AnswerDifference:
        both = [(getattr(cell, first), getattr(cell, second)) for cell in self.cells]
        pairs = [(a, b) for a, b in both if a is not None and b is not None]
        answers = [a.raw != b.raw for a, b in pairs]
        ratings = [(a.rating, a.status) != (b.rating, b.status) for a, b in pairs]
        # What a store does not have, as of graders whose probabilities are read from answers, differs not.
        shares = [(a.probabilities, b.probabilities) for a, b in pairs]
        probabilities = [p != q for p, q in shares]
        gaps = [abs(x - y) for p, q in shares if p and q for x, y in zip(p, q, strict=True)]
        return AnswerDifference(
            f"{first}-{second}",
            len(pairs),
            sum(answers),
            sum(ratings),
            sum(probabilities),
            max(gaps) if gaps else None,
            sum(any(each) for each in zip(answers, ratings, probabilities, strict=True)),
        )


@dataclass(frozen=True)
class _Graded:
    """A grader's graded cells of a track.

    Attributes:
        grades: its answers, as they are stored.
        places: a digest of passage and item -> where a cell of these is; equal cells count once.
        cell: the cell at a place.
        metered: whether asking costs.
        noun: what such a cell is called.
    """

    grader: Grader
    grades: StoredGrades
    places: Mapping[bytes, _Place]
    cell: Callable[[_Place], Cell]
    noun: str

    @property
    def metered(self) -> bool:
        return traits_of(self.grader).meter is not None

    def drawn(self, sample: int) -> tuple[list[Cell], list[Cell]]:
        """The sample, and further graded cells to fill batches (none for paid graders)."""
        ordered = [self.places[key] for key in sorted(self.places)]
        chosen, rest = ordered[:sample], ordered[sample:]
        company: list[_Place] = []
        if not self.metered:
            of_passage = {cell_index[:-1]: cell_index for cell_index in rest}
            same = [of_passage[cell_index[:-1]] for cell_index in chosen if cell_index[:-1] in of_passage]
            most = COMPANY * len(chosen)
            company = list(dict.fromkeys([*same, *rest[:most]]))[:most]
        return [self.cell(cell_index) for cell_index in chosen], [
            self.cell(cell_index) for cell_index in company
        ]


def verify_reproducible(
    loader: TrackLoader,
    *,
    sample: int = SAMPLE,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Reproduction:
    """Grades a sample of graded cells again, like `verify reproducible`; stores nothing.

    Each cell is graded alone, in its own call, and all of them in one call, in another order and
    together with other cells. A grader that costs is not asked about others, and what it takes is counted
    nowhere; its budget holds. On a cluster's track, this process grades.

    Args:
        sample: how many cells, drawn by a hash of passage and item: the same ones every time.
        progress: called with how many of the answers are there.
        stop: asked between batches; True ends it early, with what there is.

    Raises:
        TrecexamError: there is no model to ask, or nothing is graded yet.
        GraderError: the grader cannot run here; once it has given an answer, `why` says so.
    """
    graded = _graded(loader)
    chosen, other_cells = graded.drawn(sample)
    # Tells the meter what was used before, too: a budget is of all.
    Grading(graded.grader, lambda: loader.store).estimate_cells(chosen, len(chosen))
    stopped, total, why = stop or (lambda: False), 2 * len(chosen), ""
    alone: dict[Cell, Answer] = {}
    company: dict[Cell, Answer] = {}
    in_company = sorted([*chosen, *other_cells], key=lambda cell: _order(cell, "in company"))
    sampled_cells = frozenset(chosen)
    try:
        for answers, calls in ((alone, [[cell] for cell in chosen]), (company, [in_company])):
            for call in calls:
                for cell, answer in _asked(graded.grader, call, stopped):
                    if cell in sampled_cells:
                        answers[cell] = answer
                if progress is not None:
                    progress(Progress(len(alone) + len(company), total))
    except GraderError as error:
        # What came may have been paid for.
        if not alone and not isinstance(error, UngradedError):
            raise
        why = str(error).replace("[grader]", f"[{loader.folder.section}]")
    if stopped():
        why = "stopped"
    cells = tuple(
        RegradedCell(cell, _stored(graded.grades, cell), alone.get(cell), company.get(cell))
        for cell in chosen
    )
    ended = (f"ended early: {why}",) if why else ()
    notes = (*_notes(graded), *ended, _summary(cells, graded))
    return Reproduction(cells, len(graded.places), why, notes)


def estimate_reproducible(loader: TrackLoader, *, sample: int = SAMPLE) -> Estimate:
    """Estimates `verify_reproducible`; calls no model.

    Raises:
        TrecexamError: there is no model to ask, or nothing is graded yet.
    """
    graded = _graded(loader)
    chosen, other_cells = graded.drawn(sample)
    grading = Grading(graded.grader, lambda: loader.store)
    calls = [[cell] for cell in chosen] + [[*chosen, *other_cells]]
    columns = zip(*(grading.estimate_cells(call, len(call)) for call in calls), strict=True)
    return Estimate._make(None if None in column else sum(column) for column in columns)


def _graded(loader: TrackLoader) -> _Graded:
    """The graded cells of a grader in this process.

    Raises:
        TrecexamError: nothing, or by no model.
    """
    track = loader.load()
    folder, is_track_grader = loader.folder, loader.track_grader.is_own
    settings = folder.config
    if is_track_grader and settings.grader.name == "recorded":
        raise TrecexamError("nothing to verify: the grades of `recorded` are read from a file")
    on_cluster = is_track_grader and settings.ray.address
    grader = loader.grader
    if on_cluster and settings.grader.name not in loader.kind.graders:
        grader = create(settings.grader, folder.root, trust_code=folder.trust_code)
    cell_indices: dict[bytes, _Place] = {}
    for query_id, sheet in track.sheets.items():
        passages = [None if text is None else passage_digest(text) for text in sheet.texts]
        items = [asked_digest(item) for item in sheet.items]
        answered = sheet.where((sheet.flat() != MISSING) & (sheet.flat() != ERROR))
        for row, column in zip(*(of_cell.tolist() for of_cell in answered), strict=True):
            passage = passages[row]
            if passage is not None:
                cell_indices.setdefault(_key(passage, items[column]), (query_id, row, column))

    def cell(cell_index: _Place) -> Cell:
        query_id, row, column = cell_index
        sheet = track.sheets[query_id]
        text = sheet.texts[row]
        assert text is not None
        query_text = track.query_texts.get(query_id, "")
        return Cell(query_id, query_text, sheet.doc_ids[row], text, sheet.items[column])

    if not cell_indices:
        raise TrecexamError(
            f"nothing is graded yet: run `trecexam watch {folder.root} --once`", path=folder.root
        )
    return _Graded(grader, track.grades, cell_indices, cell, f"graded {track.kind.cell_noun[0]}")


def _key(passage: bytes, item: bytes) -> bytes:
    return hashlib.blake2b(passage + item, digest_size=16).digest()


def _asked(
    grader: Grader, cells: Sequence[Cell], stopped: Callable[[], bool]
) -> Iterator[tuple[Cell, Answer]]:
    if stopped():
        return
    # Vectors of the `embedding` grader that are kept would be compared with themselves.
    with no_kept_vectors(), closing(_batches(grader, cells)) as batches:
        for batch in batches:
            yield from batch
            if stopped():
                return


def _batches(grader: Grader, cells: Iterable[Cell]) -> Generator[Sequence[tuple[Cell, Answer]], None, None]:
    yield from grader.grade(cells)


def _order(cell: Cell, salt: str) -> bytes:
    """An order that differs from the sample's."""
    return hashlib.blake2b(
        passage_digest(cell.text) + asked_digest(cell.item), digest_size=16, key=salt.encode()
    ).digest()


def _stored(grades: StoredGrades, cell: Cell) -> Answer:
    """The stored answer of a cell, read again."""
    (item,) = grades.store.item_ids([asked_digest(cell.item)])
    (passage,) = grades.store.passage_ids([passage_digest(cell.text)])
    grader_id = grades.grader_id
    assert grader_id is not None
    assert item is not None
    assert passage is not None
    row = grades.store.answer(grader_id, item, passage)
    assert row is not None
    return Answer(*grades.reading(cell.item, row), row.answer, row.probabilities, row.cut_at)


def _notes(graded: _Graded) -> Iterator[str]:
    if graded.metered:
        yield "a server gives no guarantee: vLLM's batches depend on all its requests, and so do the answers"
    now = traits_of(graded.grader).environment()
    stored = graded.grades.environments()
    if now is not None and any(made_on != now for made_on, _ in stored.known):
        of_all = Environments((*stored.known, (now, 0)), stored.unknown)
        differing = ", ".join(of_all.mixed)
        yield f"some stored answers were made in another environment ({differing} differ)"


def _summary(cells: Sequence[RegradedCell], graded: _Graded) -> str:
    """A summary such as "100 of 2,940 graded cells checked: the same answers again, to the last bit"."""
    differing, lacking = sum(cell.differs for cell in cells), sum(cell.lacking for cell in cells)
    if differing:
        outcome = f"{differing:,} {'differs' if differing == 1 else 'differ'} in something"
    else:
        outcome = "no other answer" if lacking else "the same answers again, to the last bit"
    verb = "was" if lacking == 1 else "were"
    rest = f"; {lacking:,} {verb} not answered both times" if lacking else ""
    return f"{len(cells):,} of {plural(len(graded.places), graded.noun)} checked: {outcome}{rest}"


def _answers(cell: RegradedCell) -> Iterator[tuple[Value, ...]]:
    """A row per answer, with its cell and values; probabilities are separated by blanks."""
    graded_cell = cell.cell
    for name, answer in zip(("stored", "alone", "company"), cell[1:], strict=True):
        if answer is not None:
            shares = " ".join(map(repr, answer.probabilities or ()))
            yield (
                graded_cell.query_id,
                graded_cell.doc_id,
                graded_cell.item.item_id,
                name,
                *answer[:3],
                shares,
            )
