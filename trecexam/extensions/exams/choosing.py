"""A writer that returns the probabilities of each prompt's continuations from a local model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.continuations import PromptContinuations, scored, tokens_of
from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.extensions.local_models.writer import LocalWriter
from trecexam.graders.weights import LANGUAGE_FILES, config_digest, weights_digest
from trecexam.graders.writing import Fitted, Unwritten, WrittenText


class ChoosingWriter(LocalWriter):
    """Its prompts and its texts are JSON: [prompt, continuation, ...], and the log-probability of each."""

    backend: CausalBackend

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        settings = self.settings
        return {
            "writer": "continuations",
            "model": settings.name,
            "weights_sha256": weights_digest(settings.folder, self._memory),
            "config_sha256": config_digest(settings.folder, LANGUAGE_FILES),
            **({} if settings.dtype == "auto" else {"dtype": settings.dtype}),
        }

    def asked(self, render: Callable[[str], str], context: str, continuations: Sequence[str]) -> Fitted:
        """The prompt, with the context cut so that the longest continuation fits.

        Args:
            render: the context, plain already -> the prompt.

        Raises:
            NoRoomError: it does not take the prompt without a context either; says how long both are.
        """
        backend = self.backend
        limit = backend.length_limit(max(map(len, tokens_of(backend, continuations))))
        try:
            _, part = fitted(render, context, backend, limit)
        except NoRoomError:
            part, length = "", len(backend.encode([render("")])[0])
            if length > limit:
                raise NoRoomError(f"{length:,} tokens, and the model accepts {limit:,}") from None
        prompt = json.dumps([render(part), *continuations], ensure_ascii=False)
        return Fitted(prompt, cut=part != context)

    def _window(self, prompts: Sequence[str]) -> Iterator[list[tuple[str, WrittenText | Unwritten]]]:
        backend = self.backend
        read = [json.loads(prompt) for prompt in prompts]
        jobs = [
            PromptContinuations(tokens, tokens_of(backend, continuations))
            for tokens, (_, *continuations) in zip(
                backend.encode([prompt for prompt, *_ in read]), read, strict=True
            )
        ]
        for batch in scored(backend, jobs, self.settings.max_batch_tokens):
            texts: list[tuple[str, WrittenText | Unwritten]] = []
            for prompt_index, continued in batch:
                log_probabilities = [each.log_probability for each in continued]
                if not all(map(math.isfinite, log_probabilities)):
                    raise TrecexamError(
                        "the model gives a question no finite probabilities: run it on the CPU, with "
                        "CUDA_VISIBLE_DEVICES= before the command",
                        path=self.settings.folder,
                    )
                texts.append((prompts[prompt_index], WrittenText(json.dumps(log_probabilities))))
            yield texts
