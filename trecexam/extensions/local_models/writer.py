"""A writer with any generative model of transformers, local or in a worker of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import Batcher
from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.extensions.local_models.local import LocalModel
from trecexam.extensions.local_models.seq2seq import FLAN_T5_LARGE, Seq2SeqBackend
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.graders.base import Estimate
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.weights import config_digest, weights_digest
from trecexam.graders.writing.base import Fitted, LocalModelSettings, naming

BACKENDS: dict[str, type[LocalModel]] = {"causal": CausalBackend, "seq2seq": Seq2SeqBackend}

#: A prompt with its text, or the reason for none.
Pair = tuple[str, WrittenText | Unwritten]


class LocalWriter:
    """Writer with a local model, loaded when first used.

    Args:
        memory: where digests of weights are kept.
        section: section of trecexam.toml to name in errors.
    """

    meter = None

    def __init__(
        self, settings: LocalModelSettings, memory: Path | None = None, section: str = "grader"
    ) -> None:
        self.settings = settings
        self.model, self.new_tokens, self.seed = settings.name, settings.new_tokens, settings.seed
        self._section = section
        self._memory = memory

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The model's environment; None before it is loaded here."""
        backend: LocalModel | None = self.__dict__.get("backend")
        return None if backend is None else backend.environment

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        settings = self.settings
        further = {"system": settings.system, "max_length": settings.max_length}
        return {
            **{name: value for name, value in further.items() if value},
            "writer": settings.kind,
            "model": settings.name,
            "weights_sha256": weights_digest(settings.folder, self._memory),
            "config_sha256": config_digest(settings.folder, loading.LANGUAGE_FILES),
            "decode": {name: getattr(settings, name) for name in ("temperature", "seed", "new_tokens")},
        }

    @cached_property
    def backend(self) -> LocalModel:
        settings = self.settings
        return BACKENDS[settings.kind].shared(settings.folder, settings.device, settings.dtype)

    def plain(self, text: str) -> str:
        return self.backend.tokens.plain(text)

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        text = self.plain(text)
        try:
            _, part = fitted(lambda part: self._whole(render(part)), text, self.backend.tokens, self._limit)
        except NoRoomError:
            # `write` says so.
            part = ""
        return Fitted(render(part), cut=len(part) < len(text))

    @property
    def _limit(self) -> int:
        limit = self.backend.length_limit(self.settings.new_tokens)
        return min(limit, self.settings.max_length or limit)

    def _whole(self, prompt: str) -> str:
        return f"{self.settings.system}\n\n{prompt}" if self.settings.system else prompt

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[Pair]]:
        with naming(self._section):
            yield from self._write(prompts)

    def _write(self, prompts: Iterable[str]) -> Iterator[Sequence[Pair]]:
        # Sample one text at a time, so that texts do not depend on other prompts.
        max_tokens = 1 if self.settings.temperature > 0 else self.settings.max_batch_tokens
        budget = self.backend.budget(max_tokens, self.settings.new_tokens)
        batcher = Batcher(self._prepare, self._launch, budget, self.backend.plan)
        return batcher.run(prompts, *self.backend.windows)

    def complete(self, prompts: Sequence[str]) -> list[WrittenText | Unwritten]:
        """Return a text for each prompt, in order."""
        texts = {prompt: text for batch in self.write(prompts) for prompt, text in batch}
        return [texts[prompt] for prompt in prompts]

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        return Estimate(len(prompts))

    def _prepare(self, prompts: list[str]) -> tuple[list[Job[str]], list[Pair]]:
        """Return prompts as tokens, and reasons for those that are too long."""
        jobs: list[Job[str]] = []
        unable: list[Pair] = []
        limit = self._limit
        encoded = self.backend.tokens.encode([*map(self._whole, prompts)])
        for prompt, tokens in zip(prompts, encoded, strict=True):
            if len(tokens) <= limit:
                jobs.append(Job(prompt, tokens))
            else:
                reason = f"accepts {limit:,} tokens besides its answer, and the prompt has {len(tokens):,}"
                unable.append((prompt, Unwritten(reason)))
        return jobs, unable

    def _launch(self, jobs: Sequence[Job[str]], max_tokens: int) -> Callable[[], list[Pair]]:
        return lambda: [(job.request, text) for job, text in zip(jobs, self._texts(jobs), strict=True)]

    def _texts(self, jobs: Sequence[Job[str]]) -> list[WrittenText]:
        import torch

        settings, backend = self.settings, self.backend
        decoding = backend.decoding(settings.new_tokens, temperature=settings.temperature)
        with torch.random.fork_rng():
            if settings.temperature > 0:
                key = f"{settings.seed} {jobs[0].request}".encode()
                torch.manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:7]))
            texts = backend.write([job.tokens for job in jobs], decoding)
        return [WrittenText(text, cut=cut) for text, cut in texts]


class _Models:
    """Interface for the core to local language models."""

    default = FLAN_T5_LARGE
    how_to_get = loading.HOW_TO_GET
    missing = staticmethod(loading.missing_for_models)

    def writer(self, settings: LocalModelSettings, memory: Path | None, section: str) -> LocalWriter:
        return LocalWriter(settings, memory, section)


MODELS = _Models()
