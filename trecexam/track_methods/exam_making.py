"""Multiple-choice exams on the track's passages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.files.track_lock import TrackLock
from trecexam.track_methods.opened import Opened

if TYPE_CHECKING:
    from trecexam.features.exams.generating import ExamPlan, GeneratedExam
    from trecexam.graders.base import Estimate
    from trecexam.graders.writing import Writer
    from trecexam.graders.writing.kept_answers import KeptAnswers


class ExamMaking(Opened):
    """Multiple-choice exams on the track's passages."""

    def generate_exam(
        self,
        task_domain: str,
        *,
        passages: Path | str | None = None,
        output: Path | str | None = None,
        prompt: Path | str | None = None,
        shuffle_seed: int = 0,
        limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
        writer: Writer | None = None,
    ) -> GeneratedExam:
        """Has a language model write a question about each passage: what `exam generate` does.

        Args:
            task_domain: what the passages are of, as "the manuals of heat pumps".
            passages: JSONL with optional title and topic; None for the track's.
            output: the exam; None for exam.jsonl in the track's folder.
            prompt: a file of your own; None for the published prompt.
            shuffle_seed: of the order of the candidates.
            limit: of the first passages alone.
            progress: is told how many of how many prompts are answered.
            stop: asked again and again; True ends it early, with what there is.
            writer: in place of the one that trecexam.toml names.

        Raises:
            LockedError: another process is writing the track's bank or exam.
            TrecexamError, ConversionError: what stands in the way.
        """
        from trecexam.features.exams.generating import generate

        with TrackLock(self.folder.root / ".trecexam" / "generate.lock", "writing this track's bank or exam"):
            making = self._exam(task_domain, passages, output, prompt, shuffle_seed, limit, writer)
            return generate(*making, progress, stop)

    def estimate_exam(
        self,
        task_domain: str,
        *,
        passages: Path | str | None = None,
        output: Path | str | None = None,
        prompt: Path | str | None = None,
        limit: int | None = None,
        writer: Writer | None = None,
    ) -> Estimate:
        """What `generate_exam` would take, in prompts ("cells"), tokens and money; asks nobody."""
        from trecexam.features.exams.generating import exam_prompts
        from trecexam.graders.writing.asking import estimate

        return estimate([exam_prompts(*self._exam(task_domain, passages, output, prompt, 0, limit, writer))])

    def _exam(
        self,
        task_domain: str,
        passages: Path | str | None,
        output: Path | str | None,
        prompt: Path | str | None,
        shuffle_seed: int,
        limit: int | None,
        writer: Writer | None,
    ) -> tuple[ExamPlan, Writer, KeptAnswers]:
        from trecexam.features.exams.generating import plan_exam
        from trecexam.features.exams.questions.prompts import load_prompt, published
        from trecexam.graders.writing import create_writer
        from trecexam.graders.writing.kept_answers import KeptAnswers

        root = self.folder.root
        source = self.folder.passages() if passages is None else Path(passages)
        if source is None:
            raise TrecexamError("no passages: put passages.jsonl here, or give --passages FILE", path=root)
        todo = plan_exam(
            source,
            published() if prompt is None else load_prompt(Path(prompt)),
            task_domain,
            root / "exam.jsonl" if output is None else Path(output),
            shuffle_seed=shuffle_seed,
            min_question=self.folder.config.exam.min_question,
            limit=limit,
        )
        who = writer or create_writer(self.folder.config, root)
        return todo, who, KeptAnswers(root / ".trecexam" / "generated.jsonl", who.identity)
