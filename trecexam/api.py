"""A track from Python: everything a command does is a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.features.leaderboard.readings import Difference, difference
from trecexam.files.track_lock import TrackLock, holder
from trecexam.graders.base import identity_digest
from trecexam.line.evaluation import leaderboard
from trecexam.line.grading import Progress
from trecexam.line.rejected import rejected_rows
from trecexam.line.sheets import Counts
from trecexam.outputs.update import update
from trecexam.outputs.updates import Update
from trecexam.track import TrackFolder
from trecexam.track_methods.banks import Banks
from trecexam.track_methods.checking import Checking
from trecexam.track_methods.comparing import Comparing
from trecexam.track_methods.downstream import Downstream
from trecexam.track_methods.exam_making import ExamMaking
from trecexam.track_methods.exams import Exams
from trecexam.track_methods.filling import Filling
from trecexam.track_methods.opened import names_of
from trecexam.track_methods.ragval import Ragval

if TYPE_CHECKING:
    from converters.pooled import PooledPassage
    from converters.records import Qrel
    from trecexam.graders import Grader
    from trecexam.graders.base import Estimate
    from trecexam.scores.labels import LabelRule, RubricQrel
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.track_methods.opened import MeasureLike


def open_track(root: Path | str, *, grader: Grader | None = None) -> Track:
    """The track in folder `root`.

    Args:
        grader: a grader of your own in place of the one that trecexam.toml names.

    Raises:
        TrecexamError: it is no track folder, or its trecexam.toml is wrong.
    """
    return Track(TrackFolder.open(root), grader)


class Track(Comparing, Filling, Checking, Banks, Exams, ExamMaking, Downstream, Ragval):
    """One track folder. What is read and computed is kept, so asking twice is cheap.

    The methods that read (`leaderboard`, `qrels` ...) use the grades that are in the store and never
    run a grader; `update` does.
    """

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
            return update(self._loader, progress, stop)

    def forget_errors(self) -> int:
        """Drops the stored answers with the status "error", so that the next update asks again; how many.

        Raises:
            LockedError: a daemon is running on this track.
        """
        from trecexam.outputs.outputs import Outputs

        with TrackLock(self.folder.lock_path):
            Outputs(self.folder).forget()
            self._loader.open_to_write()
            return self._loader.forget_errors()

    def estimate(self) -> Estimate:
        """What `update` would have to grade, in tokens and money where these are counted; asks nobody."""
        return self._loader.grading.estimate(self._loaded())

    def leaderboard(
        self, measures: Sequence[MeasureLike] | None = None, *, official: bool = False
    ) -> Leaderboard:
        """Means and standard errors per run, best first; on the official judgments with `official`."""
        return leaderboard(self._loaded(), names_of(measures), official=official)

    def compare_readings(
        self, compat: str = "workbench", measures: Sequence[MeasureLike] | None = None
    ) -> Difference:
        """What changes where the stored answers are read another way; runs no model.

        Raises:
            TrecexamError: the grader's answers can be read in one way only.
        """
        return difference(self._loaded(), compat, names_of(measures))

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

        scores = self._loader.config.scores
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

        threshold = self._loader.config.scores.min_rating if min_rating is None else min_rating
        return (row for query in self._loaded().ratings() for row in subtopic_qrels(query, threshold))

    def grades(self) -> Iterator[dict[str, Any]]:
        """Every grade of the pool: ids, rating, status, raw answer, digests.

        Where a person rated the cell, `human_rating`, `who` and `why` stand beside the grader's rating.
        """
        return self._loaded().grade_rows()

    def pool(self) -> Iterator[PooledPassage]:
        """The pool as the Rubric workbench has it: texts, ranks in the runs, official judgments, grades."""
        from trecexam.features.exporting.pooled import pooled_passages

        return pooled_passages(self._loaded())

    def run_files(self) -> Mapping[str, Path]:
        """Display name of each run -> its file."""
        return self._loaded().run_files

    def said(self) -> dict[str, Any]:
        """How many cells and passages people rated in place of the grader, and who did."""
        return self._loaded().override_summary()

    def counts(self) -> Counts:
        """The cells of the pool by what became of them."""
        return self._loaded().counts

    def status(self) -> dict[str, Any]:
        """Counts of what the track holds and of its cells, the grader, and who grades it now."""
        track = self._loaded()
        pid = holder(self.folder.lock_path)
        return {
            "track": str(self.folder.root),
            "grader": track.grader.identity["grader"],
            "grader_identity": identity_digest(track.grader.identity).hex(),
            "watched_by": None if pid is None else f"process {pid}",
            "queries": len(track.bank.query_ids),
            "items": len(track.bank),
            "retired_items": track.bank.n_retired,
            "vital_items": track.bank.n_vital,
            "runs": len(track.runs),
            **asdict(track.counts),
            **(self._loader.grading.usage() or {"total": {}})["total"],
            "stored_grades": self._loader.store.count(),
            "rated_by": ", ".join(track.override_summary()["who"]) or None,
            "official_judgments": 0 if track.official is None else len(track.official),
            "rejected": len(rejected_rows(track)),
        }
