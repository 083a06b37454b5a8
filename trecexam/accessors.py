"""What a track has by one name where several calls belong together: `track.verify.grid()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.calls import (
    Accessor,
    Group,
    named_as_called,
    on_folder,
    on_graded,
    on_loaded,
    on_loader,
    on_track,
)
from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.joint import compare_all
from trecexam.features.exporting import exports
from trecexam.features.exporting.exports import without_facet
from trecexam.features.exporting.pool import pooled_passages
from trecexam.features.fill import fill as filling
from trecexam.features.override import overriding
from trecexam.features.verification import verification
from trecexam.files.track_lock import TrackLock
from trecexam.line.grading import Graded, Progress
from trecexam.line.grading_time import measure_time
from trecexam.line.judged_pool import count_judged_outside
from trecexam.line.kind import Kind
from trecexam.line.loaded_track import of_each
from trecexam.line.lost_grades import lost_grades, refuse_lost_grades
from trecexam.line.missing_banks import estimate_missing_banks
from trecexam.line.rejected import all_rejected, all_rejected_of
from trecexam.line.sheets import Counts
from trecexam.outputs.outputs import Outputs
from trecexam.outputs.update_all import grade_all

if TYPE_CHECKING:
    from trecexam.files.stamps import Rejected
    from trecexam.graders.base import Estimate
    from trecexam.graders.sampling import MeasuredTime


@named_as_called
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
        with TrackLock(self.folder.lock_path):
            if self._is_joint:
                return grade_all(self._loaders, progress, stop)
            refuse_lost_grades(self._loader)
            self._loader.open_to_write()
            return self._loader.grade(self._loader.load(), progress, stop)[1]

    def lost(self) -> int:
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

    def estimate_time(self) -> MeasuredTime | None:
        """How long `update` would grade on this machine, by a small sample that is graded and not stored.

        None where nothing is to be graded, and of graders that count tokens, are users' own or run on a
        cluster: none of these runs.

        Raises:
            TrecexamError, ConversionError: the track cannot be read, or the grader cannot run here.
        """
        return measure_time(self._loader)

    def estimate_banks(self) -> dict[str, Estimate]:
        """What `update` would take to write the test banks that are missing, by grader; asks nobody.

        Raises:
            TrecexamError, ConversionError: with the reason.
        """
        return estimate_missing_banks(
            self._loaders, list(self._loaders) if self._is_joint else [self._loader.name]
        )

    @property
    def kind(self) -> Kind:
        """What the grader grades."""
        return self._loader.kind

    def counts(self) -> Counts:
        """The cells of the pool by what became of them."""
        return self._loader.load().counts

    def thresholds(self) -> tuple[int, ...]:
        """Every min_rating that the grader's scale has."""
        return tuple(range(1, self._loader.grader.scale.max_rating + 1))


@named_as_called
class Files(Accessor):
    """What was read."""

    judged_outside_pool = on_folder(count_judged_outside)

    def rejected(self) -> tuple[Rejected, ...]:
        """What of the track's inputs was rejected, and what has no grade, with file, line and reason."""
        if self._is_joint:
            return all_rejected_of(self._loaders.load())
        return all_rejected(self._loader.load())

    def runs(self) -> Mapping[str, Path]:
        """Display name of each run -> its file."""
        return self._loader.load().run_files


@named_as_called
class Correlate(Group):
    """How far the grades agree with the official side: `track.correlate()`."""

    __call__ = on_track(compare_all, compare)


@named_as_called
class Fill(Accessor):
    """Fills judgment holes: `track.fill(track.fill.find())`."""

    find = on_loader(filling.find_holes)
    __call__ = on_loader(filling.fill)


@named_as_called
class Verify(Group):
    """What the scores are made of: what the grader did, and where the bank lacks items."""

    grading = on_graded(verification.grading)
    grid = on_graded(verification.grid)
    missing = on_graded(verification.missing)
    spurious = on_graded(verification.spurious)


@named_as_called
class Override(Accessor):
    """A person's rating in place of the grader's: `track.override(...)`; and the ratings that there are."""

    __call__ = on_loaded(overriding.override)
    ratings = on_loaded(overriding.human_ratings, overriding.all_human_ratings)

    def summary(self) -> dict[str, Any]:
        """How many cells and passages people rated in place of the grader, and who did."""
        return self._loader.load().override_summary()


@named_as_called
class Export(Group):
    """What other tools take."""

    qrels = on_loaded(exports.write_qrels)
    runs = on_loaded(exports.runs)
    responses = on_loaded(exports.responses)
    official_qrels = on_loaded(exports.official_qrels)
    subtopics = on_loaded(exports.subtopics)
    leaderboard_values = on_loaded(exports.leaderboard_values, exports.joint_leaderboard_values)
    items_without_facet = on_loaded(without_facet)
    pool = on_loaded(pooled_passages)
