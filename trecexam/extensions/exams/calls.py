"""What a track's exam calls do: exams on its passages that a model writes, and its bank as an exam."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.fitting import improved
from trecexam.extensions.exams.generating import ExamPlan, GeneratedExam, exam_prompts, generate, plan_exam
from trecexam.extensions.exams.questions.prompts import load_prompt, published
from trecexam.extensions.exams.refilling import (
    RefilledExam,
    RefillPlan,
    plan_refilling,
    refill,
    refilling_prompts,
)
from trecexam.extensions.exams.responses import LabelFiles, from_track
from trecexam.extensions.exams.rubric import default_settings, fit_track
from trecexam.extensions.exams.settings import ExamSection
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.graders.writing import Writer, create_writer
from trecexam.graders.writing.asking import estimate
from trecexam.graders.writing.kept_answers import KeptAnswers
from trecexam.line.assessment import Assessment
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.improvement import ImprovementStep
    from trecexam.extensions.exams.irt.settings import Settings
    from trecexam.extensions.exams.results import ExamFit, ImprovedExam


def generate_exam(
    folder: TrackFolder,
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
    with TrackLock(folder.shared_state / "generate.lock", "writing this track's bank or exam"):
        making = _making(folder, task_domain, passages, output, prompt, shuffle_seed, limit, writer)
        return generate(*making, progress, stop)


def estimate_exam(
    folder: TrackFolder,
    task_domain: str,
    *,
    passages: Path | str | None = None,
    output: Path | str | None = None,
    prompt: Path | str | None = None,
    limit: int | None = None,
    writer: Writer | None = None,
    timed: bool = False,
) -> Estimate:
    """What `generate_exam` would take, in prompts ("cells"), tokens and money; asks nobody.

    Args:
        timed: also how long, where a model in this process writes: a few prompts are tried, and not kept.
    """
    making = _making(folder, task_domain, passages, output, prompt, 0, limit, writer)
    return estimate([exam_prompts(*making)], timed=timed)


def refill_exam(
    folder: TrackFolder,
    task_domain: str,
    *,
    output: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    writer: Writer | None = None,
) -> RefilledExam:
    """Has wrong candidates that fail the filters written again: what `exam generate --again` does.

    Args:
        task_domain: what the passages are of.
        output: the exam; None for exam.jsonl in the track's folder.
        progress, stop, writer: as in `generate_exam`.

    Raises:
        LockedError: another process is writing the track's bank or exam.
        TrecexamError, ConversionError: there is no exam, somebody edited it, or the model cannot be asked.
    """
    with TrackLock(folder.shared_state / "generate.lock", "writing this track's bank or exam"):
        return refill(*_refilling(folder, task_domain, output, writer), progress, stop)


def estimate_refilling(
    folder: TrackFolder,
    task_domain: str,
    *,
    output: Path | str | None = None,
    writer: Writer | None = None,
    timed: bool = False,
) -> Estimate:
    """What `refill_exam` would take at first, as `estimate_exam`."""
    return estimate([refilling_prompts(*_refilling(folder, task_domain, output, writer))], timed=timed)


def _refilling(
    folder: TrackFolder, task_domain: str, output: Path | str | None, writer: Writer | None
) -> tuple[RefillPlan, Writer, KeptAnswers]:
    exam = folder.root / "exam.jsonl" if output is None else Path(output)
    todo = plan_refilling(exam, folder.config.section(ExamSection), folder.root, task_domain)
    writer = writer or create_writer(folder.config, folder.root)
    return todo, writer, KeptAnswers(folder.shared_state / "generated.jsonl", writer.identity)


def _making(
    folder: TrackFolder,
    task_domain: str,
    passages: Path | str | None,
    output: Path | str | None,
    prompt: Path | str | None,
    shuffle_seed: int,
    limit: int | None,
    writer: Writer | None,
) -> tuple[ExamPlan, Writer, KeptAnswers]:
    source = folder.passages() if passages is None else Path(passages)
    if source is None:
        raise TrecexamError("no passages: put passages.jsonl here, or give --passages FILE", path=folder.root)
    todo = plan_exam(
        source,
        published() if prompt is None else load_prompt(Path(prompt)),
        task_domain,
        folder.root / "exam.jsonl" if output is None else Path(output),
        shuffle_seed=shuffle_seed,
        min_question=folder.config.section(ExamSection).min_question,
        limit=limit,
    )
    writer = writer or create_writer(folder.config, folder.root)
    return todo, writer, KeptAnswers(folder.shared_state / "generated.jsonl", writer.identity)


def fit_exam(
    track: Assessment,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    groups: Path | None = None,
    min_rating: int | None = None,
    depth: int | None = None,
) -> ExamFit:
    """Fits an item response model: how able each run is, how hard and discriminating each item.

    A run has an item right where one of its first `depth` passages is rated min_rating or better on it.

    Args:
        settings: None for the 2PL with priors.
        components, groups: tables of what runs are made of, and which groups items are in.
        min_rating, depth: in place of the track's.

    Raises:
        TrecexamError, ConversionError: nothing is graded, or no model can be fitted.
    """
    return fit_track(track, settings, LabelFiles(components, groups), min_rating=min_rating, depth=depth)


def improve_exam(
    track: Assessment,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    groups: Path | None = None,
    steps: int = 5,
    drop: float = 0.1,
    min_items: int = 2,
    min_gain: float | None = None,
    min_rating: int | None = None,
    depth: int | None = None,
    progress: Callable[[ImprovementStep], None] | None = None,
) -> ImprovedExam:
    """Drops the items that tell runs apart least and fits again, step by step.

    Args:
        settings, components, groups, min_rating, depth: as in `fit_exam`.
        steps, drop, min_items, min_gain, progress: as in `trecexam.extensions.exams.irt.improve`.

    Raises:
        TrecexamError: as `fit_exam`.
    """
    return improved(
        from_track(track, LabelFiles(components, groups), min_rating=min_rating, depth=depth),
        settings or default_settings(),
        steps=steps,
        drop=drop,
        min_items=min_items,
        min_gain=min_gain,
        progress=progress,
    )
