"""The `causal` grader: decoder-only language models, on transformers' classes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import Plan
from trecexam.extensions.local_models.choices import ChoiceTree
from trecexam.extensions.local_models.grader import LanguageGrader, local_grader, local_reading
from trecexam.extensions.local_models.local import CPU_BUDGET, LocalModel
from trecexam.extensions.local_models.tiles import Tile, in_order, n_rows
from trecexam.extensions.local_models.tokens import answer_tokens
from trecexam.graders.base import Factory

if TYPE_CHECKING:
    from torch import Tensor

#: A base model's answer follows this; only where the words of the answer begin depends on it.
_CUE = "Answer:"
#: Tokens of a tile of what follows a passage, by kind of device: few, as few have prefixes of like length.
QUESTION_TOKENS = {"cuda": 2_048, "cpu": 128}


class CausalBackend(LocalModel):
    """A decoder-only model, loaded when first used."""

    name = "causal"
    auto_class = "AutoModelForCausalLM"
    budgets: ClassVar = {"cuda": 32_768, "cpu": CPU_BUDGET}
    chat = True
    # So that what a prompt shares does not depend on the prompts that are there.
    wants_prefixes = True
    repeats_prompts = True

    def plan(self, jobs: Sequence[Job], max_tokens: int) -> Plan:
        """Plans batches; prompts that share a prefix are grouped by similar length."""
        if not any(job.prefix for job in jobs) or not self._shares(0):
            return super().plan(jobs, max_tokens)
        from trecexam.extensions.local_models.shared_prefix import plan_shared

        return plan_shared(jobs, max_tokens)

    def _shares(self, length: int) -> bool:
        from trecexam.extensions.local_models.shared_prefix import can_share

        return can_share(self.model.config.get_text_config(), length)

    @cached_property
    def model(self) -> Any:
        from trecexam.extensions.local_models.shared_prefix import can_share
        from trecexam.graders.packed_linear import pack

        model = super().model
        # Others look into their layers.
        if can_share(model.config.get_text_config(), 0):
            pack(model)
        return model

    @cached_property
    def ends(self) -> list[int]:
        """The tokens that end an answer; chat models have one for the turn and one for the text."""
        configured = self.model.generation_config.eos_token_id
        ids = [] if configured is None else [configured] if isinstance(configured, int) else list(configured)
        if not ids and self.tokens.tokenizer.eos_token_id is not None:
            ids = [self.tokens.tokenizer.eos_token_id]
        if not ids:
            raise GraderError("this model has no token that ends an answer (eos_token_id)", path=self.folder)
        return sorted(set(ids))

    @property
    def pad(self) -> int:
        token: int | None = self.tokens.tokenizer.pad_token_id
        return self.ends[0] if token is None else token

    def length_limit(self, new_tokens: int) -> int:
        # The positions are a setting of the model; its tokenizer often gives no length.
        limit = loading.written_limit(self.folder)
        try:
            config = json.loads((self.folder / "config.json").read_bytes())
        except (OSError, ValueError) as error:
            raise GraderError(
                f"the folder has no config.json of a model: {error}", path=self.folder
            ) from None
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

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        if self.tokens.chat:
            return answer_tokens(self.tokens.tokenizer, texts, self.folder)
        return answer_tokens(self.tokens.tokenizer, texts, self.folder, after=_CUE)

    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        import torch

        tokens = self.answers(answers)
        tree = ChoiceTree.of(tokens)
        lengths = [job.length + max(tree.depths) for job in jobs]
        sharing = {length: self._shares(length) for length in set(lengths)}
        job_indices = {
            able: [p for p, length in enumerate(lengths) if sharing[length] == able] for able in (True, False)
        }
        scores = torch.empty(len(jobs), len(answers), device=self.device)
        with loading.out_of_memory():
            if job_indices[True]:
                scores[job_indices[True]] = self._by_tree(
                    [jobs[job_index] for job_index in job_indices[True]], tree
                )
            if job_indices[False]:
                scores[job_indices[False]] = self._one_by_one(
                    [jobs[job_index] for job_index in job_indices[False]], tokens
                )

        def result() -> list[list[float]]:
            with loading.out_of_memory():
                rows: list[list[float]] = scores.tolist()
            return rows

        return result

    def _by_tree(self, jobs: Sequence[Job], tree: ChoiceTree) -> Tensor:
        """Shape (jobs, answers)."""
        from trecexam.extensions.local_models.shared_prefix import tiled_logits

        model, rows = self.model, (self.reading_rows, self._question_rows)

        def in_all() -> Tensor:
            scores = tiled_logits(
                model, jobs, tree, self.pad, *rows, self.of_each, lambda logits: self._of_logits(logits, tree)
            )
            return in_order(scores)

        return self.fitting(in_all, smallest=len({job.group for job in jobs}) == 1)

    def _question_rows(self, length: int) -> int:
        """Of a tile of what follows a passage."""
        return n_rows(length, self._tile_tokens(QUESTION_TOKENS))

    def _of_logits(self, logits: Tensor, tree: ChoiceTree) -> Tensor:
        """log P(answer, end | prompt), shape (jobs, answers), from the logits of `tiled_logits`."""
        import torch

        logits = logits.float()
        total = torch.logsumexp(logits, dim=-1)
        scores = []
        for path, leaf in zip(tree.paths, tree.leaves, strict=True):
            steps = torch.tensor([(node + 1, token) for node, token in path], device=self.device)
            answer_score = (logits[:, steps[:, 0], steps[:, 1]] - total[:, steps[:, 0]]).sum(dim=1)
            end = torch.logsumexp(logits[:, leaf + 1, self.ends], dim=-1) - total[:, leaf + 1]
            scores.append(answer_score + end)
        return torch.stack(scores, dim=1)

    def _one_by_one(self, jobs: Sequence[Job], answers: Sequence[Sequence[int]]) -> Tensor:
        """Scores each prompt with each answer as its own row: slower, but correct for every architecture.

        Only prompts of one length go together, without padding: not every model can leave
        padding out.

        Returns:
            Shape (jobs, answers).
        """
        import torch

        able = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        scores = torch.empty(len(jobs), len(answers), device=self.device)

        def of_tile(job_indices: Sequence[int], answer: Sequence[int], tile: Tile) -> Tensor:
            job_indices = [job_indices[each] for each in tile.places]
            rows = torch.tensor(
                [[*jobs[job_index].tokens, *answer] for job_index in job_indices], device=self.device
            )
            keep = len(answer) + 1
            only = {"logits_to_keep": keep} if able else {}
            logits = self.model(input_ids=rows, use_cache=False, **only).logits[:, -keep:]
            steps = torch.log_softmax(logits.float(), dim=-1)
            targets = torch.tensor(answer, device=self.device).expand(len(job_indices), -1)[:, :, None]
            answer_score = steps[:, :-1].gather(2, targets).sum(dim=(1, 2))
            return answer_score + torch.logsumexp(steps[:, -1, self.ends], dim=-1)

        same: dict[int, list[int]] = {}
        for job_index, job in enumerate(jobs):
            same.setdefault(job.length, []).append(job_index)
        for length, job_indices in same.items():
            for column, answer in enumerate(answers):
                parts = self.in_tiles(
                    [length] * len(job_indices), partial(of_tile, job_indices, answer), self.reading_rows
                )
                scores[job_indices, column] = in_order(parts)
        return scores

    def padded(self, prompts: Sequence[Sequence[int]], length: int) -> tuple[Tensor, Tensor]:
        from trecexam.extensions.local_models.shared_prefix import left_padded

        return left_padded(prompts, self.pad, self.device, length)


def _create(settings: GraderSection, root: Path) -> LanguageGrader:
    return local_grader(settings, root, CausalBackend, default=None, passage_first=True)


FACTORY = Factory(
    summary="decoder-only language models, with their chat templates",
    missing=loading.missing_for_models,
    create=_create,
    standard=True,
    reading=local_reading,
)
