"""Calls of a track that belong together under one name: `track.verify.grid()`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.joint import compare_all
from trecexam.features.exporting import exports
from trecexam.features.exporting.pool import pooled_passages
from trecexam.features.fill import fill as filling
from trecexam.features.fill.filled import FillRequest
from trecexam.features.override import overriding
from trecexam.features.verification import verification
from trecexam.files.track_lock import TrackLock
from trecexam.line.grading_time import measure_time
from trecexam.line.judged_pool import count_judged_outside
from trecexam.line.loaded_track import of_each
from trecexam.line.lost_grades import lost_grades, refuse_lost_grades
from trecexam.line.missing_banks import estimate_missing_banks
from trecexam.line.official import official_judgments
from trecexam.line.rejected import all_rejected, all_rejected_of
from trecexam.scores.labels import subtopic_qrels

if TYPE_CHECKING:
    from converters.records import MeasureValue, Qrel
    from converters.run import Run
    from converters.workbench_records import PooledPassage
    from trecexam.features.correlation.comparison import LeaderboardComparison
    from trecexam.features.fill.arithmetic.scale_map import RuleName
    from trecexam.features.fill.filled import Filled, HolesToFill
    from trecexam.features.override.overriding import Overridden
    from trecexam.features.verification.arithmetic import Order
    from trecexam.features.verification.verification import View
    from trecexam.files.stamps import Rejected
    from trecexam.graders.base import Estimate
    from trecexam.graders.sampling import MeasuredTime
    from trecexam.line.grading import Graded, Progress
    from trecexam.line.kind import Kind
    from trecexam.line.measure_names import Measures
    from trecexam.line.sheets import Counts
    from trecexam.scores.labels import LabelRule
    from trecexam.tables.frames import Library
    from trecexam.tables.result import Tables
    from trecexam.track import Track


class Group:
    """Calls of a track under one name. `repr` names them."""

    def __init__(self, track: Track) -> None:
        """Args: track: the track that the calls are about."""
        self.track = track

    def __repr__(self) -> str:
        about = (type(self).__doc__ or "").partition("\n")[0]
        names = [name for name in dir(type(self)) if not name.startswith("_")]
        calls = [f".{name}" + "()" * callable(getattr(type(self), name)) for name in names]
        calls = ["()"] * callable(self) + calls
        name = type(self).__name__.removesuffix("Accessor").lower()
        return f"<track.{name} of {self.track.name!r}: {about} It has {', '.join(calls)}>"


class Grading(Group):
    """How far grading is, and what it takes."""

    def grade(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Graded:
        """Grades what has no grade yet, as `update` does, and writes nothing to `out/`.

        Raises:
            LockedError: a daemon is running on this track.
            TrecexamError, ConversionError: with the reason.
        """
        from trecexam.outputs.update_all import grade_all

        with TrackLock(self.track.folder.lock_path):
            if self.track.is_joint:
                return grade_all(self.track.loaders, progress, stop)
            loader = self.track.loader()
            refuse_lost_grades(loader)
            loader.open_to_write()
            return loader.grade(loader.load(), progress, stop)[1]

    def lost(self) -> int:
        """How many cells a grader that costs had graded, where the store has no grade any more; else 0."""
        if self.track.is_joint:
            return sum(of_each(self.track.loaders, lost_grades))
        return lost_grades(self.track.loader())

    def forget_errors(self) -> int:
        """Drops the stored answers with the status "error", so that the next update asks again; how many.

        Raises:
            LockedError: a daemon is running on this track.
        """
        from trecexam.outputs.outputs import Outputs

        track = self.track
        with TrackLock(track.folder.lock_path):
            loaders = list(track.loaders.values()) if track.is_joint else [track.loader()]
            for loader in loaders:
                Outputs(loader.folder).forget()
                loader.open_to_write()
            return sum(loader.forget_errors() for loader in loaders)

    def estimate_time(self) -> MeasuredTime | None:
        """How long `update` would grade on this machine, by a small sample that is graded and not stored.

        None where nothing is to be graded, and of graders that count tokens, are users' own or run on a
        cluster: none of these runs.

        Raises:
            TrecexamError, ConversionError: the track cannot be read, or the grader cannot run here.
        """
        return measure_time(self.track.loader())

    def estimate_banks(self) -> dict[str, Estimate]:
        """What `update` would take to write the test banks that are missing, by grader; asks nobody.

        Raises:
            TrecexamError, ConversionError: with the reason.
        """
        track = self.track
        names = track.graders if track.is_joint else (track.loader().name,)
        return estimate_missing_banks(track.loaders, names)

    @property
    def kind(self) -> Kind:
        """What the grader grades."""
        return self.track.loader().kind

    def counts(self) -> Counts:
        """The cells of the pool by what became of them."""
        return self.track.graded().counts

    def thresholds(self) -> tuple[int, ...]:
        """Every min_rating that the grader's scale has."""
        return tuple(range(1, self.track.loader().traits.scale.max_rating + 1))


