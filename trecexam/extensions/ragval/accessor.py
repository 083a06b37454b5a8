"""`track.ragval`: questions from knowledge blocks, answers, and their judgments."""

from __future__ import annotations

from pathlib import Path

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.ragval.answering import Answers, answers_job
from trecexam.extensions.ragval.formats.knowledge import KINDS
from trecexam.extensions.ragval.judged import judged
from trecexam.extensions.ragval.questions import Questions, questions_job
from trecexam.extensions.ragval.reporting import RagvalReport
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import ShowProgress, Stop
from trecexam.track_groups import Group


class RagvalAccessor(Group):
    """Accessor for questions, answers and judgments of truthfulness and relevance."""

    def write_questions(
        self,
        blocks: Path | str | None = None,
        *,
        per_block: int = 1,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
    ) -> Questions:
        """Write questions about knowledge blocks with a language model, like `ragval questions`.

        Args:
            blocks: JSON Lines; None for blocks.jsonl of the track.
            per_block: questions per block, with consecutive seeds from that of [generator], or 0.
            progress: called with how many of how many prompts are answered.
            stop: called again and again; True ends asking early, with what there is.
        """
        with self._track.model_lock():
            return questions_job(self._track.folder, blocks, per_block=per_block).ask(
                progress, stop, self._track.loaders.spent_by_graders
            )

    def estimate_questions(self, blocks: Path | str | None = None, *, per_block: int = 1) -> Estimate:
        """Estimate the prompts ("cells"), tokens and cost of `write_questions`, by its arguments; calls no
        model.

        Args:
        """
        return questions_job(self._track.folder, blocks, per_block=per_block).estimate()

    def answer(self, *, progress: ShowProgress | None = None, stop: Stop | None = None) -> Answers:
        """Answer the bank's questions with a language model, as bounds, like `ragval answers`.

        Args:
            progress: called with how many of how many prompts are answered.
            stop: called again and again; True ends asking early, with what there is.

        Raises:
            ConversionError: the bank cannot be read.
            TrecexamError: the bank has no questions with blocks, or a file of another origin would be
                replaced.
        """
        with self._track.model_lock():
            return answers_job(self._track.folder).ask(progress, stop, self._track.loaders.spent_by_graders)

    def estimate_answers(self) -> Estimate:
        """Estimate prompts ("cells"), tokens and cost of `answer`."""
        return answers_job(self._track.folder).estimate()

    def report(self) -> RagvalReport:
        """Return the report on systems by their judged answers; calls no model.

        Raises:
            TrecexamError, ConversionError: no answer is judged, or the track cannot be read.
        """
        root, track = self._track.folder.root, self._track.graded()
        if not track.grader.item_kinds >= frozenset(KINDS):
            raise TrecexamError(
                'the track has no grader that judges answers: set `name = "ragval"` in [grader]', path=root
            )
        report = judged(track)
        if report is None:
            raise TrecexamError(
                f"no answer is judged yet: run `trecexam watch {quoted(root)} --once`", path=root
            )
        return self._track.with_grader_note(report, track.name)
