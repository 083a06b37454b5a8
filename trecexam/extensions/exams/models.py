"""Which model takes an exam: one in this process, or one behind a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from trecexam.config import GeneratorSection, TrackConfig
from trecexam.errors import GraderError
from trecexam.extensions.exams.scoring import (
    Examinee,
    ExamSetup,
    by_model,
    by_writer,
    time_of,
    written_prompts,
)
from trecexam.graders.base import Estimate
from trecexam.graders.causal import CausalBackend
from trecexam.graders.language import loading
from trecexam.graders.weights import model_folder
from trecexam.graders.writing import Writer, create_writer
from trecexam.graders.writing.asking import ShowProgress, Stop, estimate
from trecexam.graders.writing.kept_answers import KeptAnswers

_HOW_TO_GET = (
    "name a folder with the model, or a hub id where a hub can be reached; one behind a server needs its "
    "--base-url"
)
#: Has a model take the exam.
Take = Callable[[ExamSetup, ShowProgress | None, Stop | None], Examinee]


def create_examinee(settings: GeneratorSection, folder: Path) -> Take:
    """The model that settings name, ready to take exams.

    Args:
        folder: where a server's answers are kept.

    Raises:
        GraderError: it cannot run here; the message says what to do.
    """
    if settings.name == "openai":
        return partial(by_writer, *_server(settings, folder))
    return partial(by_model, _backend(settings))


def estimate_taking(
    settings: GeneratorSection,
    folder: Path,
    setups: Sequence[ExamSetup],
    *,
    timed: bool = False,
) -> Estimate:
    """What taking exams so would take, in questions ("cells"), tokens and money; asks nobody.

    Args:
        settings, folder: as in `create_examinee`.
        timed: also how long, where the model is in this process: it answers a few questions.

    Raises:
        GraderError, TrecexamError: as `create_examinee`; with `timed`, as `by_model`.
    """
    if settings.name == "openai":
        writer, answers = _server(settings, folder)
        return estimate([written_prompts(writer, answers, setup) for setup in setups])
    time = time_of(_backend(settings), setups) if timed else None
    return Estimate(sum(len(setup.questions) for setup in setups), time=time)


def _server(settings: GeneratorSection, folder: Path) -> tuple[Writer, KeptAnswers]:
    writer = create_writer(TrackConfig.model_validate({"generator": settings}), folder)
    return writer, KeptAnswers(folder / ".answers.jsonl", writer.identity)


def _backend(settings: GeneratorSection) -> CausalBackend:
    missing = loading.missing_for_models()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    assert settings.model is not None
    where = model_folder(settings.model, settings.revision, Path(), "causal", _HOW_TO_GET)
    return CausalBackend(where, settings.device, settings.dtype)
