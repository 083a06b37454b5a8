"""Which model takes an exam: one in this process, or one behind a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from converters.exam import ExamQuestion
from trecexam.config import GeneratorSection, TrackConfig
from trecexam.errors import GraderError
from trecexam.stages.exams.scoring import Examinee, Progress, Retriever, by_model, by_writer


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
        by_letter: bool,
        seed: int,
        progress: Progress | None,
        stop: Callable[[], bool] | None,
    ) -> Examinee: ...


def create_examinee(settings: GeneratorSection, folder: Path) -> Take:
    """The model that settings name, ready to take exams.

    Args:
        folder: where a server's answers are kept.

    Raises:
        GraderError: it cannot run here; the message says what to do.
    """
    if settings.name == "openai":
        return _behind_a_server(settings, folder)
    return _in_this_process(settings)


def _behind_a_server(settings: GeneratorSection, folder: Path) -> Take:
    from trecexam.graders.writing import create_writer
    from trecexam.stages.bank_making.answers import KeptAnswers

    writer = create_writer(TrackConfig.model_validate({"generator": settings}), folder)
    answers = KeptAnswers(folder / ".answers.jsonl", writer.identity)

    def take(
        model: str,
        questions: Sequence[ExamQuestion],
        retriever: Retriever,
        examples: int,
        texts: Mapping[str, str],
        *,
        by_letter: bool,
        seed: int,
        progress: Progress | None,
        stop: Callable[[], bool] | None,
    ) -> Examinee:
        return by_writer(
            writer, model, questions, retriever, examples, texts, answers,
            seed=seed, progress=progress, stop=stop,
        )  # fmt: skip

    return take


def _in_this_process(settings: GeneratorSection) -> Take:
    from trecexam.graders.causal import CausalBackend
    from trecexam.graders.language import loading
    from trecexam.graders.weights import model_folder

    missing = loading.missing_packages()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    assert settings.model is not None
    where = model_folder(settings.model, settings.revision, Path(), "causal", loading.HOW_TO_GET)
    backend = CausalBackend(where, settings.device, settings.dtype)

    def take(
        model: str,
        questions: Sequence[ExamQuestion],
        retriever: Retriever,
        examples: int,
        texts: Mapping[str, str],
        *,
        by_letter: bool,
        seed: int,
        progress: Progress | None,
        stop: Callable[[], bool] | None,
    ) -> Examinee:
        return by_model(
            backend, model, questions, retriever, examples, texts,
            how="letter" if by_letter else "likelihood", seed=seed, progress=progress, stop=stop,
        )  # fmt: skip

    return take
