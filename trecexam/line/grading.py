"""A grader at work: cells without a grade in, grades into the store batch by batch, and what it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any

from trecexam.graders import Grader
from trecexam.graders.base import LAST_ANSWERS, Cell, Estimate, UngradedError, Usage
from trecexam.line.gradebook import Gradebook
from trecexam.line.updates import Graded, Progress


class Grading:
    """One grader's work on one track."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        self._used = Usage()

    def run(
        self,
        book: Gradebook,
        query_texts: Mapping[str, str],
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
        cells: int | None = None,
    ) -> Graded:
        """Grades the cells that have no grade yet, committing batch by batch.

        Args:
            progress: called after each batch.
            stop: asked between batches; when it says True, grading ends after the batch in hand. Requests
                that are on their way to a server get `LAST_ANSWERS` seconds.
            only: query_id -> the doc_ids whose cells are meant; None for all.
            cells: how many these are; None where all are meant.

        Raises:
            GraderError: the grader cannot go on; what it graded is stored.
        """
        total = book.counts().missing if cells is None else cells
        graded, complete, why, cut = 0, True, "", getattr(self._grader, "cut", 0)
        self._used = Usage()
        if not total:
            return Graded(0)
        meter = self._meter(book)
        ends = float("inf")
        missing: Iterable[Cell] = book.missing(query_texts, only)
        if meter is not None:
            missing = takewhile(lambda _: not (stop and stop()), missing)
        batches = self._grader.grade(missing)
        try:
            for batch in batches:
                if batch:
                    book.record(batch)
                    graded += len(batch)
                    self._note_usage(book, meter)
                if progress and batch:
                    progress(Progress(graded, total))
                if stop and stop():
                    complete = False
                    # What is on its way to a server is paid for, and would be asked again.
                    ends = min(ends, time.monotonic() + (0 if meter is None else LAST_ANSWERS))
                if time.monotonic() >= ends:
                    break
            complete = complete and not (stop and stop())
        except UngradedError as error:
            complete, why = False, str(error)
        finally:
            close = getattr(batches, "close", None)
            if close:
                close()
            self._note_usage(book, meter)
            book.refresh()
        return Graded(graded, complete, why, getattr(self._grader, "cut", 0) - cut)

    def usage(self, book: Gradebook) -> dict[str, Any] | None:
        """What it used in the last run and in all; None where that is not counted."""
        meter = getattr(self._grader, "meter", None)
        if meter is None:
            return None
        return {"this_update": meter.as_json(self._used), "total": meter.as_json(book.usage())}

    def estimate(self, book: Gradebook, query_texts: Mapping[str, str]) -> Estimate:
        """What it would take to grade all cells without a grade; asks nobody."""
        self._meter(book)
        estimate = getattr(self._grader, "estimate", None)
        if estimate is None:
            return Estimate(book.counts().missing)
        found: Estimate = estimate(book.missing(query_texts))
        return found

    def _meter(self, book: Gradebook) -> Any:
        """The grader's, told what was used before; None where it has none."""
        meter = getattr(self._grader, "meter", None)
        if meter is not None:
            meter.before, meter.used = book.usage(), Usage()
        return meter

    def _note_usage(self, book: Gradebook, meter: Any) -> None:
        if meter is not None and meter.used != self._used:
            used = meter.used
            book.add_usage(used.less(self._used))
            self._used = used
