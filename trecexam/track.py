"""A track from Python: everything a command does is a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from converters.errors import ConversionError
from trecexam.errors import TrackError, TrecexamError
from trecexam.features.leaderboard.board import leaderboard, track_leaderboard
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.grades.graded_track import LoadedTrack, has_bank
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.selection import Selection
from trecexam.scores.measures import measure as parsed
from trecexam.track_groups import Correlate, Export, Files, Fill, Grading, Override, Verify

if TYPE_CHECKING:
    from trecexam.extensions.banks.accessor import BankAccessor
    from trecexam.extensions.campaign.accessor import JudgingAccessor
    from trecexam.extensions.erag.accessor import EragAccessor
    from trecexam.extensions.exams.accessor import ExamAccessor
    from trecexam.extensions.learn.accessor import LearnAccessor
    from trecexam.extensions.ragval.accessor import RagvalAccessor
    from trecexam.features.agreement.agreement import Agreements
    from trecexam.features.holes.holes import By, HolesReport
    from trecexam.features.leaderboard.differences import Differences, Test
    from trecexam.graders import Grader
    from trecexam.grades.grading import Progress
    from trecexam.grades.status import Status
    from trecexam.inputs.track_graders import MeasureLike, Measures
    from trecexam.outputs.grader_update import Update
    from trecexam.results.frames import Library
    from trecexam.results.plots.paper import PaperFigure
    from trecexam.results.result import Tables
    from trecexam.scores.labels import LabelRule, RubricQrel
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.scores.paired_tests import Correction


def open_track(
    root: Path | str,
    *,
    grader: Grader | None = None,
    graders: Mapping[str, Grader] | None = None,
    trust_code: bool = False,
) -> Track:
    """Open the track in folder `root`.

    Args:
        grader: a grader of your own in place of the one that trecexam.toml names.
        graders: of a track that has several, graders of your own in place of those of these names.
        trust_code: run code that trecexam.toml names (`metric = "module:function"`): read it first.
    """
    return Track(OpenTrack(TrackFolder.open(root, trust_code=trust_code), grader, graders=graders))


def selection(track: Track) -> Selection:
    """Return an opened track with its selected grader, for functions of a track as in extensions."""
    return track._selected


class Track:
    """A track folder. Inputs and values are kept, so a second call is cheap.

    Methods that read (`leaderboard`, `qrels` ...) use stored grades; `update` runs graders. Of a track with
    several graders, `track["NAME"]` is what one of them says. Where none is selected, the first that applies
    answers, and a note names it.

    Measures are one or several, by ir_measures' names or objects; None for the track's own. With `official`
    they are of the official judgments instead of the grades, and the track needs no bank. A measure that
    cannot be computed is a ValueError; all else that a user can mend is a TrecexamError.
    """

    def __init__(self, loaders: OpenTrack, grader: str | None = None) -> None:
        """Args: grader: the name of the selected grader; None for the track as a whole."""
        if not isinstance(loaders, OpenTrack):
            raise TrecexamError(f'use trecexam.open_track("{loaders}") to open a track folder')
        self._selected = Selection(loaders, grader)

    def __getitem__(self, grader: str) -> Track:
        """Return the track as one of its graders sees it."""
        if not isinstance(grader, str):
            raise TrackError(f"track[{grader!r}]: give a grader's name, one of {', '.join(self.graders)}")
        return Track(self._selected.loaders, grader)

    @property
    def graders(self) -> tuple[str, ...]:
        """The names of the graders, in the order of trecexam.toml."""
        return tuple(self._selected.loaders)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the graders: `"umbrela" in track`, `for name in track`."""
        return iter(self.graders)

    def __enter__(self) -> Track:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; also done at the end of a `with` block."""
        self._selected.loaders.close()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self._selected.name

    @property
    def folder(self) -> TrackFolder:
        """Paths and settings of the track, as the selected grader sees them, else the first."""
        return self._selected.folder

    @property
    def queries(self) -> dict[str, str]:
        """query_id -> the query's text, of those that means are over; "" where none is known."""
        track = self._selected.graded()
        return {query_id: track.query_texts.get(query_id, "") for query_id in track.bank.query_ids}

    @property
    def measures(self) -> tuple[str, ...]:
        """The leaderboard's own measures; the first orders it. Of several graders as `NAME:MEASURE`."""
        track = self._selected.loaded()
        if track.is_single:
            return tuple(str(parsed(each)) for each in track.first.measures)
        graded_tracks = track.graded_tracks.items()
        return tuple(f"{name}:{parsed(column)}" for name, each in graded_tracks for column in each.measures)

    def __repr__(self) -> str:
        from trecexam.grades.status import status_line

        try:
            return f"<Track {self.name!r}: {status_line(self.status())}>"
        except (TrecexamError, ConversionError) as error:
            return f"<Track {self.name!r}, which cannot be read: {error}>"

    def update(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        doing: Callable[[str], None] = lambda stage: None,
        regrade: bool = False,
    ) -> Update:
        """Grade what has no grade yet and write `out/`, as `trecexam watch --once`.

        Args:
            progress: called after each graded batch.
            stop: called again and again; True ends grading early.
            doing: called with the name of each stage: reading, grading, each output.
            regrade: cells of a lost store may be graded, and paid for, again.
        """
        from trecexam.outputs.update import update

        with track_lock(self.folder.lock_path):
            loaders, only = self._selected.loaders, self._selected.grader
            return update(loaders, progress, stop, only=only, doing=doing, regrade=regrade)

    def estimate(self, *, retry_errors: bool = False) -> Estimate:
        """Return what `update` would grade: cells and, with a server, calls, tokens and money; asks nobody.

        Args:
            retry_errors: as if answers that are errors were forgotten, see `grading.forget_errors`.
        """
        from trecexam.grades.grading import estimate

        each = self._selected.each(lambda view: estimate(view, view.load(), retry_errors=retry_errors))
        return reduce(Estimate.plus, each)

    def status(self) -> Status:
        """Return inputs, progress of grading, and the running process; of each grader, and their sum."""
        from trecexam.grades.status import track_status

        return track_status(self._selected.loaders, self._selected.names)

    @property
    def grading(self) -> Grading:
        """Progress and costs of grading: `counts()`, `grade()`, `estimate_time()` ..."""
        return Grading(self._selected)

    @property
    def files(self) -> Files:
        """Files that were read: `runs()`, `rejected()` ..."""
        return Files(self._selected)

    @property
    def export(self) -> Export:
        """Formats of other tools: data frames, subtopics, the pool."""
        return Export(self._selected)

    @property
    def correlate(self) -> Correlate:
        """Correlations of the grades with the official side: `correlate()`."""
        return Correlate(self._selected)

    @property
    def fill(self) -> Fill:
        """Fills judgment holes: `fill(fill.find())`."""
        return Fill(self._selected)

    @property
    def verify(self) -> Verify:
        """Views of the grades behind the scores: `verify.grading()`, `grid()`, `missing()` ..."""
        return Verify(self._selected)

    @property
    def override(self) -> Override:
        """A person's rating in place of the grader's: `override(...)`; `override.ratings()` has them."""
        return Override(self._selected)

    @property
    def bank(self) -> BankAccessor:
        """The track's test bank: `generate()`, `check()`, `edit_item()` ..."""
        from trecexam.extensions.banks.accessor import BankAccessor

        return BankAccessor(self._selected)

    @property
    def erag(self) -> EragAccessor:
        """Scores of runs by a RAG system's answers from each document: `score()`."""
        from trecexam.extensions.erag.accessor import EragAccessor

        return EragAccessor(self._selected)

    @property
    def exam(self) -> ExamAccessor:
        """The track's bank as an exam of its runs, and exams on its passages: `fit()` ..."""
        from trecexam.extensions.exams.accessor import ExamAccessor

        return ExamAccessor(self._selected)

    @property
    def judging(self) -> JudgingAccessor:
        """A campaign of assessors: `plan()`, `agreement()`, `export()` ..."""
        from trecexam.extensions.campaign.accessor import JudgingAccessor

        return JudgingAccessor(self._selected)

    @property
    def learn(self) -> LearnAccessor:
        """Labels for unjudged passages, learned from the track's judgments: `labels()`."""
        from trecexam.extensions.learn.accessor import LearnAccessor

        return LearnAccessor(self._selected)

    @property
    def ragval(self) -> RagvalAccessor:
        """Answers judged for truthfulness and relevance: `report()` ..."""
        from trecexam.extensions.ragval.accessor import RagvalAccessor

        return RagvalAccessor(self._selected)

    def leaderboard(
        self,
        measures: Measures | None = None,
        *,
        official: bool = False,
        runs: Collection[str] | None = None,
        labels: Literal["learned"] | None = None,
    ) -> Leaderboard:
        """Return means and standard errors per run, best first.

        Means are over all queries of the bank (official: of the judgments), as trec_eval -c. Of several
        graders the columns stand side by side, each over its grader's queries.

        Args:
            measures: of several graders `NAME:MEASURE`.
            runs: show these runs; None for all.
            labels: "learned": expected nDCG@10 and AP, with labels of `track.learn` for missing judgments.
        """
        if labels is not None:
            from trecexam.extensions.learn.learned_board import learned_leaderboard

            if labels != "learned" or measures is not None or official:
                raise TrecexamError(
                    f"labels = {labels!r}: give 'learned', whose leaderboard has expected nDCG@10 and AP "
                    "alone: leave out the measures and `official`"
                )
            graded = self._selected.graded(documents=True, bank_needed=False)
            return self._selected.with_grader_note(learned_leaderboard(graded, runs), graded.name)
        if official:
            judged = self._selected.graded(
                lambda each: each.of_documents and has_bank(each), bank_needed=False
            )
            return leaderboard(judged, measures, official=True, runs=runs)
        return track_leaderboard(self._selected.loaded(), measures, runs=runs)

    def compare(
        self,
        measures: Measures | None = None,
        *,
        baseline: str | None = None,
        test: Test = "t",
        correction: Correction = "holm",
        alpha: float = 0.05,
        official: bool = False,
        permutations: int | None = None,
        seed: int = 0,
        pairs: bool = False,
    ) -> Differences:
        """Test which runs differ significantly, by a paired test over queries.

        All queries of the bank count (with `official`: of the judgments); a run without a query's answer has
        0 there. p values are corrected over the comparisons by one measure.

        Args:
            measures: the first tells all pairs apart unless `pairs` is set.
            baseline: the run to compare all others with; None compares all pairs, and forms groups.
            test: "t" (Student) or "randomisation" (Fisher); `trecexam.scores.paired_tests` has the sources.
            correction: "holm", "bonferroni", "fdr_bh", "fdr_by" or "none", as in pt.Experiment.
            alpha: a difference is significant where its corrected p value is lower.
            permutations: of the randomisation test; None for 10,000, or 50 a comparison if that is more.
            seed: of the randomisation test.
            pairs: put the table `differences` first, of all measures.
        """
        from trecexam.features.leaderboard.differences import differences, has_runs

        track = self._selected.of_measures(measures, official=official)
        graded = track.graded(lambda each: has_runs(each, baseline), bank_needed=not official)
        compared = differences(
            graded,
            measures,
            baseline=baseline,
            test=test,
            correction=correction,
            alpha=alpha,
            official=official,
            permutations=permutations,
            seed=seed,
            pairs=pairs,
        )
        if official:
            return track.with_grader_note(compared, graded.name)
        return track.with_grade_notes(compared, graded)

    def per_query(
        self,
        measures: Measures | None = None,
        *,
        official: bool = False,
        runs: Collection[str] | None = None,
        library: Library = "pandas",
    ) -> Any:
        """Return every run's value on every query and measure as a data frame: what the leaderboard averages.

        Args:
            runs: these runs; None for all.
            library: "pandas", "polars", or "pyarrow", which is always installed.

        Returns:
            The rows of `out/per_query.tsv` in full precision: `run`, `query_id`, `measure` (text) and `value`
            (float64), sorted by run and query.
        """
        from trecexam.features.exporting.exports import per_query

        track = self._selected.of_measures(measures, official=official)
        graded = track.graded(bank_needed=not official)
        return per_query(graded, measures, official=official, runs=runs, library=library)

    def qrels(
        self,
        *,
        label: LabelRule | None = None,
        min_rating: int | None = None,
        min_answers: int | None = None,
        binary: bool = False,
        by: Literal["query", "facet"] = "query",
        probabilities: bool = False,
    ) -> Iterator[RubricQrel]:
        """Return the labels as `ir_measures.Qrel`s, which carry the item ratings that Cover needs.

        Args:
            label, min_rating, min_answers: in place of the track's settings.
            binary: label a passage 1 where it reaches at least `min_answers` items, else 0.
            probabilities: add the probabilities of the ratings, which ECover needs; not by facet. Where the
                grader gives none, a rating is certain.
            by: "facet" for labels of each facet, from its own items, with query ids `query/facet`.

        Raises:
            ValueError: an unknown label rule or min_answers below 1, when the first row is requested.
        """
        from trecexam.features.exporting.exports import qrels

        return qrels(
            self._selected.graded(documents=True),
            label=label,
            min_rating=min_rating,
            min_answers=min_answers,
            binary=binary,
            by=by,
            probabilities=probabilities,
        )

    def grades(self) -> Iterator[dict[str, Any]]:
        """Yield every grade of the pool: ids, rating, status, raw answer, digests.

        Where a person rated the cell, `human_rating`, `who` and `why` are given next to the grader's rating.
        """
        return self._selected.graded().grade_rows()

    def agreement(
        self,
        min_ratings: Sequence[int] = (),
        min_answers: Sequence[int] = (),
        min_relevant: int | None = None,
    ) -> Agreements | Tables:
        """Compare labels with official judgments, or labels of citations with people's.

        Args:
            min_ratings: a passage reaches an item from this rating on, for each in turn.
            min_answers: a passage has to reach so many items, for each in turn.
            min_relevant: a passage is relevant from this official label on. All are in place of the track's.
        """
        from trecexam.features.agreement.citations import agreement

        graded = self._selected.graded(lambda each: each.of_documents)
        found = agreement(graded, min_ratings, min_answers, min_relevant)
        return self._selected.with_grade_notes(found, graded, human=False)

    def holes(
        self, depths: Sequence[int] | None = None, *, qrels: Path | None = None, by: By | None = None
    ) -> HolesReport:
        """Count the passages in the runs' first ranks that have no judgment, or no grade.

        Judgments are the official ones and those of the track's people that count. The track needs no bank.

        Args:
            depths: how many first ranks count; None for the track's depth, below which nothing is graded.
            qrels: official judgments in place of the track's.
            by: "query" or "run": the table that comes first; None for "query", on a terminal "run".
        """
        from trecexam.features.holes.holes import holes_report

        graded = self._selected.graded(has_bank, documents=True, bank_needed=False)
        return self._selected.with_grader_note(holes_report(graded, depths, qrels=qrels, by=by), graded.name)

    def plot(
        self,
        name: str = "",
        *,
        measure: MeasureLike | None = None,
        official_measure: MeasureLike | None = None,
        width: str | float | None = "single",
        height: str | float | None = None,
        font_size: float = 8.0,
    ) -> PaperFigure:
        """Draw a plot as a matplotlib Figure; its `savefig` writes what `trecexam plot` writes.

        `figure.plot.table`, `.title` and `.caption` are its numbers, title and caption.

        Args:
            name: one of `trecexam plot`: "leaderboard", "scatter", "thresholds", "items" ...
            measure, official_measure: of plots that have such.
            width, height: "3.3in", "8.4cm", "84mm", "241pt" (of TeX), "single" or "double" column (3.33 and 7
                inches), or inches. None for the width in the report, and a height that suits the plot.
            font_size: points, 3 to 40.
        """
        from trecexam.outputs.plotting import has_plot, is_joint, plot

        of_all = is_joint(name)
        track = self._selected if of_all else self._selected.of_measures(measure)
        graded = self._selected.loaded() if of_all else track.graded(lambda each: has_plot(each, name))
        note = None if isinstance(graded, LoadedTrack) else track.grader_note(graded.name)
        return plot(
            graded,
            name,
            measure=measure,
            official_measure=official_measure,
            width=width,
            height=height,
            font_size=font_size,
            notes=() if note is None else (note,),
        )

    def add_run(self, name: str, run: Any, *, replace: bool = False) -> Path:
        """Put a run into the drop folder as NAME.run, for the next update; return the file.

        Args:
            name: the run's name and tag.
            run: a file (a TREC run, or a system's responses), a data frame or an iterable of records with
                `query_id`, `doc_id` and `score` (`ir_measures.ScoredDoc`) or PyTerrier's `qid`, `docno`
                and `score`, a dict query_id -> doc_id -> score, or a `converters.Run`. Its order is
                trec_eval's, by score and then by doc_id.
            replace: replace another run of this name.
        """
        from trecexam.extensions.evaluate.content import run_file
        from trecexam.scaffold import add_runs

        return add_runs(self.folder, dict([run_file(name, run)]), replace=replace)[0]

    def compare_graders(
        self,
        graders: Sequence[str] = (),
        *,
        recorded: Sequence[str | Path] = (),
        measures: Measures | None = None,
        official_measures: Measures | None = None,
    ) -> Tables:
        """Compare graders with the official side by rank correlations and kappa, and any two by kappa.

        Reads grades from the store or from recordings, without people's ratings; grades nothing. Two graders
        are compared over labels of passages and over ratings of items that both have: graded where their
        scales are equally long, and binary at each min_rating.

        Args:
            graders: names of the track's graders. Empty: those of the same items and texts.
            recorded: recordings; each (model, prompt) in one is a grader.
            official_measures: as in `Track.correlate`.
        """
        from trecexam.extensions.compare_graders.compare import compare_graders

        return compare_graders(
            self._selected.of_measures(measures).loader(),
            graders,
            recorded=recorded,
            measures=measures,
            official_measures=official_measures,
        )

    def judge_next(
        self,
        measure: MeasureLike | None = None,
        *,
        query_ids: Collection[str] = (),
        top: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Tables:
        """List the unjudged passages whose judgment by a person would change the ranking most, best first.

        Without grades, passages are in the order of retrieval.

        Args:
            measure: ranks the runs; None for the track's first on labels of passages.
            query_ids: only these queries; none for all.
            top: at most so many suggestions; None for all.
            progress: called after each query with (queries done, queries).
        """
        from trecexam.extensions.campaign.judge_next.next_judgments import (
            could_change_a_ranking,
            next_judgments,
        )

        track = self._selected.of_measures(measure)
        graded = track.graded(could_change_a_ranking, bank_needed=False)
        result = next_judgments(graded, measure, query_ids=query_ids, top=top, progress=progress)
        return track.with_grader_note(result, graded.name)

    def simulate(
        self,
        official_measures: Measures | None = None,
        *,
        teams: Path | None = None,
        judgments: bool = False,
        repeats: int = 10,
        seed: int = 0,
        by: Sequence[str] = (),
        progress: Callable[[Progress], None] | None = None,
    ) -> Tables:
        """Leave out official judgments, fill them, and compare leaderboards with that on all judgments.

        By default the judgments that only one run contributed are left out, for each run in turn. The map
        from automatic to official labels is fitted in each step on the judgments that remain.

        Args:
            teams: a file of `run<TAB>team` lines: a team is left out as a whole.
            judgments: remove 10 to 90% of the judgments at random instead, `repeats` times.
            seed: of the random numbers.
            by: other methods for dropped judgments: "learned" (anew in each step), "label:N" (N for all),
                "label" (each label above 0 in turn), "condensed" (lists without dropped passages).
            progress: called while texts are encoded, then with the number of steps done.
        """
        from trecexam.extensions.simulation.simulating import simulate

        graded = self._selected.graded(documents=True)
        result = simulate(
            graded,
            official_measures,
            teams=teams,
            judgments=judgments,
            repeats=repeats,
            seed=seed,
            by=by,
            progress=progress,
        )
        return self._selected.with_grader_note(result, graded.name)
