"""What a track's RAGVAL calls do: have a model write questions, and answers to them; what judging takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trecexam.extensions.ragval import answering, judging, questions
from trecexam.extensions.ragval.answering import Answers, Bound
from trecexam.extensions.ragval.knowledge.prompts import load_prompt, named
from trecexam.extensions.ragval.questions import Questions
from trecexam.graders.base import Estimate
from trecexam.graders.writing import keeping_writers
from trecexam.graders.writing.asking import Job
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder


def questions_job(
    folder: TrackFolder,
    blocks: Path | str | None = None,
    *,
    output: Path | str | None = None,
    prompt: Path | str | None = None,
    per_block: int = 1,
    seed: int | None = None,
    limit: int | None = None,
) -> Job[Questions]:
    """Has a language model write questions about knowledge blocks: what `ragval questions` does.

    Args:
        blocks: JSON Lines; None for blocks.jsonl of the track.
        output: a file of the track's bank; None for bank.questions.jsonl.
        prompt: a file of your own; None for the published prompt.
        per_block: questions about each block, with seeds that count up.
        seed: of the first; None for that of [generator], or 0.
        limit: of the first blocks alone.

    Raises:
        TrecexamError, ConversionError: what stands in the way.
    """
    writers = questions.question_writers(folder.config, folder.root, per_block, seed)
    plan = questions.plan_questions(
        folder,
        None if blocks is None else Path(blocks),
        named("question") if prompt is None else load_prompt(Path(prompt)),
        [writer.seed for writer in writers],
        output=None if output is None else Path(output),
        limit=limit,
    )
    return Job(questions.write_questions(plan, keeping_writers(folder, *writers)))


def answers_job(folder: TrackFolder, bounds: Sequence[Bound] = ("closed-book", "oracle")) -> Job[Answers]:
    """Has a language model answer the bank's questions, as bounds: what `ragval answers` does.

    Args:
        bounds: "closed-book", from the question alone; "oracle", with its block.

    Raises:
        TrecexamError, ConversionError: what stands in the way.
    """
    return Job(answering.answer(answering.plan_answers(folder, bounds), *keeping_writers(folder)))


def estimate_judging(
    folder: TrackFolder, *, model: dict[str, str] | None = None, timed: bool = False
) -> Estimate:
    """What `judge_answers` would take, in answers ("cells"), tokens and money; asks nobody.

    Args:
        timed: also how long, where the judge is a model in this process: a few answers are judged, and that
            is not kept.
    """
    with TrackLoader(judging.judging_folder(folder, model)) as loader:
        return judging.answers_to_judge(loader, timed=timed)
