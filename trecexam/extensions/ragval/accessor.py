"""`track.ragval`: questions from knowledge blocks, answers to them, and a judge of these."""

from __future__ import annotations

from collections.abc import Callable

from trecexam.calls import Accessor, asking, estimating, named_as_called, on_folder
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval import calls, judging
from trecexam.extensions.ragval.filtering import knowing_job
from trecexam.extensions.ragval.judged import judged
from trecexam.extensions.ragval.reporting import RagvalReport, report_of
from trecexam.files.track_lock import TrackLock
from trecexam.line.grading import Progress
from trecexam.line.loader import TrackLoader
from trecexam.outputs.update import update


@named_as_called
class RagvalAccessor(Accessor):
    """Answers judged for truthfulness and relevance."""

    write_questions = asking(calls.questions_job)
    estimate_questions = estimating(calls.questions_job)
    answer = asking(calls.answers_job)
    estimate_answers = estimating(calls.answers_job)
    without_known = asking(knowing_job)
    estimate_known = estimating(knowing_job)
    estimate_judging = on_folder(calls.estimate_judging)

    def report(self) -> RagvalReport:
        """Systems by their answers, as far as these are judged; asks nobody.

        Raises:
            TrecexamError, ConversionError: no answer is judged, or the track cannot be read.
        """
        folder = judging.judging_folder(self.folder)
        if folder is self.folder:
            rows = judged(self._loader.load()).rows
        else:
            with TrackLoader(folder) as loader:
                rows = judged(loader.load()).rows
        if not rows:
            why = f"no answer is judged: `trecexam ragval judge {self.folder.root}` has that done"
            raise TrecexamError(why, path=self.folder.root)
        return report_of(rows)

    def judge(
        self,
        *,
        model: dict[str, str] | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> judging.Judging:
        """Has the judge score the answers in the drop folder: what `ragval judge` does.

        On a track whose grader is `ragval` this is `update`; on any other it writes out/ragval/ alone.

        Args:
            model: settings of [grader] (`model`, `base_url`, `key_env`) in place of the track's.

        Raises:
            LockedError: a daemon is running on this track.
            TrecexamError, ConversionError: what stands in the way.
        """
        folder = judging.judging_folder(self.folder, model)
        with TrackLock(self.folder.lock_path):
            if folder is self.folder:
                done = update(self._loader, progress, stop)
                return judging.updated(self._loader, done.graded, complete=done.complete, why=done.why)
            # One process writes the store at a time.
            self._loaders.close()
            # A model of its own has a purse of its own.
            with TrackLoader(folder, purse="ragval" if model else None) as loader:
                return judging.judge(loader, progress, stop)
