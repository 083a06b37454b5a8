"""A track from Python: everything a command does is a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.calls import named_as_called, on_folder, on_graded, on_loaded, on_loader, on_track
from trecexam.chosen import chosen_grader, took
from trecexam.errors import TrecexamError
from trecexam.extension import accessors, named, no_such
from trecexam.features.adding.runs import add_run
from trecexam.features.agreement.agreement import agreements
from trecexam.features.compare_graders.compare import compare_grader_pairs, compare_graders
from trecexam.features.correlation.comparison import compare as correlate
from trecexam.features.correlation.comparison import outlying, swapped
from trecexam.features.correlation.joint import compare_all
from trecexam.features.correlation.representative import representative
from trecexam.features.exporting import exports, frames, ranx
from trecexam.features.exporting.facets import without_facet
from trecexam.features.exporting.pooled import pooled_passages
from trecexam.features.fill import fill as filling
from trecexam.features.fill.simulation import simulate_removal, simulate_runs
from trecexam.features.history.history import history, history_entry
from trecexam.features.holes.holes import holes_report
from trecexam.features.judge_next.cited import next_cited
from trecexam.features.judge_next.judge_next import next_judgments
from trecexam.features.leaderboard.differences import differences
from trecexam.features.leaderboard.joint import joint_leaderboard
from trecexam.features.leaderboard.overall import overall_leaderboard
from trecexam.features.leaderboard.readings import difference
from trecexam.features.override import overriding
from trecexam.features.support.support import support
from trecexam.features.verification import reproducing, verification
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.line.evaluation import leaderboard
from trecexam.line.grading import Graded, Progress
from trecexam.line.grading_time import measure_time
from trecexam.line.judged_pool import count_judged_outside
from trecexam.line.kind import Kind
from trecexam.line.loaded_track import TrackLoaders, of_each
from trecexam.line.loader import TrackLoader
from trecexam.line.lost_grades import lost_grades, refuse_lost_grades
from trecexam.line.missing_banks import estimate_missing_banks
from trecexam.line.rejected import all_rejected, all_rejected_of
from trecexam.line.sheets import Counts
from trecexam.line.status import joint_status, status_of
from trecexam.outputs.outputs import Outputs
from trecexam.outputs.plotting import plot
from trecexam.outputs.update_all import grade_all, update_all
from trecexam.outputs.updates import Update
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.files.stamps import Rejected
    from trecexam.graders import Grader
    from trecexam.graders.sampling import MeasuredTime


def open_track(
    root: Path | str,
    *,
    grader: Grader | None = None,
    graders: Mapping[str, Grader] | None = None,
    trust_code: bool = False,
) -> Track:
    """The track in folder `root`.

    Args:
        grader: a grader of your own in place of the one that trecexam.toml names.
        graders: of a track that has several, graders of your own in place of those of these names.
        trust_code: run code that trecexam.toml names (`metric = "module:function"`): read it first.

    Raises:
        TrecexamError: it is no track folder, or its trecexam.toml is wrong.
    """
    folder = TrackFolder.open(root, trust_code=trust_code)
    return Track(TrackLoaders(folder, grader, graders=graders), chosen_grader.get())


@named_as_called
class Track:
    """One track folder. What is read and computed is kept, so asking twice is cheap.

    The methods that read (`leaderboard`, `qrels` ...) use the grades that are in the store and never
    run a grader; `update` does. Of a track with several graders, `track["NAME"]` is what one of them says.
    """

    def __init__(self, loaders: TrackLoaders, grader: str | None = None) -> None:
        """Args: grader: the name of the one that is meant; None for the track as a whole."""
        self._loaders = loaders
        self._grader = grader
        # Settings that do not go together are said here, and not by the first call.
        self.folder = (loaders.first if grader is None else loaders[grader]).folder

    def __getitem__(self, grader: str) -> Track:
        """The same track as one of its graders sees it.

        Raises:
            TrackError: there is no grader of this name.
        """
        return Track(self._loaders, grader)

    @property
    def kind(self) -> Kind:
        """What its grader grades."""
        return self._loader.kind

    @property
    def _loader(self) -> TrackLoader:
        """That of the grader that is meant, else of the first."""
        if self._grader is not None:
            return self._loaders[self._grader]
        loader = self._loaders.first
        took(loader.name, self.graders)
        return loader

    @property
    def _of_documents(self) -> TrackLoader:
        """That of the grader that is meant, else of the first whose labels are of documents."""
        if self._grader is not None or len(self._loaders) == 1:
            loader = self._loader
            if not loader.kind.ranks:
                others = [name for name in self.graders if self._loaders[name].kind.ranks]
                raise TrecexamError(
                    f"the grader {loader.name} labels no documents that runs rank"
                    + (f": take --grader {', '.join(others)}" if others else ""),
                    path=self.folder.config_path,
                )
            return loader
        loader = self._loaders[self._loaders.load().of_documents.name]
        took(loader.name, self.graders)
        return loader

    @property
    def _is_joint(self) -> bool:
        """Whether several graders are meant."""
        return self._grader is None and len(self._loaders) > 1

    @property
    def graders(self) -> tuple[str, ...]:
        """The names of those who grade it, in the order of trecexam.toml."""
        return tuple(self._loaders)

    def __enter__(self) -> Track:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; also done at the end of a `with` block."""
        self._loaders.close()

    def __getattr__(self, name: str) -> Any:
        """What an extension adds by this name: `track.exam`, `track.bank`.

        Raises:
            AttributeError: none does; it names the nearest name that there is.
        """
        at = None if name.startswith("_") else accessors().get(name)
        if at is None:
            raise AttributeError(no_such(name, dir(self)))
        made = self.__dict__[name] = named(at)(self)
        return made

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *accessors()})

    # Runs, grading, and what there is.

    add_run = on_folder(add_run)

    def update(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        encoding: Callable[[int, int], None] | None = None,
        doing: Callable[[str], None] = lambda stage: None,
        regrade: bool = False,
    ) -> Update:
        """Grades what has no grade yet and writes `out/`: what `trecexam watch --once` does.

        Args:
            progress: called after each graded batch.
            encoding: called with how many passages are encoded, and of how many, where `order` in [cells]
                asks for the most promising items first.
            doing: called with what is done next: reading, grading, each output.
            regrade: where the store is gone, cells that were graded once may be graded again by a grader that
                costs.

        Raises:
            LockedError: a daemon is running on this track.
            StoreError: the store is gone or an older one, and what it had would be paid for again.
            TrecexamError, ConversionError: what stands in the way.
        """
        with TrackLock(self.folder.lock_path):
            return update_all(
                self._loaders,
                progress,
                stop,
                only=self._grader,
                encoding=encoding,
                doing=doing,
                regrade=regrade,
            )

    def grade(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Graded:
        """Grades what has no grade yet, as `update` does, and writes nothing to `out/`.

        Raises:
            LockedError: a daemon is running on this track.
            TrecexamError, ConversionError: what stands in the way.
        """
        with TrackLock(self.folder.lock_path):
            if self._is_joint:
                return grade_all(self._loaders, progress, stop)
            refuse_lost_grades(self._loader)
            self._loader.open_to_write()
            return self._loader.grade(self._loader.load(), progress, stop)[1]

    def lost_grades(self) -> int:
        """How many cells a grader that costs had graded, where the store has no grade any more; else 0."""
        if self._is_joint:
            return sum(of_each(self._loaders, lost_grades))
        return lost_grades(self._loader)

    def forget_errors(self) -> int:
        """Drops the stored answers with the status "error", so that the next update asks again; how many.

        Raises:
            LockedError: a daemon is running on this track.
        """
        with TrackLock(self.folder.lock_path):
            loaders = [self._loader] if not self._is_joint else list(self._loaders.values())
            for loader in loaders:
                Outputs(loader.folder).forget()
                loader.open_to_write()
            return sum(loader.forget_errors() for loader in loaders)

    def estimate(self) -> Estimate:
        """What `update` would have to grade: cells and, where a server is asked, calls, tokens and money.
        Asks nobody. Of several graders it is the sum of those that can go on.

        Raises:
            TrecexamError, ConversionError: none can.
        """
        if not self._is_joint:
            return self._loader.estimate(self._loader.load())
        return reduce(Estimate.plus, of_each(self._loaders, lambda each: each.estimate(each.load())))

    def estimate_banks(self) -> dict[str, Estimate]:
        """What `update` would take to write the test banks that are missing, by grader; asks nobody.

        Raises:
            TrecexamError, ConversionError: what stands in the way.
        """
        return estimate_missing_banks(self._loaders, self.graders if self._is_joint else [self._loader.name])

    def estimate_time(self) -> MeasuredTime | None:
        """How long `update` would grade on this machine, by a small sample that is graded and not stored.

        None where nothing is to be graded, and of graders that count tokens, are users' own or run on a
        cluster: none of these is asked.

        Raises:
            TrecexamError, ConversionError: the track cannot be read, or the grader cannot run here.
        """
        return measure_time(self._loader)

    def run_files(self) -> Mapping[str, Path]:
        """Display name of each run -> its file."""
        return self._loader.load().run_files

    def override_summary(self) -> dict[str, Any]:
        """How many cells and passages people rated in place of the grader, and who did."""
        return self._loader.load().override_summary()

    def counts(self) -> Counts:
        """The cells of the pool by what became of them."""
        return self._loader.load().counts

    def thresholds(self) -> tuple[int, ...]:
        """Every min_rating that the grader's scale has."""
        return tuple(range(1, self._loader.traits.scale.max_rating + 1))

    def status(self) -> dict[str, Any]:
        """Counts of what the track holds and of its cells, the grader, and who grades it now.

        Of several graders: `graders` has this of each, or why there is none of it ("unable"), and `total`
        sums up their cells, and what they used.
        """
        if self._is_joint:
            return joint_status(self._loaders)
        return status_of(self._loader)

    def rejected(self) -> tuple[Rejected, ...]:
        """What of the track's inputs was not taken, and what has no grade, with file, line and reason."""
        if self._is_joint:
            return all_rejected_of(self._loaders.load())
        return all_rejected(self._loader.load())

    judged_outside_pool = on_folder(count_judged_outside)

    # Scores and exports.

    leaderboard = on_track(joint_leaderboard, leaderboard)
    overall_leaderboard = on_graded(overall_leaderboard)
    compare = on_graded(differences)
    compare_readings = on_loaded(difference)
    qrels = on_loaded(exports.qrels)
    qrels_frame = on_loaded(frames.qrels_frame)
    per_query = on_loaded(frames.per_query)
    grades_frame = on_loaded(frames.grades_frame)
    ranx_qrels = on_loaded(ranx.ranx_qrels)
    ranx_runs = on_loaded(ranx.ranx_runs)
    runs = on_loaded(exports.runs)
    official_qrels = on_loaded(exports.official_qrels)
    items_without_facet = on_loaded(without_facet)
    subtopics = on_loaded(exports.subtopics)
    grades = on_loaded(exports.grades)
    pool = on_loaded(pooled_passages)
    plot = on_loaded(plot)

    # How far the grades agree with the official side.

    correlate = on_track(compare_all, correlate)
    swaps = on_graded(swapped)
    outliers = on_graded(outlying)
    representative = on_graded(representative)
    agreement = on_graded(agreements, human=False)
    compare_graders = on_loader(compare_graders)
    compare_grader_pairs = on_loader(compare_grader_pairs)

    # Judgment holes: where they are, filling them, and what that is worth.

    holes = on_loaded(holes_report)
    find_holes = on_loader(filling.find_holes)
    fill = on_loader(filling.fill)
    simulate_runs = on_loaded(simulate_runs)
    simulate_removal = on_loaded(simulate_removal)

    # What the grader did, what people say to it, and what changed.

    verify_grading = on_loaded(verification.grading)
    verify_grid = on_loaded(verification.grids)
    verify_missing = on_loaded(verification.missing)
    verify_spurious = on_loaded(verification.spurious)
    verify_reproducible = on_loader(reproducing.verify_reproducible)
    estimate_reproducible = on_loader(reproducing.estimate_reproducible)
    judgments_unused = on_loaded(verification.judgments_unused)
    judge_next = on_loaded(next_judgments)
    judge_next_cited = on_loaded(next_cited)
    override = on_loaded(overriding.override)
    human_ratings = on_loaded(overriding.human_table)
    human_refused = on_loaded(overriding.refused_overrides)
    history = on_folder(history)
    history_entry = on_folder(history_entry)

    # Whether what responses cite supports what they say.

    support = on_loaded(support)
