"""Grades a sample of cells again, alone and in company: does an answer hang on what is graded with it?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import TrecexamError
from trecexam.graders import create
from trecexam.graders.base import Answer, Cell, Estimate, Grader, UngradedError
from trecexam.graders.kept_vectors import no_kept_vectors
from trecexam.graders.traits import traits_of
from trecexam.line.environments import Environments
from trecexam.line.grading import Grading, Progress
from trecexam.line.sheets import ERROR, MISSING
from trecexam.tables.table import Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.loaded import LoadedTrack
    from trecexam.line.loader import TrackLoader

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
    """A cell with its answer as it is stored, and as it came alone and in company; None where none came."""

    cell: Cell
    stored: Answer
    alone: Answer | None
    company: Answer | None

    @property
    def lacking(self) -> bool:
        """Whether it was not answered both times."""
        return self.alone is None or self.company is None

    @property
    def differs(self) -> bool:
        """Whether any two of its answers differ in anything."""
        answers = [answer for answer in self[1:] if answer is not None]
        return any(answer != answers[0] for answer in answers)


class AnswerDifference(NamedTuple):
    """How many cells have another answer.

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
        """Of the cells, those that differ in anything."""
        return self.differing / self.cells if self.cells else None


@dataclass(frozen=True)
class Reproduction:
    """What came of grading a sample again.

    Attributes:
        cells: the sample, in its order.
        graded: cells of the track that have an answer.
        why: why it ended early; "" where it did not.
        notes: what else there is to know.
    """

    cells: tuple[RegradedCell, ...]
    graded: int
    why: str
    notes: tuple[str, ...]

    @property
    def differences(self) -> tuple[AnswerDifference, ...]:
        """Stored with alone, stored with in company, and alone with in company."""
        return tuple(self._difference(*names) for names in _COMPARISONS)

    @property
    def same(self) -> bool:
        """Whether every cell was answered twice, and the same as it is stored."""
        return not any(cell.lacking or cell.differs for cell in self.cells)

    def summary(self) -> str:
        """As "100 of 2,940 graded cells looked at: the same answers again, to the last bit"."""
        differing = sum(cell.differs for cell in self.cells)
        lacking = sum(cell.lacking for cell in self.cells)
        if differing:
            outcome = f"{differing:,} {'differs' if differing == 1 else 'differ'} in something"
        else:
            outcome = "no other answer" if lacking else "the same answers again, to the last bit"
        verb = "was" if lacking == 1 else "were"
        rest = f"; {lacking:,} {verb} not answered both times" if lacking else ""
        return f"{len(self.cells):,} of {plural(self.graded, 'graded cell')} looked at: {outcome}{rest}"

    def table(self) -> Table:
        """A row a comparison."""
        rows = tuple((*row[:-1], row.share) for row in self.differences)
        return Table(_COLUMNS, rows)

    def as_json(self) -> dict[str, Any]:
        """The table, how many cells lack an answer, and those that differ with their answers."""
        return {
            "sample": len(self.cells),
            "graded": self.graded,
            "complete": not self.why,
            "lacking": sum(cell.lacking for cell in self.cells),
            "comparisons": list(self.table().records()),
            "differing": [_cell_json(cell) for cell in self.cells if cell.differs],
            "notes": list(self.notes),
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


def verify_reproducible(
    loader: TrackLoader,
    *,
    sample: int = SAMPLE,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Reproduction:
    """Grades a sample of the track's graded cells again: what `verify reproducible` does. Stores nothing.

    Each cell is graded alone, in a call of its own, and all of them in one call, in another order and
    together with other cells. A grader that costs is not asked about others, and what it takes is counted
    nowhere; its budget holds. On a cluster's track, this process grades.

    Args:
        sample: how many cells, drawn by a hash of passage and item: the same ones every time.
        progress: called with how many of the answers are there.
        stop: asked between batches; True ends it early, with what there is.

    Raises:
        TrecexamError: there is no model to ask, or nothing is graded yet.
        GraderError: the grader cannot run here.
    """
    track, grader = loader.load(), _grader(loader)
    traits = traits_of(grader)
    chosen, others, graded = _drawn(track, sample, company=traits.meter is None)
    # Tells the meter what was used before, too: a budget is of all.
    Grading(grader, lambda: loader.store).estimate_cells(chosen, len(chosen))
    stopped, total, why = stop or (lambda: False), 2 * len(chosen), ""
    alone: dict[Cell, Answer] = {}
    company: dict[Cell, Answer] = {}
    in_company = sorted([*chosen, *others], key=lambda cell: _order(cell, "in company"))
    meant = frozenset(chosen)
    try:
        for answers, calls in ((alone, [[cell] for cell in chosen]), (company, [in_company])):
            for call in calls:
                for cell, answer in _asked(grader, call, stopped):
                    if cell in meant:
                        answers[cell] = answer
                if progress is not None:
                    progress(Progress(len(alone) + len(company), total))
    except UngradedError as error:
        why = str(error)
    if stopped():
        why = "stopped"
    cells = tuple(
        RegradedCell(cell, _stored(track, cell), alone.get(cell), company.get(cell)) for cell in chosen
    )
    return Reproduction(cells, graded, why, tuple(_notes(track, grader)))


def estimate_reproducible(loader: TrackLoader, *, sample: int = SAMPLE) -> Estimate:
    """What `verify_reproducible` would take; asks nobody.

    Raises:
        TrecexamError: there is no model to ask, or nothing is graded yet.
    """
    track, grader = loader.load(), _grader(loader)
    chosen, others, _ = _drawn(track, sample, company=traits_of(grader).meter is None)
    grading = Grading(grader, lambda: loader.store)
    calls = [[cell] for cell in chosen] + [[*chosen, *others]]
    columns = zip(*(grading.estimate_cells(call, len(call)) for call in calls), strict=True)
    return Estimate._make(None if None in column else sum(column) for column in columns)


def _grader(loader: TrackLoader) -> Grader:
    """The track's, in this process."""
    settings, own = loader.folder.config, loader.track_grader.is_own
    if own and settings.grader.name == "recorded":
        raise TrecexamError("there is nothing to verify: the grades of `recorded` are read from a file")
    return create(settings.grader, loader.folder.root) if own and settings.ray.address else loader.grader


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


def _drawn(track: LoadedTrack, sample: int, *, company: bool) -> tuple[list[Cell], list[Cell], int]:
    """The sample, other graded cells for its company, and how many are graded; equal cells count once."""
    known: dict[bytes, tuple[str, int, int]] = {}
    for query_id, sheet in track.sheets.items():
        passages = [None if text is None else passage_digest(text) for text in sheet.texts]
        items = [asked_digest(item) for item in sheet.items]
        answered = (sheet.codes != MISSING) & (sheet.codes != ERROR)
        for row, column in zip(*(places.tolist() for places in answered.nonzero()), strict=True):
            passage = passages[row]
            if passage is not None:
                key = hashlib.blake2b(passage + items[column], digest_size=16).digest()
                known.setdefault(key, (query_id, row, column))
    if not known:
        root = track.folder.root
        raise TrecexamError(f"nothing is graded yet: `trecexam watch {root} --once` grades", path=root)
    ordered = [known[key] for key in sorted(known)]
    chosen, rest = ordered[:sample], ordered[sample:]
    others: list[tuple[str, int, int]] = []
    if company:
        of_passage = {(query_id, row): (query_id, row, column) for query_id, row, column in rest}
        same = [of_passage[place[:2]] for place in chosen if place[:2] in of_passage]
        others = list(dict.fromkeys([*same, *rest[: COMPANY * len(chosen)]]))[: COMPANY * len(chosen)]
    return [_cell(track, *place) for place in chosen], [_cell(track, *place) for place in others], len(known)


def _cell(track: LoadedTrack, query_id: str, row: int, column: int) -> Cell:
    sheet = track.sheets[query_id]
    text = sheet.texts[row]
    assert text is not None
    query_text = track.query_texts.get(query_id, "")
    return Cell(query_id, query_text, sheet.doc_ids[row], text, sheet.items[column])


def _order(cell: Cell, salt: str) -> bytes:
    """Another order than that of the sample."""
    return hashlib.blake2b(
        passage_digest(cell.text) + asked_digest(cell.item), digest_size=16, key=salt.encode()
    ).digest()


def _stored(track: LoadedTrack, cell: Cell) -> Answer:
    """What is stored of a cell, as it is read now."""
    grades = track.grades
    (item,) = grades.store.item_ids([asked_digest(cell.item)])
    (passage,) = grades.store.passage_ids([passage_digest(cell.text)])
    grader_id = grades.grader_id
    assert grader_id is not None
    assert item is not None
    assert passage is not None
    row = grades.store.answer(grader_id, item, passage)
    assert row is not None
    return Answer(*grades.reading(cell.item, row), row.answer, row.probabilities)


def _notes(track: LoadedTrack, grader: Grader) -> Iterator[str]:
    traits = traits_of(grader)
    if traits.meter is not None:
        yield "a server promises nothing: vLLM's batches vary with all it is asked, and answers with them"
    now = traits.environment()
    stored = track.grades.environments()
    if now is not None and any(made_on != now for made_on, _ in stored.known):
        of_all = Environments((*stored.known, (now, 0)), stored.unknown)
        differing = ", ".join(of_all.mixed)
        yield f"answers are stored that were made on something else than this ({differing} differ)"


def _cell_json(cell: RegradedCell) -> dict[str, Any]:
    asked = cell.cell
    answers = {
        name: None if answer is None else answer._asdict()
        for name, answer in zip(("stored", "alone", "company"), cell[1:], strict=True)
    }
    return {"query_id": asked.query_id, "doc_id": asked.doc_id, "item_id": asked.item.item_id, **answers}
