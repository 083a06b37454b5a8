"""The `causal` grader: decoder-only language models, on transformers' classes.

In `choices` a passage is read once: the tokens that its prompts begin with in common go through the model
as one row, and what they kept (the key-value cache) is used for each of the prompts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Factory
from trecexam.graders.language import loading
from trecexam.graders.language.backend import Job
from trecexam.graders.language.choices import ChoiceTree
from trecexam.graders.language.grader import LanguageGrader, chosen_decoding, chosen_prompts
from trecexam.graders.language.tokens import PromptTokens, answer_tokens
from trecexam.graders.weights import model_folder

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BUDGET = {"cuda": 32_768, "cpu": 2_048}
#: A base model's answer follows this; only where the words of the answer begin depends on it.
_CUE = "Answer:"


class CausalBackend:
    """A decoder-only model. Loaded when it is first needed."""

    name = "causal"

    def __init__(self, folder: Path, device: str | None = None, dtype: str = "auto") -> None:
        self.folder = folder
        self._device, self._dtype = device, dtype

    @cached_property
    def tokens(self) -> PromptTokens:
        return PromptTokens(loading.load_tokenizer(self.folder), chat=True)

    @cached_property
    def device(self) -> str:
        return loading.best_device(self._device)

    @cached_property
    def model(self) -> Any:
        dtype = loading.best_dtype(self._dtype, self.device)
        return loading.load_model(self.folder, "AutoModelForCausalLM", self.device, dtype)

    @cached_property
    def ends(self) -> list[int]:
        """The tokens that end an answer: chat models have one for the turn beside that for the text."""
        found = self.model.generation_config.eos_token_id
        ids = [] if found is None else [found] if isinstance(found, int) else list(found)
        if not ids and self.tokens.tokenizer.eos_token_id is not None:
            ids = [self.tokens.tokenizer.eos_token_id]
        if not ids:
            raise GraderError("this model has no token that ends an answer (eos_token_id)", path=self.folder)
        return sorted(set(ids))

    @property
    def pad(self) -> int:
        found: int | None = self.tokens.tokenizer.pad_token_id
        return self.ends[0] if found is None else found

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokens.encode(texts)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.tokens.ends(text)

    def length_limit(self, new_tokens: int) -> int:
        # Positions and windows are settings of the model; its tokenizer often gives no length.
        limit = loading.written_limit(self.folder)
        try:
            config = json.loads((self.folder / "config.json").read_bytes())
        except (OSError, ValueError) as error:
            raise GraderError(f"no config.json of a model: {error}", path=self.folder) from None
        for key in ("max_position_embeddings", "n_positions", "sliding_window"):
            if isinstance(config.get(key), int):
                limit = min(limit, config[key])
        return max(limit - new_tokens, 1)

    def budget(self) -> int:
        return BUDGET.get(self.device.split(":")[0], BUDGET["cpu"])

    def details(self) -> dict[str, Any]:
        return {}

    def answers(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of permitted answers as they follow a prompt."""
        if self.tokens.chat:
            return answer_tokens(self.tokens.tokenizer, texts, self.folder)
        return answer_tokens(self.tokens.tokenizer, texts, self.folder, after=_CUE)

    def score(self, jobs: Sequence[Job], answers: Sequence[str]) -> Callable[[], list[list[float]]]:
        import torch

        tree = ChoiceTree.of(self.answers(answers))
        with torch.inference_mode(), loading.out_of_memory():
            logits = self._logits(jobs, tree).float()
            total = torch.logsumexp(logits, dim=-1)
            scores = []
            for path, leaf in zip(tree.paths, tree.leaves, strict=True):
                steps = torch.tensor([(place + 1, token) for place, token in path], device=self.device)
                found = (logits[:, steps[:, 0], steps[:, 1]] - total[:, steps[:, 0]]).sum(dim=1)
                end = torch.logsumexp(logits[:, leaf + 1, self.ends], dim=-1) - total[:, leaf + 1]
                scores.append(found + end)
            stacked = torch.stack(scores, dim=1)

        def result() -> list[list[float]]:
            with loading.out_of_memory():
                rows: list[list[float]] = stacked.tolist()
            return rows

        return result

    def _logits(self, jobs: Sequence[Job], tree: ChoiceTree) -> Tensor:
        """Logits at the end of each prompt and at each node of the tree; shape (jobs, 1 + nodes, words)."""
        import torch
        from transformers import DynamicCache

        rows, prefixes = _shared(jobs)
        cache = DynamicCache()
        prefix_tokens, prefix_mask = self._left(prefixes)
        if prefix_tokens.shape[1]:
            self.model(
                input_ids=prefix_tokens,
                attention_mask=prefix_mask.long(),
                position_ids=(prefix_mask.long().cumsum(1) - 1).clamp(min=0),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache.batch_select_indices(torch.tensor(rows, device=self.device))
        lengths = [len(prefixes[row]) for row in rows]
        suffixes = [list(job.tokens[length:]) for job, length in zip(jobs, lengths, strict=True)]
        tokens, mask = self._left(suffixes)
        nodes = torch.tensor(tree.tokens, device=self.device).expand(len(jobs), -1)
        before = torch.tensor(lengths, device=self.device)[:, None]
        after = torch.tensor([job.length for job in jobs], device=self.device)[:, None]
        depths = torch.tensor(tree.depths, device=self.device)
        positions = torch.cat(
            [before + (mask.long().cumsum(1) - 1).clamp(min=0), after + depths[None] - 1], dim=1
        )
        logits: Tensor = self.model(
            input_ids=torch.cat([tokens, nodes], dim=1),
            attention_mask=self._sees(prefix_mask[rows], mask, tree),
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=len(tree.tokens) + 1,
        ).logits
        return logits

    def _sees(self, prefix: Tensor, suffix: Tensor, tree: ChoiceTree) -> Tensor:
        """Which token of suffix and tree sees which of prefix, suffix and tree, as an additive mask."""
        import torch

        jobs, length = suffix.shape
        nodes = len(tree.tokens)
        valid = torch.cat([prefix, suffix, suffix.new_ones(jobs, nodes)], dim=1)
        order = torch.zeros(length + nodes, valid.shape[1], dtype=torch.bool, device=suffix.device)
        order[:, : prefix.shape[1]] = True
        own = order[:, prefix.shape[1] :]
        own[:length, :length] = torch.ones(length, length, device=suffix.device).tril().bool()
        own[length:, :length] = True
        own[length:, length:] = torch.tensor(tree.sees(), device=suffix.device)
        sees = order[None] & valid[:, None]
        dtype = self.model.dtype
        mask = torch.zeros(sees.shape, dtype=dtype, device=suffix.device)
        return mask.masked_fill(~sees, torch.finfo(dtype).min)[:, None]

    def generate(self, jobs: Sequence[Job], beams: int, new_tokens: int) -> Callable[[], list[str]]:
        import torch

        with torch.inference_mode(), loading.out_of_memory():
            tokens, mask = self._left([job.tokens for job in jobs])
            found = self.model.generate(
                input_ids=tokens,
                attention_mask=mask.long(),
                generation_config=loading.beam_search(self.model, beams, new_tokens, self.pad, self.ends),
            )
        return lambda: self.tokens.texts(found[:, tokens.shape[1] :].tolist())

    def _left(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens padded at the beginning, and True where there is a token; shape (rows, longest)."""
        import torch

        longest = max(map(len, rows))
        padded = [[*[self.pad] * (longest - len(row)), *row] for row in rows]
        mask = [[*[False] * (longest - len(row)), *[True] * len(row)] for row in rows]
        return (
            torch.tensor(padded, dtype=torch.long, device=self.device),
            torch.tensor(mask, dtype=torch.bool, device=self.device),
        )


def _shared(jobs: Sequence[Job]) -> tuple[list[int], list[Sequence[int]]]:
    """The prefix that each job reads from the cache.

    Returns:
        For each job the row of its prefix, and the prefixes: what all jobs of a group begin with, less
        than any of them whole.
    """
    rows_of: dict[int, int] = {}
    prefixes: list[Sequence[int]] = []
    for job in jobs:
        if job.group not in rows_of:
            rows_of[job.group] = len(prefixes)
            prefixes.append(job.tokens[:-1])
            continue
        row = rows_of[job.group]
        prefixes[row] = _common(prefixes[row], job.tokens[:-1])
    return [rows_of[job.group] for job in jobs], prefixes


def _common(one: Sequence[int], two: Sequence[int]) -> Sequence[int]:
    length = 0
    for left, right in zip(one, two, strict=False):
        if left != right:
            break
        length += 1
    return one[:length]


def _create(settings: GraderSection, root: Path) -> LanguageGrader:
    missing = loading.missing_packages()
    if missing:
        raise GraderError(f"the `causal` grader cannot run: {missing}")
    if settings.model is None:
        raise GraderError(f"the `causal` grader has no model: {loading.HOW_TO_GET}")
    folder = model_folder(settings.model, settings.revision, root, "causal", loading.HOW_TO_GET)
    prompts = chosen_prompts(settings, root, passage_first=settings.passage_first is not False)
    return LanguageGrader(
        CausalBackend(folder, settings.device, settings.dtype),
        prompts,
        chosen_decoding(settings, prompts),
        Path(settings.model).name,
        folder,
        max_length=settings.max_length,
        max_batch_tokens=settings.max_batch_tokens,
        compat=settings.compat,
        memory=root / ".trecexam" / "weights.json",
    )


FACTORY = Factory(
    summary="decoder-only language models, with their chat templates",
    missing=loading.missing_packages,
    create=_create,
)