class Files(Group):
    """What was read."""

    def judged_outside_pool(self) -> int:
        """How many judged passages of the bank's queries no run has in its first `depth` ranks; makes no
        grader.

        Without a bank all queries with a text count. Passages without a text are counted, as none is read;
        but 0 where no run has a judged passage at any rank: the judgments are then of other documents.

        Raises:
            TrecexamError, ConversionError: the bank, or a file that the settings name, is missing or
                unreadable.
        """
        return count_judged_outside(self.track.folder)

    def rejected(self) -> tuple[Rejected, ...]:
        """What of the track's inputs was rejected, and what has no grade, with file, line and reason."""
        if self.track.is_joint:
            return all_rejected_of(self.track.loaders.load())
        return all_rejected(self.track.graded())

    def runs(self) -> Mapping[str, Path]:
        """Display name of each run -> its file."""
        return self.track.graded().run_files


class Correlate(Group):
    """How far the grades agree with the official side: `track.correlate()`."""

    def __call__(
        self,
        measures: Measures | None = None,
        official_measures: Measures | None = None,
        *,
        min_ratings: Sequence[int] = (),
        per_query: bool = False,
        rbo_p: float | None = None,
    ) -> LeaderboardComparison:
        """Correlations of rubric with official measures, over the runs and queries that both sides have.

        Args:
            measures: None for the track's own.
            official_measures: None for the track's own and, where there is one, the official leaderboard; its
                name among them is `official_leaderboard`, or `official_leaderboard:MEASURE` for one of its
                measures.
            min_ratings: each rubric measure at each of these, in place of the track's min_rating.
            per_query: each query by itself, without intervals; an official leaderboard has none.
            rbo_p: the persistence of rank-biased overlap, between 0 and 1; None for 0.9.

        Raises:
            NothingToCompareError: there is no official side, or no run or query that both sides have.
            TrecexamError: a min_rating is not on the grader's scale, or there is no official leaderboard and
                it is requested.
            ValueError: a measure cannot be computed.
        """
        options: dict[str, Any] = {"min_ratings": min_ratings, "per_query": per_query, "rbo_p": rbo_p}
        if self.track.is_joint:
            return compare_all(self.track.loaders.load(), measures, official_measures, **options)
        graded = self.track.graded()
        compared = compare(graded, measures, official_measures, **options)
        return self.track.noted_on_grades(compared, graded)


