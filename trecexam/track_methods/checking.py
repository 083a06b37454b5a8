"""What the grader did, what people say to it, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from trecexam.features.history.history import History
from trecexam.features.verification import verification
from trecexam.line.rejected import rejected_rows
from trecexam.track_methods.opened import Opened

if TYPE_CHECKING:
    from trecexam.features.history.arithmetic import Entry
    from trecexam.features.history.tables import LogRow
    from trecexam.features.judge_next.arithmetic.next_judgments import By
    from trecexam.features.judge_next.judge_next import Level, NextJudgments
    from trecexam.features.override.overriding import Overridden
    from trecexam.features.verification.arithmetic import Grids, Missing, Order, QueryGrading, Spurious
    from trecexam.files.stamps import Rejected
    from trecexam.tables.table import Table
    from trecexam.track_methods.opened import MeasureLike


class Checking(Opened):
    """What the grader did, what people say to it, and what changed."""

    def verify_grading(
        self,
        *,
        query_ids: Collection[str] | None = None,
        item_ids: Collection[str] | None = None,
        doc_ids: Collection[str] | None = None,
        statuses: Collection[str] | None = None,
    ) -> Iterator[QueryGrading]:
        """Every cell with its answer and official judgment, item by item, best rating first.

        Args:
            query_ids, item_ids, doc_ids, statuses: only of these; None for all.

        Raises:
            TrecexamError: nothing is graded yet, or an id is not in the track.
        """
        return verification.grading(self._loaded(), query_ids, item_ids, doc_ids, statuses)

    def verify_grid(
        self,
        *,
        query_ids: Collection[str] | None = None,
        item_ids: Collection[str] | None = None,
        doc_ids: Collection[str] | None = None,
        min_rating: int | None = None,
    ) -> Grids:
        """The ratings of passages x items for each query, with official judgments and labels.

        Args:
            query_ids, item_ids, doc_ids: only of these; None for all.
            min_rating: in place of the track's.

        Raises:
            TrecexamError: as `verify_grading`, and for a min_rating that no grade can reach.
        """
        return verification.grids(self._loaded(), query_ids, item_ids, doc_ids, min_rating)

    def verify_missing(
        self,
        *,
        query_ids: Collection[str] | None = None,
        min_rating: int | None = None,
        min_relevant: int | None = None,
    ) -> Missing:
        """The officially relevant passages that reach no item, and what became of the other relevant ones.

        Args:
            query_ids: only of these; None for all.
            min_rating, min_relevant: in place of the track's.

        Raises:
            TrecexamError: as `verify_grid`, and where there are no official judgments of these queries.
        """
        return verification.missing(self._loaded(), query_ids, min_rating, min_relevant)

    def verify_spurious(
        self,
        *,
        query_ids: Collection[str] | None = None,
        item_ids: Collection[str] | None = None,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        order: Order = "phi",
    ) -> Spurious:
        """How well each item tells relevant from non-relevant passages, the worst first.

        Args:
            query_ids, item_ids: only of these; None for all.
            min_rating, min_relevant: in place of the track's.
            order: "phi", "nonrelevant" (how many of these reach it), "precision" or "discrimination".

        Raises:
            TrecexamError: as `verify_missing`.
        """
        return verification.spurious(self._loaded(), query_ids, item_ids, min_rating, min_relevant, order)

    def judgments_unused(self) -> str | None:
        """Why the official judgments that the track has say nothing of its pool; None where they do.

        None also where the track has none.
        """
        return verification.judgments_unused(self._loaded())

    def judge_next(
        self,
        measure: MeasureLike | None = None,
        *,
        level: Level | None = None,
        by: By = "change",
        query_ids: Collection[str] = (),
        include_judged: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> NextJudgments:
        """The passages or cells whose judgment by a person would change the ranking most, best first.

        Args:
            measure: what runs are ranked by; None for the track's first.
            level: "passage", or "cell" for (passage, item); None for what the measure is computed on.
            by: "change": how far the differences of the runs' means are expected to move; "swaps": how many
                pairs of runs are expected to swap.
            query_ids: only these queries; none for all.
            include_judged: passages with official judgments too.
            progress: called after each query with (queries done, queries).

        Raises:
            TrecexamError: fewer than two runs, nothing graded, a measure that cannot be computed or that
                does not see what would be judged, an unknown query.
        """
        from trecexam.features.judge_next.judge_next import next_judgments

        return next_judgments(
            self._loaded(),
            None if measure is None else str(measure),
            level,
            by,
            query_ids,
            include_judged=include_judged,
            progress=progress,
        )

    def override(
        self,
        query_id: str,
        doc_id: str,
        rating: int | None,
        *,
        item: str = "",
        who: str,
        why: str,
        seen: str | None = None,
    ) -> Overridden:
        """Takes a person's rating of a cell, or of a passage as a whole, in place of the grader's.

        It counts from now on; `update` writes it into `out/`.

        Args:
            rating: 0..5; None withdraws what was said before.
            item: an item's id or its index from 1; "" for the passage as a whole.
            who, why: part of every rating.
            seen: `trecexam.features.override.overriding.seen_token` of the rating that counted when the
                person looked; None to add this one in any case.

        Raises:
            RatingConflictError: another rating counts by now than the one that was seen; nothing was written.
            TrecexamError: the query, passage or item is not in the track, or the rating not on the scale.
        """
        from trecexam.features.override.overriding import override

        return override(self._loaded(), query_id, doc_id, item, rating, who, why, seen)

    def human_ratings(self) -> Table:
        """The ratings that people gave, beside the grader's, and which of them count."""
        from trecexam.features.override.overriding import human_table

        return human_table(self._loaded())

    def human_refused(self) -> tuple[Rejected, ...]:
        """The lines of overrides.tsv that cannot count, with reasons; or the file as a whole."""
        track = self._loaded()
        file = self.folder.shown(self.folder.overrides())
        return tuple(row for row in rejected_rows(track) if row.file == file)

    def history(self) -> tuple[LogRow, ...]:
        """Which runs moved at each change of the leaderboard, and why: the rows of out/history/log.tsv.

        () where there is no history yet.

        Raises:
            TrecexamError: the log cannot be read.
        """
        return History(self.folder).rows()

    def history_entry(self, number: int) -> Entry:
        """All that one change did: files, settings, runs on every measure, items and labels.

        Raises:
            TrecexamError: there is no such entry, or it cannot be read.
        """
        return History(self.folder).entry(number)
