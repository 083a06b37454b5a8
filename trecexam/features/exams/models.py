"""Which model takes an exam: one in this process, or one behind a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from converters.exam import ExamQuestion
from trecexam.config import GeneratorSection, TrackConfig
from trecexam.errors import GraderError
from trecexam.features.exams.scoring import Examinee, How, Progress, Retriever, by_model, by_writer

_HOW_TO_GET = (
    "name a folder with the model, or a hub id where a hub can be reached; one behind a server needs its "
    "--base-url"
)


class Take(Protocol):
    """Has a model take the exam, with a retriever and some examples."""

    def __call__(
        self,
        model: str,
        questions: Sequence[ExamQuestion],
        retriever: Retriever,
        examples: int,
        texts: Mapping[str, str],
        *,
        seed: int,
        progress: Progress | None,
        stop: Callable[[], bool] | None,
    ) -> Examinee: ...


def create_examinee(settings: GeneratorSection, folder: Path, how: How = "likelihood") -> Take:
    """The model that settings name, ready to take exams.

    Args:
        folder: where a server's answers are kept.
        how: a model in this process chooses; one behind a server always writes a letter.

    Raises:
        GraderError: it cannot run here; the message says what to do.
    """
    if settings.name == "openai":
        return _behind_a_server(settings, folder)
    return _in_this_process(settings, how)


def _behind_a_server(settings: GeneratorSection, folder: Path) -> Take:
    from trecexam.graders.writing import create_writer
    from trecexam.graders.writing.kept_answers import KeptAnswers

    writer = create_writer(TrackConfig.model_validate({"generator": settings}), folder)
    return partial(by_writer, writer, answers=KeptAnswers(folder / ".answers.jsonl", writer.identity))


def _in_this_process(settings: GeneratorSection, how: How) -> Take:
    from trecexam.graders.causal import CausalBackend
    from trecexam.graders.language import loading
    from trecexam.graders.weights import model_folder

    missing = loading.missing_packages()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    assert settings.model is not None
    where = model_folder(settings.model, settings.revision, Path(), "causal", _HOW_TO_GET)
    return partial(by_model, CausalBackend(where, settings.device, settings.dtype), how=how)
