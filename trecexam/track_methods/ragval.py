"""RAGVAL: questions from knowledge blocks, answers to them, and a judge of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.files.track_lock import TrackLock
from trecexam.line.grading import Progress
from trecexam.line.loader import TrackLoader
from trecexam.outputs.update import update
from trecexam.track_methods.opened import Opened

if TYPE_CHECKING:
    from trecexam.features.ragval.answering import AnswerPlan, Answers, Bound
    from trecexam.features.ragval.judging import Judging
    from trecexam.features.ragval.questions import QuestionPlan, Questions
    from trecexam.graders.base import Estimate
    from trecexam.graders.writing import Writer
    from trecexam.graders.writing.kept_answers import KeptAnswers


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
        from trecexam.features.ragval.judged import judged
        from trecexam.features.ragval.judging import judge, judging_folder, result

        folder = judging_folder(self.folder, model)
        with TrackLock(self.folder.lock_path):
            if folder is self.folder:
                done = update(self._loader, progress, stop)
                track = self._loader.load()
                used = self._loader.grading.usage()
                graded = done.graded // 2
                return result(track, judged(track), used, graded, complete=done.complete, why=done.why)
            # One process writes the store at a time.
            self._loader.close()
            with TrackLoader(folder) as loader:
                return judge(loader, progress, stop)

    def estimate_judging(self, *, model: dict[str, str] | None = None) -> Estimate:
        """What `judge_answers` would take, in answers ("cells"), tokens and money; asks nobody."""
        from trecexam.features.ragval.judging import estimate_judging, judging_folder

        with TrackLoader(judging_folder(self.folder, model)) as loader:
            return estimate_judging(loader)

    def write_questions(
        self,
        blocks: Path | str | None = None,
        *,
        output: Path | str | None = None,
        prompt: Path | str | None = None,
        per_block: int = 1,
        seed: int | None = None,
        limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Questions:
        """Has a language model write questions about knowledge blocks: what `ragval questions` does.

        Args:
            blocks: JSON Lines; None for blocks.jsonl of the track.
            output: a file of the track's bank; None for bank.questions.jsonl.
            prompt: a file of your own; None for the published prompt.
            per_block: questions about each block, with seeds that count up.
            seed: of the first; None for that of [generator], or 0.
            limit: of the first blocks alone.
            progress: is told how many of how many prompts are answered.
            stop: asked again and again; True ends it early, with what there is.

        Raises:
            LockedError: another process is writing the track's bank.
            TrecexamError, ConversionError: what stands in the way.
        """
        from trecexam.features.ragval.questions import write_questions

        with self._generating("bank"):
            made = self._questions(blocks, output, prompt, per_block, seed, limit)
            return write_questions(*made, progress, stop)

    def estimate_questions(
        self,
        blocks: Path | str | None = None,
        *,
        output: Path | str | None = None,
        prompt: Path | str | None = None,
        per_block: int = 1,
        seed: int | None = None,
        limit: int | None = None,
    ) -> Estimate:
        """What `write_questions` would take, in prompts ("cells"), tokens and money; asks nobody."""
        from trecexam.features.ragval.questions import question_prompts
        from trecexam.graders.writing.asking import estimate

        return estimate(question_prompts(*self._questions(blocks, output, prompt, per_block, seed, limit)))

    def answer_questions(
        self,
        bounds: Sequence[Bound] = ("closed-book", "oracle"),
        *,
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Answers:
        """Has a language model answer the bank's questions, as bounds: what `ragval answers` does.

        Args:
            bounds: "closed-book", from the question alone; "oracle", with its block.

        Raises:
            LockedError: another process is writing answers or the track's bank.
            TrecexamError, ConversionError: what stands in the way.
        """
        from trecexam.features.ragval.answering import answer

        with self._generating("answers"):
            return answer(*self._answering(bounds), progress, stop)

    def estimate_answers(self, bounds: Sequence[Bound] = ("closed-book", "oracle")) -> Estimate:
        """What `answer_questions` would take, in prompts ("cells"), tokens and money; asks nobody."""
        from trecexam.features.ragval.answering import bound_prompts
        from trecexam.graders.writing.asking import estimate

        return estimate([bound_prompts(*self._answering(bounds))])

    def _generating(self, what: str) -> TrackLock:
        return TrackLock(self.folder.state / "generate.lock", f"writing this track's {what}")

    def _kept(self, writer: Writer) -> KeptAnswers:
        from trecexam.graders.writing.kept_answers import KeptAnswers

        return KeptAnswers(self.folder.state / "generated.jsonl", writer.identity)

    def _questions(
        self,
        blocks: Path | str | None,
        output: Path | str | None,
        prompt: Path | str | None,
        per_block: int,
        seed: int | None,
        limit: int | None,
    ) -> tuple[QuestionPlan, list[Writer], list[KeptAnswers]]:
        from trecexam.features.ragval.knowledge.prompts import load_prompt, named
        from trecexam.features.ragval.questions import plan_questions, question_writers

        writers = question_writers(self.folder.config, self.folder.root, per_block, seed)
        todo = plan_questions(
            self.folder,
            None if blocks is None else Path(blocks),
            named("question") if prompt is None else load_prompt(Path(prompt)),
            [writer.seed for writer in writers],
            output=None if output is None else Path(output),
            limit=limit,
        )
        return todo, writers, [self._kept(writer) for writer in writers]

    def _answering(self, bounds: Sequence[Bound]) -> tuple[AnswerPlan, Writer, KeptAnswers]:
        from trecexam.features.ragval.answering import plan_answers
        from trecexam.graders.writing import create_writer

        writer = create_writer(self.folder.config, self.folder.root)
        return plan_answers(self.folder, bounds), writer, self._kept(writer)