class Fill(Group):
    """Fills judgment holes: `track.fill(track.fill.find())`."""

    def find(
        self,
        qrels: Path | str | None = None,
        *,
        depth: int | None = None,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        as_unjudged: bool = False,
        by: str | None = None,
    ) -> HolesToFill:
        """The pooled passages that nobody judged, and how `fill` would label them; grades nothing.

        Args:
            qrels: official judgments in place of the track's.
            depth: ranks of each run that are pooled, in place of the track's.
            rule: how automatic labels become official ones. None: "fitted" on the passages with both.
            cuts: automatic label -> official label, for "thresholds", which they imply; None:
                min_rating -> min_relevant.
            as_unjudged: new lines get the label -1.
            by: what fills: "grader", "learned" (labels learned from the judgments). None: what the last
                cross-validation found best, else "grader".

        Raises:
            TrecexamError: there are no official judgments, or `fill` wrote them; they have nothing in common
                with the pool and no rule was named; the rule cannot be made; or arguments do not go together.
            ConversionError: `qrels` cannot be read.
        """
        path = None if qrels is None else Path(qrels)
        rule = "thresholds" if cuts and rule is None else rule
        request = FillRequest(path, depth, rule, dict(cuts or {}), as_unjudged, by)
        loader = self.track.loader(documents=True, bank_needed=False)
        return self.track.noted(filling.find_holes(loader, request), loader.name)

    def __call__(
        self,
        to_fill: HolesToFill | Path | str,
        *,
        output: Path | str | None = None,
        sources: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Filled:
        """Grades the holes that have no grades yet, and merges their labels into the official judgments.

        No human label changes, and no judged passage is graded. Where nothing is left to grade, the track
        may be read-only or watched. Learned labels grade nothing; passages without a vector are encoded.

        Args:
            to_fill: what `find_holes` gave; or the path of `output`, to fill the track's own judgments with
                what `find_holes` gives for them, as `trecexam fill TRACK -o OUTPUT` does.
            output: where the merged qrels are written; None writes nothing.
            sources: where it is written who said each line; None for `output` with ".sources.tsv" after it.
            progress: called with how many cells are graded, or passages encoded, and of how many.

        Raises:
            LockedError: another process grades this track.
            StoreError: the store is gone or an older one, and what it had would be paid for again.
            TrecexamError: `output` or `sources` is an input, or cannot be written; a grader that cannot run;
                judgments that nothing can be learned from.
        """
        loader = self.track.loader(documents=True, bank_needed=False)
        return self.track.noted(
            filling.fill(loader, to_fill, output=output, sources=sources, progress=progress), loader.name
        )


class Verify(Group):
    """What the scores are made of: what the grader did, and where the bank lacks items."""

    def grading(
        self,
        *,
        query_ids: Collection[str] | None = None,
        item_ids: Collection[str] | None = None,
        doc_ids: Collection[str] | None = None,
        statuses: Collection[str] | None = None,
        top: int | None = None,
    ) -> View:
        """Every cell with its answer and official judgment, item by item, best rating first.

        The table `items` has the items with their texts, and how often each rating was given.

        Args:
            query_ids, item_ids, doc_ids, statuses: only of these; None for all. Queries and items whose
                nothing is left are left out.
            top: of each item, only so many passages.

        Raises:
            TrecexamError: nothing is graded yet, or an id is not in the track.
        """
        graded = self.track.graded()
        return self.track.noted_on_grades(
            verification.grading(
                graded, query_ids=query_ids, item_ids=item_ids, doc_ids=doc_ids, statuses=statuses, top=top
            ),
            graded,
        )

    def grid(
        self,
        *,
        query_ids: Collection[str] | None = None,
        item_ids: Collection[str] | None = None,
        doc_ids: Collection[str] | None = None,
        min_rating: int | None = None,
        top: int | None = None,
    ) -> View:
        """The ratings of passages x items for each query, with official judgments and labels.

        A row a passage; the column `item.N` is the rating on the query's Nth item. There are as many as the
        query with the most items needs. `human` says which of them a person rated: item indices, and "label"
        for the passage as a whole. The table `items` has the items, and how many passages reach each.

        Args:
            query_ids, item_ids, doc_ids: only of these; None for all. Labels are over all items.
            min_rating: in place of the track's.
            top: of each query, only so many passages; the counts of `items` are over all.

        Raises:
            TrecexamError: nothing is graded yet, an id is not in the track, or a min_rating that no grade can
                reach; or the grader asks about each item of the passages alone that cite it.
        """
        graded = self.track.graded(lambda each: each.asked.citing is None)
        return self.track.noted_on_grades(
            verification.grid(
                graded,
                query_ids=query_ids,
                item_ids=item_ids,
                doc_ids=doc_ids,
                min_rating=min_rating,
                top=top,
            ),
            graded,
        )

    def missing(
        self,
        *,
        query_ids: Collection[str] | None = None,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        per_query: bool = False,
        top: int | None = None,
    ) -> View:
        """The officially relevant passages that reach no item; and by query what became of all relevant ones.

        `best_items` are the indices of the items on which a passage has its best rating.

        Args:
            query_ids: only of these; None for all.
            min_rating, min_relevant: in place of the track's.
            per_query: `queries` comes first.
            top: of each query, only so many passages.

        Raises:
            TrecexamError: no official judgments, or none of these queries or of this pool; nothing is graded
                yet; an id is not in the track; a min_rating that no grade can reach.
        """
        graded = self.track.graded(documents=True)
        return self.track.noted_on_grades(
            verification.missing(
                graded,
                query_ids=query_ids,
                min_rating=min_rating,
                min_relevant=min_relevant,
                per_query=per_query,
                top=top,
            ),
            graded,
        )

    def spurious(
        self,
        *,
        query_ids: Collection[str] | None = None,
        item_ids: Collection[str] | None = None,
        min_rating: int | None = None,
        min_relevant: int | None = None,
        order: Order = "phi",
        top: int | None = None,
    ) -> View:
        """How well each item tells relevant from non-relevant passages, the worst first.

        Args:
            query_ids, item_ids: only of these; None for all.
            min_rating, min_relevant: in place of the track's.
            order: "phi", "nonrelevant" (how many of these reach it), "precision" or "discrimination".
            top: only so many items.

        Raises:
            TrecexamError: as `missing`.
        """
        graded = self.track.graded(documents=True)
        return self.track.noted_on_grades(
            verification.spurious(
                graded,
                query_ids=query_ids,
                item_ids=item_ids,
                min_rating=min_rating,
                min_relevant=min_relevant,
                order=order,
                top=top,
            ),
            graded,
        )


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
        """Takes a person's rating of a cell, or of a passage as a whole, in place of the grader's.

        It is a line of overrides.tsv, and counts from now on; `update` writes it into `out/`. Where [judging]
        has a scale, or the track official judgments, a rating of a passage as a whole is a judgment on that
        scale, a line of judgments.tsv: it counts like an official judgment, and changes no label of the
        grader.

        Args:
            rating: 0..5, or a number or name of the scale of judgments; None takes back what this person said
                last, and what she said before counts again, if she did; one who said nothing takes back what
                others said. Of support: 2 full, 1 partial, 0 none, or these words.
            item: an item's id or its index from 1; "" for the passage as a whole. Of support RUN:N, the Nth
                sentence of a run's response, as in support.tsv, or its id: the rating counts for all
                responses to the query with this sentence and citation.
            who, why: part of every rating.
            seen: `trecexam.features.override.overriding.seen_token` of the rating that counted when the
                person looked; None to add this one in any case.

        Raises:
            RatingConflictError: another rating counts by now than the one that was seen; nothing was written.
            TrecexamError: the query, passage or item is not in the track, or the rating not on the scale; a
                name or a reason is missing, too long (200 and 500 characters), or has a control character.
        """
        graded = self.track.graded(lambda each: overriding.has_cell(each, query_id, doc_id, item))
        return overriding.override(graded, query_id, doc_id, rating, item=item, who=who, why=why, seen=seen)

    def ratings(self) -> Tables:
        """The ratings that people gave; what cannot count is rejected, with reasons. Of several graders the
        ratings of all, with the grader in front.

        Raises:
            TrecexamError, ConversionError: the track cannot be read.
        """
        if self.track.is_joint:
            return overriding.all_human_ratings(self.track.loaders.load())
        return overriding.human_ratings(self.track.graded())

    def summary(self) -> dict[str, Any]:
        """How many cells and passages people rated in place of the grader, and who did."""
        return self.track.graded().override_summary()


class Export(Group):
    """What other tools take."""

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
        """Writes the Rubric-Qrels as a file, and beside it `OUTPUT.json`, which says whose labels they are.

        Args:
            output: where the qrels are written; an existing file is replaced.
            label, min_rating, min_answers, binary, by: as of `qrels`.

        Returns:
            The file with the qrels.

        Raises:
            TrecexamError: as `qrels`; or a file is a track's own or somebody else's, or cannot be written.
            ValueError: as `qrels`.
        """
        return exports.write_qrels(
            self.track.graded(documents=True),
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
        graded = self.track.graded()
        threshold = graded.config.scores.min_rating if min_rating is None else min_rating
        return (row for query in graded.ratings() for row in subtopic_qrels(query, threshold))

    def runs(self, runs: Collection[str] | None = None) -> dict[str, Run]:
        """The runs by name, in trec_eval's order; of generated responses, what of them is evaluated.

        Iterating a run gives `converters.records.RunEntry`s, which `ir_measures` takes.

        Args:
            runs: their names, None for all.

        Raises:
            TrecexamError: there is no such run.
        """
        return exports.runs(self.track.graded(), runs)

    def responses(self, run: str, measures: Measures | None = None) -> Iterator[dict[str, Any]]:
        """Each line of a file of generated responses as it was dropped, with its values by measure beside it.

        Lines that are not accepted are left out. A query that the track does not have has no values.

        Args:
            run: its name.
            measures: None for the track's own.

        Raises:
            TrecexamError: there is no such run, or it is a ranking.
            ValueError: a measure cannot be computed.
        """
        return exports.responses(self.track.of_measures(measures).graded(), run, measures)

    def official_qrels(self) -> Iterator[Qrel]:
        """The official judgments, whatever they came from.

        Raises:
            TrecexamError: the track has none.
        """
        return iter(official_judgments(self.track.graded(documents=True)).rows)

    def leaderboard_values(self, first: Sequence[str] = ()) -> Iterator[MeasureValue]:
        """Every run's value on every query of the track's measures, and its means as rows of the query "all".

        Where `average` in [scores] is "answered", queries that a run skips are left out, as they are of its
        mean. Runs without scores are left out. Runs are in the order of the leaderboard, measures in theirs,
        queries sorted. Of several graders those with a grade are given, and a measure is `NAME:MEASURE`.

        Args:
            first: measures that come first, whether they are among the track's or not.

        Raises:
            TrecexamError: there are no scores (`why_no_scores`); or as `leaderboard`.
        """
        if self.track.is_joint:
            values = exports.joint_leaderboard_values(self.track.loaders.load(), first)
            if values is not None:
                return values
        return exports.leaderboard_values(self.track.graded(), first)

    def items_without_facet(self) -> int:
        """How many items have no facet, and are in no labels by facet."""
        items_by_query = self.track.graded().bank.items.values()
        return sum(not item.facet_id for items in items_by_query for item in items)

    def pool(self) -> Iterator[PooledPassage]:
        """The passages of a loaded track's pool, query by query, in the pool's order.

        Ranks count from 1 in trec_eval's order. Cells without a grade are left out; a passage without a text
        has "", as the workbench takes none without.
        """
        return pooled_passages(self.track.graded())

    def qrels_frame(
        self,
        *,
        label: LabelRule | None = None,
        min_rating: int | None = None,
        min_answers: int | None = None,
        binary: bool = False,
        library: Library = "pandas",
    ) -> Any:
        """The Rubric-Qrels as a data frame with a row for each labelled passage and item.

        All functions of `ir_measures` take it (of pandas) as qrels, and compute Cover and nCover from it, as
        long as each passage has its row for each item: passages and items may be left out whole, single rows
        may not.

        Args:
            label, min_rating, min_answers, binary: as in `qrels`.
            library: whose data frame it is: "pandas", "polars", or "pyarrow", which is always there.

        Returns:
            Columns `query_id`, `doc_id`, `item_id` (text), `rating` (int64, 0..5, -1 if missing),
            `label` (int64, the passage's), `relevance` (the same, by the name that ir_measures looks for)
            and, where the bank has importances, `importance` (text, of the item: "vital", "okay" or "") and,
            where it has weights, `weight` (float64, of the item, 1 where it has none). Items are in the
            bank's order. With the label "expected", and not `binary`, `gain` (float64, the passage's expected
            label) stands beside `label`, as in `out/rubric.gains.tsv`.

        Raises:
            TrecexamError: the library is not installed.
            ValueError: as `qrels`.
        """
        from trecexam.extensions.libraries.frames import qrels_frame

        return qrels_frame(
            self.track.graded(documents=True),
            label=label,
            min_rating=min_rating,
            min_answers=min_answers,
            binary=binary,
            library=library,
        )

    def grades_frame(self, *, library: Library = "pandas") -> Any:
        """Every grade of the pool as a data frame, a row for each graded passage and item.

        Args:
            library: whose data frame it is: "pandas", "polars", or "pyarrow", which is always there.

        Returns:
            Columns `query_id`, `doc_id`, `item_id` (text), `rating` (int64, the grader's, 0..5, -1 where its
            answer gave none), `human_rating` (int64, -1 where no person rated the cell), `who` (text, "" for
            nobody), `status` (text: "ok", "unparsed", "refused", "error"), `answer`, `model` and `prompt`
            (text).

        Raises:
            TrecexamError: the library is not installed.
        """
        from trecexam.extensions.libraries.frames import grades_frame

        return grades_frame(self.track.graded(), library=library)

    def pack(self, output: Path | str) -> str:
        """Write inputs, settings, grades and the digests of out/ to one .tar.gz, and say how large it is.

        Raises:
            TrecexamError: out/ is not up to date, a file cannot be packed, or the archive cannot be written.
        """
        from trecexam.extensions.pack.packing import pack

        return pack(self.track.loaders, output)
