"""The model that takes an exam: local, or behind a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trecexam.config import GeneratorSection, TrackConfig
from trecexam.errors import GraderError
from trecexam.extensions.exams.choosing import ChoosingWriter
from trecexam.extensions.exams.scoring import ExamSetup, exam_prompts
from trecexam.extensions.local_models import loading
from trecexam.graders.base import Estimate
from trecexam.graders.weights import model_folder
from trecexam.graders.writing.asking import AnswerFile, KeepingWriter, estimate
from trecexam.graders.writing.base import LocalModelSettings, Writer
from trecexam.graders.writing.create import create_writer

_HOW_TO_GET = (
    "name a folder with the model, or a hub id where a hub can be reached; one behind a server needs its "
    "--base-url"
)


def examinee(settings: GeneratorSection, folder: Path) -> KeepingWriter:
    """The model in the settings, ready to take exams.

    Args:
        folder: where its answers are kept.
    """
    if settings.name == "openai":
        writer: Writer = create_writer(TrackConfig.model_validate({"generator": settings}), folder)
    else:
        writer = _here(settings, folder)
    return KeepingWriter(writer, AnswerFile(folder / ".answers.jsonl"))


def estimate_taking(
    settings: GeneratorSection,
    folder: Path,
    setups: Sequence[ExamSetup],
) -> Estimate:
    """Estimates questions ("cells"), tokens and cost of taking exams; calls no model.

    Args:
        settings, folder: as in `examinee`.
    """
    source = examinee(settings, folder)
    return estimate([exam_prompts(source, setup) for setup in setups])


def _here(settings: GeneratorSection, folder: Path) -> ChoosingWriter:
    missing = loading.missing_for_models()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    assert settings.model is not None
    where = model_folder(settings.model, settings.revision, Path(), "causal", _HOW_TO_GET)
    model = LocalModelSettings(
        "causal",
        where.absolute(),
        Path(settings.model).name,
        temperature=0,
        seed=None,
        new_tokens=0,
        device=settings.device,
        dtype=settings.dtype,
        # One question at a time: each has answers of its own.
        max_batch_tokens=1,
    )
    # An estimate must not create a folder.
    return ChoosingWriter(model, folder / ".weights.json" if folder.is_dir() else None)
