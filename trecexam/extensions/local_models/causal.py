"""The `causal` grader: decoder-only language models, on transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job, on_device
from trecexam.extensions.local_models.batching import plan
from trecexam.extensions.local_models.grader import local_factory
from trecexam.extensions.local_models.local import LocalModel

if TYPE_CHECKING:
    from torch import Tensor

    from trecexam.extensions.local_models.choices import ChoiceTree
    from trecexam.extensions.local_models.decoder import Decoder


class CausalBackend(LocalModel):
    """A decoder-only model, loaded when first used."""

    name = "causal"
    auto_class = "AutoModelForCausalLM"
    decoder_only = True

    @cached_property
    def scorer(self) -> Decoder:
        """What scores answers."""
        from trecexam.extensions.local_models.decoder import Decoder

        return Decoder(self.model, self.pad, self.ends)

    def padded(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        ones = [[1] * len(prompt) for prompt in prompts]
        tokens = on_device(prompts, self.device, self.pad, left=True)
        return tokens, on_device(ones, self.device, left=True)

    def length_limit(self, new_tokens: int) -> int:
        # The positions are a setting of the model; its tokenizer often gives no length.
        limit = loading.written_limit(self.folder)
        config = loading.written_config(self.folder)
        config = {**config, **(config.get("text_config") or {})}
        for key in ("max_position_embeddings", "n_positions", "max_seq_len"):
            if isinstance(config.get(key), int):
                limit = min(limit, config[key])
        if limit <= new_tokens:
            raise GraderError(
                f"this model accepts {limit} tokens, and an answer may have {new_tokens}: "
                "set a smaller `max_new_tokens` in [grader]",
                path=self.folder,
            )
        return limit - new_tokens

    def log_probabilities(self, jobs: Sequence[Job], tree: ChoiceTree, max_tokens: int) -> Tensor:
        from trecexam.extensions.local_models.decoder import Scored

        rows = [Scored(job.tokens, job.group, job.prefix) for job in jobs]
        return self.scorer.scores(rows, tree, max_tokens)

    def plan(
        self, jobs: Sequence[Job], max_tokens: int, new_tokens: int = 0, beams: int = 1
    ) -> list[list[int]]:
        """Cut jobs into batches; what the prompts of a passage begin with counts once in a batch."""
        if new_tokens or not self.scorer.shares:
            return super().plan(jobs, max_tokens, new_tokens, beams)
        alone = [index for index, job in enumerate(jobs) if not job.prefix]
        batches = [
            [alone[place] for place in part]
            for part in plan([jobs[index].length for index in alone], max_tokens)
        ]
        shared = [index for index, job in enumerate(jobs) if job.prefix]
        size, group = max_tokens, None
        for index in sorted(shared, key=lambda index: (-jobs[index].prefix, jobs[index].group, index)):
            job = jobs[index]
            size += job.length - job.prefix * (job.group == group)
            group = job.group
            if size > max_tokens:
                batches.append([])
                size = job.length
            batches[-1].append(index)
        return batches


FACTORY = local_factory(CausalBackend, "decoder-only language models, with their chat templates")
