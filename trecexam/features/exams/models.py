"""Which model takes an exam: one in this process, or one behind a server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from trecexam.config import GeneratorSection, TrackConfig
from trecexam.errors import GraderError
from trecexam.features.exams.scoring import Examinee, ExamSetup, How, by_model, by_writer
from trecexam.graders.causal import CausalBackend
from trecexam.graders.language import loading
from trecexam.graders.weights import model_folder
from trecexam.graders.writing import create_writer
from trecexam.graders.writing.asking import ShowProgress, Stop
from trecexam.graders.writing.kept_answers import KeptAnswers

_HOW_TO_GET = (
    "name a folder with the model, or a hub id where a hub can be reached; one behind a server needs its "
    "--base-url"
)
#: Has a model take the exam.
Take = Callable[[ExamSetup, ShowProgress | None, Stop | None], Examinee]


def create_examinee(settings: GeneratorSection, folder: Path, how: How = "likelihood") -> Take:
    """The model that settings name, ready to take exams.

    Args:
        folder: where a server's answers are kept.
        how: a model in this process chooses; one behind a server always writes a letter.

    Raises:
        GraderError: it cannot run here; the message says what to do.
    """
    if settings.name == "openai":
        writer = create_writer(TrackConfig.model_validate({"generator": settings}), folder)
        return partial(by_writer, writer, KeptAnswers(folder / ".answers.jsonl", writer.identity))
    missing = loading.missing_for_models()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    assert settings.model is not None
    where = model_folder(settings.model, settings.revision, Path(), "causal", _HOW_TO_GET)
    return partial(by_model, CausalBackend(where, settings.device, settings.dtype), how=how)
