"""A track from Python: everything a command does is a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.graders.base import identity_digest, scale_of
from trecexam.pipeline import Pipeline, Progress, Update
from trecexam.stages import verification
from trecexam.stages.agreement import Agreements, agreements
from trecexam.stages.comparison import Comparison, Outliers, SwappedPairs, compare, outlying, swapped
from trecexam.stages.fill import (
    Filled,
    Found,
    Wanted,
    check_outputs,
    find_holes,
    merged,
    sources_beside,
)
from trecexam.stages.gradebook import Counts
from trecexam.stages.history import History
from trecexam.stages.holes import HolesReport, holes_report
from trecexam.stages.readings import Difference, difference
from trecexam.stages.sides import nothing_to_compare
from trecexam.stages.simulation import Steps, simulate_removal, simulate_runs
from trecexam.track import TrackFolder
from trecexam.watching.lock import TrackLock, holder

if TYPE_CHECKING:
    import ir_measures

    from converters.pooled import PooledPassage
    from converters.records import Qrel
    from trecexam.graders import Grader
    from trecexam.reports.history import LogRow
    from trecexam.reports.simulations import RemovalReport, RunsReport
    from trecexam.reports.tables import Table
    from trecexam.scores.history import Entry
    from trecexam.scores.labels import LabelRule, RubricQrel
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.scores.next_judgments import By
    from trecexam.scores.scale_map import RuleName
    from trecexam.scores.verification import Grids, Missing, Order, QueryGrading, Spurious
    from trecexam.stages.judge_next import Level, NextJudgments
    from trecexam.stages.overriding import Overridden

    MeasureLike = str | ir_measures.Measure


def open_track(root: Path | str, *, grader: Grader | None = None) -> Track:
    """The track in folder `root`.

    Args:
        grader: a grader of your own in place of the one that trecexam.toml names.

    Raises:
        TrecexamError: it is no track folder, or its trecexam.toml is wrong.
    """
    return Track(TrackFolder.open(root), grader)


class Track:
    """One track folder. What is read and computed is kept, so asking twice is cheap.

    The methods that read (`leaderboard`, `qrels` ...) use the grades that are in the store and never
    run a grader; `update` does.
    """

    def __init__(self, folder: TrackFolder, grader: Grader | None = None) -> None:
        self.folder = folder
        self._pipeline = Pipeline(folder, grader)

    def close(self) -> None:
        """Closes the store; also done at the end of a `with` block."""
        self._pipeline.close()

    def __enter__(self) -> Track:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def update(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Update:
        """Grades what has no grade yet and writes `out/`: what `trecexam watch --once` does.

        Raises:
            LockedError: a daemon is running on this track.
            TrecexamError, ConversionError: what stands in the way.
        """
        with TrackLock(self.folder.lock_path):
            return self._pipeline.update(progress, stop)

    def leaderboard(
        self, measures: Sequence[MeasureLike] | None = None, *, official: bool = False
    ) -> Leaderboard:
        """Means and standard errors per run, best first; on the official judgments with `official`."""
        return self._loaded().leaderboard(_names(measures), official=official)

    def compare_readings(
        self, compat: str = "workbench", measures: Sequence[MeasureLike] | None = None
    ) -> Difference:
        """What changes where the stored answers are read another way; runs no model.

        Raises:
            TrecexamError: the grader's answers can be read in one way only.
        """
        return difference(self._loaded(), compat, _names(measures))

    def correlate(
        self,
        measures: Sequence[MeasureLike] | None = None,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        min_ratings: Sequence[int] = (),
        per_query: bool = False,
        rbo_p: float | None = None,
    ) -> Comparison | None:
        """Correlations of rubric with official measures; None where there is nothing to compare.

        Args:
            measures, official_measures: None for the track's own.
            min_ratings: each rubric measure at each of these, in place of the track's min_rating.
            per_query: each query by itself.
            rbo_p: the persistence of rank-biased overlap, between 0 and 1; None for 0.9.
        """
        return compare(
            self._loaded(),
            _names(measures),
            _names(official_measures),
            min_ratings=min_ratings,
            per_query=per_query,
            rbo_p=rbo_p,
        )

    def swaps(
        self,
        measures: Sequence[MeasureLike] | None = None,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        min_ratings: Sequence[int] = (),
    ) -> SwappedPairs | None:
        """The pairs of runs that the official side orders otherwise, with tests; None where it has nothing.

        Args:
            measures, official_measures: None for the track's first.
            min_ratings: as in `correlate`.
        """
        return swapped(self._loaded(), _names(measures), _names(official_measures), min_ratings=min_ratings)

    def outliers(
        self,
        measures: Sequence[MeasureLike] | None = None,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        min_ratings: Sequence[int] = (),
        most: int | None = None,
    ) -> Outliers | None:
        """The runs furthest from the diagonal of both leaderboards, furthest first; arguments as in `swaps`.

        Args:
            most: only so many runs.
        """
        return outlying(
            self._loaded(), _names(measures), _names(official_measures), min_ratings=min_ratings, most=most
        )

    def nothing_to_compare(self) -> TrecexamError:
        """Why `correlate`, `swaps` and `outliers` give None, and what to do."""
        return nothing_to_compare(self._loaded())

    def thresholds(self) -> tuple[int, ...]:
        """Every min_rating that the grader's scale has."""
        return tuple(range(1, scale_of(self._pipeline.grader).max_rating + 1))

    def find_holes(
        self,
        qrels: Path | str | None = None,
        *,
        depth: int | None = None,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        as_unjudged: bool = False,
    ) -> Found:
        """The pooled passages that nobody judged, and how `fill` would label them; grades nothing.

        Args:
            qrels: official judgments in place of the track's.
            depth: ranks of each run that are pooled, in place of the track's.
            rule: how automatic labels become official ones. None: "fitted" on the passages with both, where
                there are such, else "identity".
            cuts: automatic label -> official label, for "thresholds", which they imply; None:
                min_rating -> min_relevant.
            as_unjudged: new lines get the label -1.

        Raises:
            TrecexamError: there are no official judgments, they have nothing in common with the pool and no
                rule was named, or the rule cannot be made.
            ConversionError: `qrels` cannot be read.
        """
        path = None if qrels is None else Path(qrels)
        rule = "thresholds" if cuts and rule is None else rule
        return find_holes(self._pipeline, Wanted(path, depth, rule, dict(cuts or {}), as_unjudged))

    def fill(
        self,
        found: Found,
        *,
        output: Path | str | None = None,
        sources: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Filled:
        """Grades the holes that have no grades yet, and merges their labels into the official judgments.

        No human label changes, and no judged passage is graded. Where nothing is left to grade, the track
        may be read-only or watched.

        Args:
            found: what `find_holes` gave.
            output: where the merged qrels are written; None writes nothing.
            sources: where it is written who said each line; None for `output` with ".sources.tsv" after it.

        Raises:
            LockedError: another process grades this track.
            TrecexamError: `output` or `sources` is an input, or cannot be written; a grader that cannot run.
        """
        if output is not None:
            output = Path(output)
            sources = sources_beside(output) if sources is None else Path(sources)
            check_outputs(self._pipeline, found, output, sources)
        graded = 0
        if found.missing:
            with TrackLock(self.folder.lock_path):
                self._pipeline.open_to_write()
                self._pipeline.load(depth=found.pool_depth)
                graded, _ = self._pipeline.grade(progress, only=found.holes)
        else:
            self._pipeline.load(depth=found.pool_depth)
        filled = merged(self._pipeline, found, graded)
        if isinstance(output, Path) and isinstance(sources, Path):
            filled.write(output, sources)
        return filled

    def agreement(
        self,
        min_ratings: Sequence[int] = (),
        min_answers: Sequence[int] = (),
        min_relevant: int | None = None,
    ) -> Agreements:
        """Label by judgment tables and Cohen's kappa, for every min_rating with every min_answers.

        Args:
            min_ratings, min_answers, min_relevant: in place of the track's settings.

        Raises:
            TrecexamError: the track has no official judgments, or no passage has both labels.
        """
        return agreements(self._loaded(), min_ratings, min_answers, min_relevant)

    def holes(self, depths: Sequence[int] | None = None, *, qrels: Path | None = None) -> HolesReport:
        """Passages in the runs' first ranks that have no official judgment, or no grade.

        Args:
            depths: how many first ranks count; None for the track's depth.
            qrels: official judgments in place of the track's.

        Raises:
            ConversionError: `qrels` cannot be read.
        """
        return holes_report(self._loaded(), depths, qrels)

    def simulate_runs(
        self,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        qrels: Path | None = None,
        depth: int | None = None,
        teams: Path | None = None,
        progress: Steps | None = None,
    ) -> RunsReport:
        """Leaves out the official judgments that each run alone brought in, fills them, and compares ranks.

        Args:
            official_measures: in place of the track's.
            rule: how automatic labels become official ones. None or "fitted": fitted in each step on the
                judgments that remain, and where that cannot be, "identity".
            cuts: automatic label -> official label, of "thresholds", which they imply; None:
                min_rating -> min_relevant.
            qrels: official judgments in place of the track's.
            depth: ranks in which a passage is had by a run; None for the track's depth.
            teams: a file of `run<TAB>team` lines: a team is left out as a whole.
            progress: called with how many steps are done, and of how many.

        Raises:
            TrecexamError: no official judgments, a measure that cannot be computed, cuts that are no rule,
                teams of other runs.
            ConversionError: a file cannot be read.
        """
        return simulate_runs(
            self._loaded(),
            _names(official_measures),
            rule=rule,
            cuts=cuts,
            qrels=qrels,
            depth=depth,
            teams=teams,
            progress=progress,
        )

    def simulate_removal(
        self,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        qrels: Path | None = None,
        repeats: int = 10,
        seed: int = 0,
        progress: Steps | None = None,
    ) -> RemovalReport:
        """Removes 10 to 90% of the official judgments at random, fills them, and compares leaderboards.

        Args:
            repeats: how often judgments are drawn; at least 1.
            seed: of the random numbers.

        The others, and what is raised, are as in `simulate_runs`.
        """
        return simulate_removal(
            self._loaded(),
            _names(official_measures),
            rule=rule,
            cuts=cuts,
            qrels=qrels,
            repeats=repeats,
            seed=seed,
            progress=progress,
        )

    def qrels(
        self,
        *,
        label: LabelRule | None = None,
        min_rating: int | None = None,
        min_answers: int | None = None,
        binary: bool = False,
    ) -> Iterator[RubricQrel]:
        """The Rubric-Qrels as `ir_measures.Qrel`s, which carry the item ratings that Cover needs.

        Args:
            label, min_rating, min_answers: in place of the track's settings.
            binary: labels are 1 where the passage reaches at least `min_answers` items, else 0.
        """
        from trecexam.scores.labels import label_qrels

        scores = self._pipeline.config.scores
        return label_qrels(
            self._loaded().ratings(),
            label or scores.label,
            scores.min_rating if min_rating is None else min_rating,
            scores.min_answers if min_answers is None else min_answers,
            binary=binary,
        )

    def subtopics(self, *, min_rating: int | None = None) -> Iterator[Qrel]:
        """The diversity qrels: iteration is the item's index, relevance 1 where the passage reaches it."""
        from trecexam.scores.labels import subtopic_qrels

        threshold = self._pipeline.config.scores.min_rating if min_rating is None else min_rating
        return (row for query in self._loaded().ratings() for row in subtopic_qrels(query, threshold))

    def grades(self) -> Iterator[dict[str, Any]]:
        """Every grade of the pool: ids, rating, status, raw answer, digests.

        Where a person rated the cell, `human_rating`, `who` and `why` stand beside the grader's rating.
        """
        return self._loaded().gradebook.rows()

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
            order: "phi" (discrimination), "nonrelevant" (how many of these reach it) or "precision".

        Raises:
            TrecexamError: as `verify_missing`.
        """
        return verification.spurious(self._loaded(), query_ids, item_ids, min_rating, min_relevant, order)

    def judgments_unused(self) -> str | None:
        """Why the official judgments that the track has say nothing of its pool; None where they do.

        None also where the track has none.
        """
        return verification.judgments_unused(self._loaded())

    def pool(self) -> Iterator[PooledPassage]:
        """The pool as the Rubric workbench has it: texts, ranks in the runs, official judgments, grades."""
        from trecexam.stages.pooled import pooled_passages

        return pooled_passages(self._loaded())

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
        from trecexam.stages.judge_next import next_judgments

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
        self, query_id: str, doc_id: str, rating: int | None, *, item: str = "", who: str, why: str
    ) -> Overridden:
        """Takes a person's rating of a cell, or of a passage as a whole, in place of the grader's.

        It counts from now on; `update` writes it into `out/`.

        Args:
            rating: 0..5; None withdraws what was said before.
            item: an item's id or its index from 1; "" for the passage as a whole.
            who, why: part of every rating.

        Raises:
            TrecexamError: the query, passage or item is not in the track, or the rating not on the scale.
        """
        from trecexam.stages.overriding import override

        return override(self._loaded(), query_id, doc_id, item, rating, who, why)

    def human_ratings(self) -> Table:
        """The ratings that people gave, beside the grader's, and which of them count."""
        from trecexam.stages.overriding import human_table

        return human_table(self._loaded())

    def run_files(self) -> Mapping[str, Path]:
        """Display name of each run -> its file."""
        snapshot = self._pipeline.snapshot or self._loaded().snapshot
        assert snapshot is not None
        return snapshot.run_files

    def said(self) -> dict[str, Any]:
        """How many cells and passages people rated in place of the grader, and who did."""
        return self._loaded().said()

    def counts(self) -> Counts:
        """The cells of the pool by what became of them."""
        return self._loaded().gradebook.counts()

    def status(self) -> dict[str, Any]:
        """Counts of what the track holds and of its cells, the grader, and who grades it now."""
        pipeline = self._loaded()
        snapshot = pipeline.snapshot
        assert snapshot is not None
        pid = holder(self.folder.lock_path)
        return {
            "track": str(self.folder.root),
            "grader": pipeline.grader.identity["grader"],
            "grader_identity": identity_digest(pipeline.grader.identity).hex(),
            "watched_by": None if pid is None else f"process {pid}",
            "queries": len(snapshot.bank.query_ids),
            "items": len(snapshot.bank),
            "runs": len(snapshot.runs),
            **asdict(pipeline.gradebook.counts()),
            "stored_grades": pipeline.store.count(),
            "rated_by": ", ".join(pipeline.said()["who"]) or None,
            "official_judgments": 0 if snapshot.official is None else len(snapshot.official),
            "rejected": len(pipeline.rejected),
        }

    def _loaded(self) -> Pipeline:
        self._pipeline.load()
        return self._pipeline


def _names(measures: Sequence[MeasureLike] | None) -> list[str] | None:
    return None if measures is None else [str(measure) for measure in measures]
