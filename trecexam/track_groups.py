"""Calls of a track that belong together under one name: `track.verify.grid()`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from converters.records import MeasureValue, Qrel
from converters.run import Run
from converters.workbench_records import PooledPassage
from trecexam.features.correlation.comparison import LeaderboardComparison, compare_all
from trecexam.features.exporting import exports
from trecexam.features.exporting.pool import pooled_passages
from trecexam.features.fill import fill as filling
from trecexam.features.fill.records import Filled, HolesToFill
from trecexam.features.fill.rules import RuleName
from trecexam.features.override import overriding
from trecexam.features.override.overriding import Overridden
from trecexam.features.verification import verification
from trecexam.features.verification.arithmetic import Order
from trecexam.features.verification.verification import View
from trecexam.files.stamps import Rejected
from trecexam.files.track_lock import track_lock
from trecexam.graders.base import Estimate
from trecexam.grades.diagnostics import all_rejected
from trecexam.grades.graded_track import has_bank
from trecexam.grades.grading import Graded, Progress, forget_errors, lost_grades
from trecexam.grades.official import official_judgments
from trecexam.grades.selection import Selection
from trecexam.grades.sheets import Counts
from trecexam.inputs.kind import Kind
from trecexam.inputs.missing_banks import estimate_missing_banks, forget_unread_answers
from trecexam.inputs.track_graders import Measures
from trecexam.results.frames import Library
from trecexam.results.result import Tables
from trecexam.scores.labels import LabelRule, subtopic_qrels


class Group:
    """Calls of a track under one name; measures and errors are as in `Track`."""

    def __init__(self, track: Selection) -> None:
        """Args: track: the track that the calls are about."""
        self._track = track

    def __repr__(self) -> str:
        calls = ", ".join(name for name in dir(type(self)) if not name.startswith("_"))
        return f"<{type(self).__name__} of {self._track.name!r}: {calls}>"


class Grading(Group):
    """Progress and costs of grading."""

    def grade(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Graded:
        """Grade what has no grade yet, as `update` does, and write nothing to `out/`.

        Raises:
            LockedError: a daemon is running on this track.
        """
        from trecexam.outputs.update import grade

        with track_lock(self._track.folder.lock_path):
            return grade(self._track.loaders, self._track.names, progress, stop)

    def lost(self) -> int:
        """Count the cells that a grader that costs had graded, where the store has no grade any more."""
        return sum(self._track.each(lost_grades))

    def forget_errors(self) -> int:
        """Drop this pool's answers that are errors, so that the next update asks again; return how many.

        Also answers without items that were to be in a missing test bank.

        Raises:
            LockedError: a daemon is running on this track.
        """
        from trecexam.outputs.outputs import Outputs

        track = self._track
        with track_lock(track.folder.lock_path):
            loaders = [track.loaders[name] for name in track.names]
            for loader in loaders:
                Outputs(loader.folder).forget()
                loader.track.open_to_write()
            n_unread = forget_unread_answers(track.folder, track.loaders.files, track.names)
            return n_unread + sum(map(forget_errors, loaders))

    def estimate_banks(self) -> dict[str, Estimate]:
        """Estimate what writing the missing test banks takes, by grader; asks nobody."""
        track = self._track
        return estimate_missing_banks(track.folder, track.loaders.files, track.names)

    @property
    def kind(self) -> Kind:
        """The kind of grading."""
        return self._track.loader().kind

    def counts(self) -> Counts:
        """Return the numbers of cells of the pool by status."""
        return self._track.graded().counts

    def thresholds(self) -> tuple[int, ...]:
        """Return every min_rating on the grader's scale."""
        return tuple(range(1, self._track.loader().grader.scale.max_rating + 1))


class Files(Group):
    """Files that were read."""

    def rejected(self) -> tuple[Rejected, ...]:
        """Return rejected inputs, and cells without a grade, with file, line and reason."""
        return all_rejected(self._track.loaded())

    def runs(self) -> Mapping[str, Path]:
        """Return the file of each run by its display name."""
        return self._track.graded().inputs.dropped.run_files


