"""A writer with any generative model of transformers, local or in a worker of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.batching import OutOfMemoryError
from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.extensions.local_models.seq2seq import FLAN_T5_LARGE, Seq2SeqBackend
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.graders.base import Estimate, Usage
from trecexam.graders.weights import LANGUAGE_FILES, config_digest, weights_digest
from trecexam.graders.writing.base import Fitted, LocalModelSettings, Unwritten, WrittenText, naming

BACKENDS: dict[str, type[CausalBackend] | type[Seq2SeqBackend]] = {
    "causal": CausalBackend,
    "seq2seq": Seq2SeqBackend,
}
#: Writers that differ in what they are told, or in their seeds, share a model while any of them is there.
_LOADED: WeakValueDictionary[tuple[object, ...], CausalBackend | Seq2SeqBackend] = WeakValueDictionary()
#: Prompts that are sorted by length together.
_WINDOW = 256
#: A prompt and its tokens.
_Job = tuple[str, list[int]]


class LocalWriter:
    """Writes with a local model, loaded when first used.

    Attributes:
        is_here: whether it runs in this process.

    Args:
        memory: where digests of weights are kept.
        section: of trecexam.toml, that errors name.
    """

    is_here = True

    def __init__(
        self, settings: LocalModelSettings, memory: Path | None = None, section: str = "grader"
    ) -> None:
        self.settings = settings
        self._section = section
        self._memory = memory

    @property
    def model(self) -> str:
        return self.settings.name

    @property
    def new_tokens(self) -> int:
        return self.settings.new_tokens

    @property
    def seed(self) -> int | None:
        return self.settings.seed

    @property
    def paid(self) -> bool:
        return False

    @property
    def used(self) -> Usage:
        return Usage()

    @property
    def meter(self) -> None:
        return None

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The model's environment; None before it is loaded here."""
        backend: CausalBackend | Seq2SeqBackend | None = self.__dict__.get("backend")
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
            "config_sha256": config_digest(settings.folder, LANGUAGE_FILES),
            "decode": {
                "temperature": settings.temperature,
                "seed": settings.seed,
                "new_tokens": settings.new_tokens,
            },
        }

    @cached_property
    def backend(self) -> CausalBackend | Seq2SeqBackend:
        settings = self.settings
        files = self.identity["weights_sha256"], self.identity["config_sha256"]
        key = settings.kind, settings.folder, settings.device, settings.dtype, *files
        backend = _LOADED.get(key)
        if backend is None:
            backend = _LOADED[key] = BACKENDS[settings.kind](settings.folder, settings.device, settings.dtype)
        return backend

    def plain(self, text: str) -> str:
        return self.backend.plain(text)

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        text = self.plain(text)
        try:
            _, part = fitted(lambda part: self._whole(render(part)), text, self.backend, self._limit)
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

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        with naming(self._section):
            yield from self._write(prompts)

    def _write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        waiting = iter(prompts)
        while window := list(islice(waiting, _WINDOW)):
            yield from self._window(window)

    def complete(self, prompts: Sequence[str]) -> list[WrittenText | Unwritten]:
        """A text for each prompt, in order; called in workers of a cluster."""
        texts = {prompt: text for batch in self.write(prompts) for prompt, text in batch}
        return [texts[prompt] for prompt in prompts]

    def estimate(self, prompts: Sequence[str], before: Usage) -> Estimate:
        return Estimate(len(prompts))

    def cost(self, used: Usage) -> float | None:
        return None

    def start_from(self, before: Usage) -> None:
        """Does nothing: local tokens are not counted."""

    def _window(self, prompts: Sequence[str]) -> Iterator[list[tuple[str, WrittenText | Unwritten]]]:
        limit = self._limit
        able: list[_Job] = []
        unable: list[tuple[str, WrittenText | Unwritten]] = []
        for prompt, tokens in zip(prompts, self.backend.encode([*map(self._whole, prompts)]), strict=True):
            if len(tokens) <= limit:
                able.append((prompt, tokens))
            else:
                reason = f"accepts {limit:,} tokens besides its answer, and the prompt has {len(tokens):,}"
                unable.append((prompt, Unwritten(reason)))
        if unable:
            yield unable
        for batch in self._batches(able):
            yield list(zip((prompt for prompt, _ in batch), self._batch(batch), strict=True))

    def _batches(self, jobs: list[_Job]) -> Iterator[list[_Job]]:
        """Batches of prompts, longest first."""
        budget = self.settings.max_batch_tokens or self.backend.budget()
        jobs = sorted(jobs, key=lambda job: len(job[1]))
        while jobs:
            # At random one at a time, so that what a prompt gets does not depend on other prompts.
            longest = len(jobs[-1][1]) + self.settings.new_tokens
            size = 1 if self.settings.temperature > 0 else max(1, budget // longest)
            batch, jobs = jobs[-size:], jobs[:-size]
            yield batch

    def _batch(self, jobs: Sequence[_Job]) -> list[WrittenText | Unwritten]:
        import torch

        settings, backend = self.settings, self.backend
        decoding = backend.decoding(settings.new_tokens, temperature=settings.temperature)
        try:
            with torch.random.fork_rng():
                if settings.temperature > 0:
                    torch.manual_seed(_seed(settings.seed, jobs[0][0]))
                rows = backend.continued([tokens for _, tokens in jobs], decoding, free=True).tolist()
        except OutOfMemoryError:
            if len(jobs) == 1:
                raise GraderError(
                    "a single answer does not fit into memory: set a smaller `max_new_tokens`, or another "
                    "`device`",
                    path=settings.folder,
                ) from None
            half = len(jobs) // 2
            return [*self._batch(jobs[:half]), *self._batch(jobs[half:])]
        except (ValueError, NotImplementedError) as error:
            raise GraderError(
                f"this model cannot write: {loading.line_of(error)}", path=settings.folder
            ) from error
        return [WrittenText(text, cut=cut) for text, cut in backend.texts(rows)]


def _seed(seed: int | None, prompt: str) -> int:
    """The random seed of a prompt."""
    return int.from_bytes(hashlib.sha256(f"{seed} {prompt}".encode()).digest()[:7])


class _Models:
    """Implements `trecexam.graders.writing.base.ModelsHere`."""

    default = FLAN_T5_LARGE
    how_to_get = loading.HOW_TO_GET

    def missing(self) -> str:
        return loading.missing_for_models()

    def writer(self, settings: LocalModelSettings, memory: Path | None, section: str) -> LocalWriter:
        return LocalWriter(settings, memory, section)


MODELS = _Models()
