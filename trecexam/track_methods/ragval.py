"""RAGVAL: questions from knowledge blocks, answers to them, and a judge of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trecexam.pipeline import Pipeline
from trecexam.stages.updates import Progress
from trecexam.track_methods.opened import Opened
from trecexam.watching.lock import TrackLock

if TYPE_CHECKING:
    from trecexam.graders.base import Estimate
    from trecexam.stages.ragval.judging import Judging


class Ragval(Opened):
    """RAGVAL: questions from knowledge blocks, answers to them, and a judge of these."""

    def judge_answers(
        self,
        *,
        model: dict[str, str] | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Judging:
        """Has the judge score the answers in the drop folder: what `ragval judge` does.

        On a track whose grader is `ragval` this is `update`; on any other it writes out/ragval/ alone.

        Args:
            model: settings of [grader] (`model`, `base_url`, `key_env`) in place of the track's.

        Raises:
            LockedError: a daemon is running on this track.
            TrecexamError, ConversionError: what stands in the way.
        """
        from trecexam.stages.ragval.judged import judged
        from trecexam.stages.ragval.judging import judge, judging_folder, result

        folder = judging_folder(self.folder, model)
        with TrackLock(self.folder.lock_path):
            if folder is self.folder:
                update = self._pipeline.update(progress, stop)
                if self._pipeline.snapshot is None:
                    self._pipeline.load()
                found = judged(self._pipeline)
                return result(
                    self._pipeline, found, update.graded // 2, complete=update.complete, why=update.why
                )
            # One process writes the store at a time.
            self._pipeline.close()
            with Pipeline(folder) as pipeline:
                return judge(pipeline, progress, stop)

    def estimate_judging(self, *, model: dict[str, str] | None = None) -> Estimate:
        """What `judge_answers` would take, in answers ("cells"), tokens and money; asks nobody."""
        from trecexam.stages.ragval.judging import estimate, judging_folder

        with Pipeline(judging_folder(self.folder, model)) as pipeline:
            return estimate(pipeline)