class Correlate(Group):
    """Correlations of the grades with the official side: `track.correlate()`."""

    def __call__(
        self,
        measures: Measures | None = None,
        official_measures: Measures | None = None,
        *,
        min_ratings: Sequence[int] = (),
        per_query: bool = False,
        rbo_p: float | None = None,
    ) -> LeaderboardComparison:
        """Correlate rubric with official measures, over the runs and queries that both sides have.

        Of several graders each two columns of the joint leaderboard are correlated, too; measures are named
        `NAME:MEASURE`, and official ones `official:MEASURE`.

        Args:
            measures: None for the track's own.
            official_measures: None for the track's own and the official leaderboard, if there is one:
                `official_leaderboard`, or `official_leaderboard:MEASURE` for one of its measures.
            min_ratings: each rubric measure at each of these, in place of the track's min_rating.
            per_query: each query by itself, without intervals; an official leaderboard has none.
            rbo_p: the persistence of rank-biased overlap, between 0 and 1; None for 0.9.
        """
        sides = (measures, official_measures)
        track = self._track.loaded()
        return compare_all(track, *sides, min_ratings=min_ratings, per_query=per_query, rbo_p=rbo_p)


class Fill(Group):
    """Fills judgment holes: `track.fill(track.fill.find())`."""

    def find(
        self,
        qrels: Path | str | None = None,
        *,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        as_unjudged: bool = False,
        by: str | None = None,
    ) -> HolesToFill:
        """Find the pooled passages that nobody judged, and how `fill` would label them; grades nothing.

        Args:
            qrels: official judgments in place of the track's.
            rule: maps automatic to official labels. None: "fitted" on the passages with both.
            cuts: automatic label -> official label, of "thresholds", which they imply; None: min_rating ->
                min_relevant.
            as_unjudged: new lines get the label -1.
            by: "grader", or "learned" from the judgments. None: learned after `track.learn.labels()`, unless
                its cross-validation found the grader better by more than chance; else "grader". Without a
                bank people's judgments alone are added.

        Raises:
            TrecexamError: there are no official judgments, or `fill` wrote them; the rule cannot be made or
                fitted; or arguments do not go together.
            ConversionError: `qrels` cannot be read.
        """
        path = None if qrels is None else Path(qrels)
        rule = "thresholds" if cuts and rule is None else rule
        loader = self._track.loader(documents=True, bank_needed=False)
        found = filling.find_holes(loader, path, rule, cuts, as_unjudged=as_unjudged, by=by)
        return self._track.with_grader_note(found, loader.name)

    def __call__(
        self,
        to_fill: HolesToFill | Path | str,
        *,
        output: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Filled:
        """Grade the holes that have no grades yet, and merge their labels into the official judgments.

        No human label changes, and no judged passage is graded. Where nothing is left to grade, the track may
        be read-only or watched. Learned labels need no grading; passages without a vector are encoded.

        Args:
            to_fill: the result of `find`; or the path of `output`, to fill the track's judgments by default.
            output: the file for the merged qrels; OUTPUT.sources.tsv has the source of each line. None writes
                nothing.
            progress: called with the number of graded cells, or encoded passages, and of how many.

        Raises:
            LockedError: another process grades this track.
            StoreError: the store is gone or an older one, and its grades would be paid for again.
            TrecexamError: `output` is an input, or cannot be written; the grader cannot run; or
                nothing can be learned from the judgments.
        """
        loader = self._track.loader(documents=True, bank_needed=False)
        result = filling.fill(loader, to_fill, output=output, progress=progress)
        return self._track.with_grader_note(result, loader.name)


class Verify(Group):
    """Views of the grades behind the scores, and of items that the bank lacks."""

    def grading(
        self,
        *,
        query_ids: Collection[str] = (),
        item_ids: Collection[str] = (),
        doc_ids: Collection[str] = (),
        top: int | None = None,
    ) -> View:
        """List every cell with its answer and official judgment, item by item, best rating first.

        The table `items` has the items with their texts, and how often each rating was given.

        Args:
            query_ids, item_ids, doc_ids: only these; none for all.
            top: of each item, only so many passages.
        """
        graded = self._track.graded()
        result = verification.grading(
            graded, query_ids=query_ids, item_ids=item_ids, doc_ids=doc_ids, top=top
        )
        return self._track.with_grade_notes(result, graded)

    def grid(
        self,
        *,
        query_ids: Collection[str] = (),
        item_ids: Collection[str] = (),
        doc_ids: Collection[str] = (),
        min_rating: int | None = None,
        top: int | None = None,
    ) -> View:
        """Show the ratings of passages (rows) by items (columns) for each query, with judgments and labels.

        The column `item.N` is the rating on the query's Nth item. `human` names a person's ratings: item
        indices, and "label" for the passage as a whole. `items` counts the passages that reach each.

        Args:
            query_ids, item_ids, doc_ids: only these; none for all. Labels are over all items.
            min_rating: in place of the track's.
            top: of each query, only so many passages; the counts of `items` are over all.
        """
        graded = self._track.graded(lambda each: each.asked.citing is None)
        result = verification.grid(
            graded, query_ids=query_ids, item_ids=item_ids, doc_ids=doc_ids, min_rating=min_rating, top=top
        )
        return self._track.with_grade_notes(result, graded)

    def missing(
        self,
        *,
        query_ids: Collection[str] = (),
        min_rating: int | None = None,
        min_relevant: int | None = None,
        per_query: bool = False,
        top: int | None = None,
    ) -> View:
        """List the officially relevant passages that reach no item, and count all relevant ones by query.

        `best_items` are the indices of the items on which a passage has its best rating.

        Args:
            query_ids: only these; none for all.
            min_rating, min_relevant: in place of the track's.
            per_query: put the table `queries` first.
            top: of each query, only so many passages.
        """
        graded = self._track.graded(documents=True)
        result = verification.missing(
            graded,
            query_ids=query_ids,
            min_rating=min_rating,
            min_relevant=min_relevant,
            per_query=per_query,
            top=top,
        )
        return self._track.with_grade_notes(result, graded)

    def spurious(
        self,
        *,
        query_ids: Collection[str] = (),
        item_ids: Collection[str] = (),
        min_rating: int | None = None,
        min_relevant: int | None = None,
        order: Order = "phi",
        top: int | None = None,
    ) -> View:
        """Rank the items by how badly they tell relevant from non-relevant passages, worst first.

        Args:
            query_ids, item_ids: only these; none for all.
            min_rating, min_relevant: in place of the track's.
            order: "phi", "nonrelevant" (how many of these reach it), "precision" or "discrimination".
            top: only so many items.
        """
        from trecexam.extensions.exams.rubric import discriminations

        graded = self._track.graded(documents=True)
        result = verification.spurious(
            graded,
            discriminations,
            query_ids=query_ids,
            item_ids=item_ids,
            min_rating=min_rating,
            min_relevant=min_relevant,
            order=order,
            top=top,
        )
        return self._track.with_grade_notes(result, graded)


class Override(Group):
    """A person's rating in place of the grader's: `track.override(...)`; and the ratings that there are."""

    def __call__(
        self,
        query_id: str,
        doc_id: str,
        rating: int | str | None,
        *,
        item: str | int = "",
        who: str,
        why: str,
        seen: str | None = None,
    ) -> Overridden:
        """Take a person's rating of a cell, or of a passage as a whole, in place of the grader's.

        Appends a line to overrides.tsv, which counts from now on; `update` writes it into `out/`. Where
        [judging] has a scale, or the track official judgments, a rating of a passage as a whole is a line of
        judgments.tsv on that scale: it counts like an official judgment, and changes no label of the grader.

        Args:
            rating: 0..5, or a number or name of the scale of judgments; of support 2, 1, 0, or full, partial,
                no. None withdraws this person's last rating (an earlier one counts again), else the others'
                ratings.
            item: an item's id or its index from 1; "" for the passage as a whole. Of support RUN:N, the Nth
                sentence of a run's response, or its id: the rating counts for all responses with this
                sentence and citation.
            who, why: part of every rating.
            seen: `trecexam.features.override.overriding.seen_token` of the rating that counted when the
                person looked; None to add this one in any case.

        Raises:
            RatingConflictError: another rating counts by now than the one that was seen; nothing was written.
            TrecexamError: the query, passage or item is not in the track, or the rating not on the scale; a
                name or a reason is missing, too long (200 and 500 characters), or has a control character.
        """
        graded = self._track.graded(lambda each: overriding.has_cell(each, query_id, doc_id, item))
        return overriding.override(graded, query_id, doc_id, rating, item=item, who=who, why=why, seen=seen)

    def ratings(self) -> Tables:
        """List the ratings that people gave; of several graders all, with the grader in front.

        Ratings that cannot count are rejected, with reasons.
        """
        return overriding.human_ratings(self._track.loaded())

    def summary(self) -> dict[str, Any]:
        """Count the cells and passages that people rated in the grader's place, and name these people."""
        return self._track.graded().override_summary()


class Export(Group):
    """Formats of other tools."""

    def qrels(
        self,
        output: Path | str,
        *,
        label: LabelRule | None = None,
        min_rating: int | None = None,
        min_answers: int | None = None,
        binary: bool = False,
        by: Literal["query", "facet"] = "query",
    ) -> Path:
        """Write the labels as qrels, and beside them `OUTPUT.json`, which says whose labels they are.

        Args:
            output: an existing file is replaced, but none in a track.
            label, min_rating, min_answers, binary, by: as of `Track.qrels`.
        """
        return exports.write_qrels(
            self._track.graded(documents=True),
            output,
            label=label,
            min_rating=min_rating,
            min_answers=min_answers,
            binary=binary,
            by=by,
        )

    def subtopics(self, *, min_rating: int | None = None) -> Iterator[Qrel]:
        """The diversity qrels: iteration is the item's index, relevance 1 where the passage reaches it.

        Every item of a query is named, also one that no passage is rated on: Cover(rel=1) of these rows is
        Cover(rel=min_rating) of the track.

        Args:
            min_rating: in place of the track's.
        """
        graded = self._track.graded()
        threshold = graded.config.scores.min_rating if min_rating is None else min_rating
        return (row for query in graded.ratings() for row in subtopic_qrels(query, threshold))

    def runs(self, runs: Collection[str] | None = None) -> dict[str, Run]:
        """The runs by name, in trec_eval's order; of generated responses, what of them is evaluated.

        Iterating a run gives `converters.records.RunEntry`s, which `ir_measures` takes.

        Args:
            runs: their names, None for all.
        """
        return exports.runs(self._track.graded(has_bank, bank_needed=False), runs)

    def responses(self, run: str, measures: Measures | None = None) -> Iterator[dict[str, Any]]:
        """Yield each accepted line of a file of responses, with its value by measure where the query has one.

        Args:
            run: its name.
            measures: None for the track's own.
        """
        return exports.responses(self._track.of_measures(measures).graded(), run, measures)

    def official_qrels(self) -> Iterator[Qrel]:
        """The official judgments, whatever they came from."""
        graded = self._track.graded(has_bank, documents=True, bank_needed=False)
        return iter(official_judgments(graded).rows)

    def leaderboard_values(self, first: Sequence[str] = ()) -> Iterator[MeasureValue]:
        """Yield every run's value on every query by each measure, and its means as rows of the query "all".

        Runs and measures are in the leaderboard's order, queries sorted. Left out are runs without scores,
        and queries that a run skips where `average` in [scores] is "answered". Of several graders a measure
        is `NAME:MEASURE`, and graders without grades are left out.

        Args:
            first: measures that come first, also others than the track's.
        """
        return exports.leaderboard_values(self._track.loaded(), first)

    def items_without_facet(self) -> int:
        """Count the items without a facet, which are in no labels by facet."""
        items_by_query = self._track.graded().bank.items.values()
        return sum(not item.facet_id for items in items_by_query for item in items)

    def pool(self) -> Iterator[PooledPassage]:
        """The passages of a loaded track's pool, query by query, in the pool's order.

        Ranks count from 1 in trec_eval's order. Cells without a grade are left out; a passage without a text
        has "", as the workbench takes none without.
        """
        return pooled_passages(self._track.graded())

    def qrels_frame(
        self,
        *,
        label: LabelRule | None = None,
        min_rating: int | None = None,
        min_answers: int | None = None,
        binary: bool = False,
        library: Library = "pandas",
    ) -> Any:
        """Return the labels as a data frame with a row for each labelled passage and item.

        All functions of `ir_measures` take it (of pandas) as qrels, and compute Cover and nCover from it.
        Passages and items may be left out whole, single rows may not.

        Args:
            label, min_rating, min_answers, binary: as in `Track.qrels`.
            library: "pandas", "polars", or "pyarrow", which is always installed.

        Returns:
            Columns `query_id`, `doc_id`, `item_id` (text), `rating` (int64, 0..5, -1 if missing), `label`
            (int64, the passage's) and `relevance` (the same, for ir_measures); if the bank has them, the
            item's `importance` ("vital", "okay" or "") and `weight` (float64, else 1). Items are in the
            bank's order. With the label "expected", and not `binary`, `gain` (float64) is the passage's
            expected label.
        """
        from trecexam.extensions.libraries.frames import qrels_frame

        return qrels_frame(
            self._track.graded(documents=True),
            label=label,
            min_rating=min_rating,
            min_answers=min_answers,
            binary=binary,
            library=library,
        )

    def grades_frame(self, *, library: Library = "pandas") -> Any:
        """Return every grade of the pool as a data frame, a row for each graded passage and item.

        Args:
            library: "pandas", "polars", or "pyarrow", which is always installed.

        Returns:
            Columns `query_id`, `doc_id`, `item_id` (text), `rating` (int64, the grader's, 0..5, -1 for none),
            `human_rating` (int64, -1 for none), `who` (text, "" for nobody), `status` (text: "ok",
            "unparsed", "refused", "error"), `answer`, `model` and `prompt` (text).
        """
        from trecexam.extensions.libraries.frames import grades_frame

        return grades_frame(self._track.graded(), library=library)

    def pack(self, output: Path | str) -> str:
        """Write inputs, settings, grades and the digests of out/ to one .tar.gz, and say how large it is."""
        from trecexam.extensions.pack.packing import pack

        return pack(self._track.loaders, output)
