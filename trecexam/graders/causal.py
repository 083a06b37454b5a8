"""The `causal` grader: decoder-only language models, on transformers' classes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Factory
from trecexam.graders.language import loading
from trecexam.graders.language.backend import Job
from trecexam.graders.language.choices import ChoiceTree
from trecexam.graders.language.grader import LanguageGrader
from trecexam.graders.language.lists import LabelLists, written_lists
from trecexam.graders.language.local import LocalModel, local_grader
from trecexam.graders.language.tokens import answer_tokens

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig

#: A base model's answer follows this; only where the words of the answer begin depends on it.
_CUE = "Answer:"


class CausalBackend(LocalModel):
    """A decoder-only model. Loaded when it is first needed."""

    name = "causal"
    auto_class = "AutoModelForCausalLM"
    budgets: ClassVar = {"cuda": 32_768, "cpu": 2_048}
    chat = True

    @cached_property
    def ends(self) -> list[int]:
        """The tokens that end an answer: chat models have one for the turn beside that for the text."""
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
            raise GraderError(f"no config.json of a model: {error}", path=self.folder) from None
        config = {**config, **(config.get("text_config") or {})}
        for key in ("max_position_embeddings", "n_positions", "max_seq_len"):
            if isinstance(config.get(key), int):
                limit = min(limit, config[key])
        if limit <= new_tokens:
            raise GraderError(
                f"this model takes {limit} tokens, and an answer may have {new_tokens}: "
                "set a smaller `max_new_tokens` in [grader]",
                path=self.folder,
            )
        return limit - new_tokens

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of permitted answers as they follow a prompt."""
        if self.tokens.chat:
            return answer_tokens(self.tokens.tokenizer, texts, self.folder)
        return answer_tokens(self.tokens.tokenizer, texts, self.folder, after=_CUE)

    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        import torch

        from trecexam.graders.language.shared_prefix import can_share

        tokens = self.answers(answers)
        tree = ChoiceTree.of(tokens)
        longest = max(job.length for job in jobs) + max(tree.depths)
        share = can_share(self.model.config.get_text_config(), longest)
        with torch.inference_mode(), loading.out_of_memory():
            scores = self._by_tree(jobs, tree) if share else self._one_by_one(jobs, tokens)

        def result() -> list[list[float]]:
            with loading.out_of_memory():
                rows: list[list[float]] = scores.tolist()
            return rows

        return result

    def _by_tree(self, jobs: Sequence[Job], tree: ChoiceTree) -> Tensor:
        """Shape (jobs, answers)."""
        import torch

        from trecexam.graders.language.shared_prefix import tree_logits

        logits = tree_logits(self.model, jobs, tree, self.pad).float()
        total = torch.logsumexp(logits, dim=-1)
        scores = []
        for path, leaf in zip(tree.paths, tree.leaves, strict=True):
            steps = torch.tensor([(place + 1, token) for place, token in path], device=self.device)
            answer_score = (logits[:, steps[:, 0], steps[:, 1]] - total[:, steps[:, 0]]).sum(dim=1)
            end = torch.logsumexp(logits[:, leaf + 1, self.ends], dim=-1) - total[:, leaf + 1]
            scores.append(answer_score + end)
        return torch.stack(scores, dim=1)

    def _one_by_one(self, jobs: Sequence[Job], answers: Sequence[Sequence[int]]) -> Tensor:
        """Each prompt with each answer as a row of its own: slower, and right for every architecture.

        Only prompts of one length go together, so that nothing is padded: not every model can leave
        padding out.

        Returns:
            Shape (jobs, answers).
        """
        import torch

        able = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        scores = torch.empty(len(jobs), len(answers), device=self.device)
        places: dict[int, list[int]] = {}
        for place, job in enumerate(jobs):
            places.setdefault(job.length, []).append(place)
        for same in places.values():
            for column, answer in enumerate(answers):
                rows = torch.tensor([[*jobs[place].tokens, *answer] for place in same], device=self.device)
                keep = len(answer) + 1
                only = {"logits_to_keep": keep} if able else {}
                logits = self.model(input_ids=rows, use_cache=False, **only).logits[:, -keep:]
                steps = torch.log_softmax(logits.float(), dim=-1)
                targets = torch.tensor(answer, device=self.device).expand(len(same), -1)[:, :, None]
                answer_score = steps[:, :-1].gather(2, targets).sum(dim=(1, 2))
                scores[same, column] = answer_score + torch.logsumexp(steps[:, -1, self.ends], dim=-1)
        return scores

    def list_labels(
        self, jobs: Sequence[Job], labels: Sequence[str]
    ) -> Callable[[], list[list[tuple[float, ...]]]]:
        return written_lists(self, jobs, labels)

    def generate(self, jobs: Sequence[Job], beams: int, new_tokens: int) -> Callable[[], list[str]]:
        decoding = loading.beam_search(self.model, beams, new_tokens, self.pad, self.ends)
        try:
            generated = self.continued([job.tokens for job in jobs], decoding)
        except (ValueError, NotImplementedError) as error:
            raise GraderError(
                f'this model cannot do `decode = "beam"`: {loading.line_of(error)}', path=self.folder
            ) from error
        return lambda: self.tokens.texts(generated.tolist())

    def continued(
        self,
        rows: Sequence[Sequence[int]],
        decoding: GenerationConfig,
        processor: LabelLists | None = None,
    ) -> Tensor:
        """The tokens that follow each prompt's, padded at the end; shape (prompts, new tokens).

        Args:
            processor: holds the model to certain tokens.

        Raises:
            OutOfMemoryError: there are too many.
        """
        import torch

        from trecexam.graders.language.shared_prefix import left_padded

        with torch.inference_mode(), loading.out_of_memory():
            tokens, mask = left_padded(rows, self.pad, self.device)
            generated: Tensor = self.model.generate(
                input_ids=tokens,
                attention_mask=mask.long(),
                generation_config=decoding,
                logits_processor=None if processor is None else [processor],
            )
        return generated[:, tokens.shape[1] :]


def _create(settings: GraderSection, root: Path) -> LanguageGrader:
    return local_grader(settings, root, CausalBackend, "causal", default=None, passage_first=True)


FACTORY = Factory(
    summary="decoder-only language models, with their chat templates",
    missing=loading.missing_for_models,
    create=_create,
)
