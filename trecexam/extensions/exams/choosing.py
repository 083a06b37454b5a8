"""Writers for taking an exam: a server's model, or a local model that scores continuations."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from trecexam.config import GeneratorSection, TrackConfig
from trecexam.errors import GraderError, TrecexamError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.extensions.local_models.writer import LocalWriter
from trecexam.graders.replies import WrittenText
from trecexam.graders.weights import config_digest, model_folder, weights_digest
from trecexam.graders.writing.asking import AnswerFile, KeepingWriter
from trecexam.graders.writing.base import Fitted, LocalModelSettings, Writer
from trecexam.graders.writing.create import create_writer

_HOW_TO_GET = (
    "name a folder with the model, or a hub id where a hub can be reached; one behind a server needs its "
    "--base-url"
)


class ChoosingWriter(LocalWriter):
    """Writer that scores continuations: JSON [prompt, continuation, ...] in, JSON log-probabilities out."""

    backend: CausalBackend

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        settings = self.settings
        return {
            "writer": "continuations",
            "model": settings.name,
            "weights_sha256": weights_digest(settings.folder, self._memory),
            "config_sha256": config_digest(settings.folder, loading.LANGUAGE_FILES),
            **({} if settings.dtype == "auto" else {"dtype": settings.dtype}),
        }

    def fit_prompt(self, render: Callable[[str], str], context: str, continuations: Sequence[str]) -> Fitted:
        """Return the prompt, with the context cut so that the longest continuation fits.

        Args:
            render: context without control tokens -> prompt.
        """
        backend = self.backend
        limit = backend.length_limit(max(map(len, tokens_of(backend, continuations))))
        try:
            _, part = fitted(render, context, backend.tokens, limit)
        except NoRoomError:
            part, length = "", len(backend.tokens.encode([render("")])[0])
            if length > limit:
                raise NoRoomError(f"{length:,} tokens, and the model accepts {limit:,}") from None
        prompt = json.dumps([render(part), *continuations], ensure_ascii=False)
        return Fitted(prompt, cut=part != context)

    def _whole(self, prompt: str) -> str:
        return str(json.loads(prompt)[0])

    def _texts(self, jobs: Sequence[Job[str]]) -> list[WrittenText]:
        return [WrittenText(json.dumps(self._scores(job))) for job in jobs]

    def _scores(self, job: Job[str]) -> list[float]:
        _, *continuations = json.loads(job.request)
        with loading.out_of_memory():
            scores = self.backend.scorer.continued(job.tokens, tokens_of(self.backend, continuations))
        if not all(map(math.isfinite, scores)):
            raise TrecexamError(
                "the model gives a question no finite probabilities: run it on the CPU, with "
                "CUDA_VISIBLE_DEVICES= before the command",
                path=self.settings.folder,
            )
        return scores


def tokens_of(backend: CausalBackend, texts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of continuations, after a blank unless a chat template ends the prompt."""
    continuations = []
    for text in texts:
        spelled = text if backend.tokens.chat else f" {text}"
        tokens = backend.tokens.tokenizer(spelled, add_special_tokens=False, verbose=False)["input_ids"]
        if not tokens:
            raise GraderError(f"this model's tokenizer cannot write '{text[:40]}'", path=backend.folder)
        continuations.append(list(tokens))
    return continuations


def examinee(settings: GeneratorSection, folder: Path) -> KeepingWriter:
    """Return the model in the settings, ready to take exams.

    Args:
        folder: folder of the stored answers.
    """
    if settings.name == "openai":
        writer: Writer = create_writer(TrackConfig.model_validate({"generator": settings}), folder)
    else:
        writer = _here(settings, folder)
    return KeepingWriter(writer, AnswerFile(folder / ".answers.jsonl"))


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
        # One question at a time, since candidates differ.
        max_batch_tokens=1,
    )
    # An estimate must not create a folder.
    return ChoosingWriter(model, folder / ".weights.json" if folder.is_dir() else None)
