"""What a track's RAGVAL calls do: have a model write questions, and answers to them; what judging takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trecexam.extensions.ragval import answering, judging, questions
from trecexam.extensions.ragval.answering import AnswerPlan, Answers, Bound
from trecexam.extensions.ragval.knowledge.prompts import load_prompt, named
from trecexam.extensions.ragval.questions import QuestionPlan, Questions
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.graders.writing import Writer, create_writer
from trecexam.graders.writing.asking import estimate
from trecexam.graders.writing.kept_answers import KeptAnswers
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder


def write_questions(
    folder: TrackFolder,
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
    with _generating(folder, "bank"):
        making = _questions(folder, blocks, output, prompt, per_block, seed, limit)
        return questions.write_questions(*making, progress, stop)


def estimate_questions(
    folder: TrackFolder,
    blocks: Path | str | None = None,
    *,
    output: Path | str | None = None,
    prompt: Path | str | None = None,
    per_block: int = 1,
    seed: int | None = None,
    limit: int | None = None,
    timed: bool = False,
) -> Estimate:
    """What `write_questions` would take, in prompts ("cells"), tokens and money; asks nobody.

    Args:
        timed: also how long, where a model in this process writes: a few prompts are tried, and not kept.
    """
    making = _questions(folder, blocks, output, prompt, per_block, seed, limit)
    return estimate(questions.question_prompts(*making), timed=timed)


def answer_questions(
    folder: TrackFolder,
    bounds: Sequence[Bound] = ("closed-book", "oracle"),
    *,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Answers:
    """Has a language model answer the bank's questions, as bounds: what `ragval answers` does.

    Args:
        bounds: "closed-book", from the question alone; "oracle", with its block.
        progress: is told how many of how many prompts are answered.
        stop: asked again and again; True ends it early, with what there is.

    Raises:
        LockedError: another process is writing answers or the track's bank.
        TrecexamError, ConversionError: what stands in the way.
    """
    with _generating(folder, "answers"):
        return answering.answer(*_answers(folder, bounds), progress, stop)


def estimate_answers(
    folder: TrackFolder, bounds: Sequence[Bound] = ("closed-book", "oracle"), *, timed: bool = False
) -> Estimate:
    """What `answer_questions` would take, as `estimate_questions`."""
    return estimate([answering.bound_prompts(*_answers(folder, bounds))], timed=timed)


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


def _generating(folder: TrackFolder, what: str) -> TrackLock:
    return TrackLock(folder.shared_state / "generate.lock", f"writing this track's {what}")


def _kept(folder: TrackFolder, writer: Writer) -> KeptAnswers:
    return KeptAnswers(folder.shared_state / "generated.jsonl", writer.identity)


def _questions(
    folder: TrackFolder,
    blocks: Path | str | None,
    output: Path | str | None,
    prompt: Path | str | None,
    per_block: int,
    seed: int | None,
    limit: int | None,
) -> tuple[QuestionPlan, list[Writer], list[KeptAnswers]]:
    writers = questions.question_writers(folder.config, folder.root, per_block, seed)
    todo = questions.plan_questions(
        folder,
        None if blocks is None else Path(blocks),
        named("question") if prompt is None else load_prompt(Path(prompt)),
        [writer.seed for writer in writers],
        output=None if output is None else Path(output),
        limit=limit,
    )
    return todo, writers, [_kept(folder, writer) for writer in writers]


def _answers(folder: TrackFolder, bounds: Sequence[Bound]) -> tuple[AnswerPlan, Writer, KeptAnswers]:
    writer = create_writer(folder.config, folder.root)
    return answering.plan_answers(folder, bounds), writer, _kept(folder, writer)
