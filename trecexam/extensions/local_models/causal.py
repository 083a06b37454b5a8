"""The `causal` grader: decoder-only language models, on transformers' classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import Budget, plan
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
        """The scorer of answers."""
        from trecexam.extensions.local_models.decoder import Decoder

        return Decoder(self.model, self.pad, self.ends)

    def length_limit(self, new_tokens: int) -> int:
        # Use the model's number of positions, since tokenizers often lack a length.
        config = loading.written_config(self.folder)
        config |= config.get("text_config") or {}
        names = "max_position_embeddings", "n_positions", "max_seq_len"
        limits = [loading.written_limit(self.folder), *(config.get(name) for name in names)]
        limit = min(each for each in limits if isinstance(each, int))
        if limit <= new_tokens:
            raise GraderError(
                f"this model accepts {limit} tokens, and an answer may have {new_tokens}: "
                "set a smaller `max_new_tokens` in [grader]",
                path=self.folder,
            )
        return limit - new_tokens

    def log_probabilities(self, jobs: Sequence[Job[Any]], tree: ChoiceTree, max_tokens: int) -> Tensor:
        return self.scorer.scores(jobs, tree, max_tokens)

    def plan(self, jobs: Sequence[Job[Any]], budget: Budget) -> list[list[int]]:
        """Cut jobs into batches; a common prefix of a passage's prompts counts once per batch."""
        if budget.new_tokens or not self.scorer.shares:
            return super().plan(jobs, budget)
        alone = [index for index, job in enumerate(jobs) if not job.prefix]
        parts = plan([jobs[index].length for index in alone], budget.tokens)
        batches = [[alone[position] for position in part] for part in parts]
        shared = [index for index, job in enumerate(jobs) if job.prefix]
        size, group = budget.tokens, None
        for index in sorted(shared, key=lambda index: (-jobs[index].prefix, jobs[index].group, index)):
            job = jobs[index]
            size += job.length - job.prefix * (job.group == group)
            group = job.group
            if size > budget.tokens:
                batches.append([])
                size = job.length
            batches[-1].append(index)
        return batches


FACTORY = local_factory(CausalBackend, "decoder-only language models, with their chat templates")
