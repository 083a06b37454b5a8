"""What a track's exam calls do: exams on its passages that a model writes, and its bank as an exam."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.fitting import improved
from trecexam.extensions.exams.generating import GeneratedExam, generate, plan_exam
from trecexam.extensions.exams.questions.prompts import load_prompt, published
from trecexam.extensions.exams.refilling import RefilledExam, plan_refilling, refill
from trecexam.extensions.exams.responses import LabelFiles, from_track
from trecexam.extensions.exams.rubric import default_settings, fit_track
from trecexam.extensions.exams.settings import ExamSection
from trecexam.graders.writing import Writer, keeping_writers
from trecexam.graders.writing.asking import Job
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import asked_of
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.improvement import ImprovementStep
    from trecexam.extensions.exams.irt.settings import Settings
    from trecexam.extensions.exams.results import ExamFit, ImprovedExam


def exam_job(
    folder: TrackFolder,
    task_domain: str,
    *,
    passages: Path | str | None = None,
    output: Path | str | None = None,
    prompt: Path | str | None = None,
    shuffle_seed: int = 0,
    limit: int | None = None,
    writer: Writer | None = None,
) -> Job[GeneratedExam]:
    """Has a language model write a question about each passage: what `exam generate` does.

    Args:
        task_domain: what the passages are of, as "the manuals of heat pumps".
        passages: JSONL with optional title and topic; None for the track's.
        output: the exam; None for exam.jsonl in the track's folder.
        prompt: a file of your own; None for the published prompt.
        shuffle_seed: of the order of the candidates.
        limit: of the first passages alone.
        writer: in place of the one that trecexam.toml names.

    Raises:
        TrecexamError, ConversionError: what stands in the way.
    """
    source = folder.passages() if passages is None else Path(passages)
    if source is None:
        raise TrecexamError("no passages: put passages.jsonl here", path=folder.root)
    plan = plan_exam(
        source,
        published() if prompt is None else load_prompt(Path(prompt)),
        task_domain,
        _exam(folder, output),
        shuffle_seed=shuffle_seed,
        min_question=folder.config.section(ExamSection).min_question,
        limit=limit,
    )
    return Job(generate(plan, *keeping_writers(folder, *([] if writer is None else [writer]))))


def refilling_job(
    folder: TrackFolder,
    task_domain: str,
    *,
    output: Path | str | None = None,
    writer: Writer | None = None,
) -> Job[RefilledExam]:
    """Has wrong candidates that fail the filters written again: what `exam generate --again` does.

    An estimate is of the first round.

    Args:
        task_domain: what the passages are of.
        output: the exam; None for exam.jsonl in the track's folder.
        writer: in place of the one that trecexam.toml names.

    Raises:
        TrecexamError, ConversionError: there is no exam, somebody edited it, or the model cannot be asked.
    """
    plan = plan_refilling(_exam(folder, output), folder.config.section(ExamSection), folder.root, task_domain)
    return Job(refill(plan, *keeping_writers(folder, *([] if writer is None else [writer]))))


def _exam(folder: TrackFolder, output: Path | str | None) -> Path:
    return folder.root / "exam.jsonl" if output is None else Path(output)


#: A question about runs as examinees is of a grader that has several.
has_examinees = asked_of(lambda track, *args, **kwargs: len(track.runs) > 1)


@has_examinees
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


@has_examinees
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
