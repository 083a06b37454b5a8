"""Probabilities of a prompt's continuations from a decoder-only model, which reads the prompt once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.batching import OutOfMemoryError
from trecexam.extensions.local_models.causal import CausalBackend

if TYPE_CHECKING:
    import torch


class Continued(NamedTuple):
    """log P(continuation | prompt), and how many tokens the continuation has. No end token is counted."""

    log_probability: float
    tokens: int


class PromptContinuations(NamedTuple):
    """A prompt and its continuations, as tokens."""

    prompt: Sequence[int]
    continuations: Sequence[Sequence[int]]

    @property
    def size(self) -> int:
        """Tokens that go through the model, padding aside."""
        return len(self.prompt) + sum(map(len, self.continuations))


def tokens_of(backend: CausalBackend, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of continuations, after a blank unless a chat template ends the prompt.

    Raises:
        GraderError: one has no tokens.
    """
    continuations = []
    for text in texts:
        spelled = text if backend.tokens.chat else f" {text}"
        tokens = backend.tokens.tokenizer(spelled, add_special_tokens=False, verbose=False)["input_ids"]
        if not tokens:
            raise GraderError(f"this model's tokenizer cannot write '{text[:40]}'", path=backend.folder)
        continuations.append(list(tokens))
    return continuations


def scored(
    backend: CausalBackend, prompts: Sequence[PromptContinuations], max_batch_tokens: int | None = None
) -> Iterator[list[tuple[int, list[Continued]]]]:
    """(index in `prompts`, its continuations), batch by batch, longest prompts first.

    Raises:
        GraderError: a single prompt does not fit into memory.
    """
    budget = max_batch_tokens or backend.budget()
    order = sorted(range(len(prompts)), key=lambda prompt_index: -prompts[prompt_index].size)
    while order:
        size = max(1, budget // max(1, prompts[order[0]].size))
        batch, order = order[:size], order[size:]
        yield list(
            zip(batch, _batch(backend, [prompts[prompt_index] for prompt_index in batch]), strict=True)
        )


def _batch(backend: CausalBackend, prompts: Sequence[PromptContinuations]) -> list[list[Continued]]:
    import torch

    from trecexam.extensions.local_models.shared_prefix import can_share

    longest = max(len(each.prompt) + max(map(len, each.continuations)) for each in prompts)
    share = can_share(backend.model.config.get_text_config(), longest)
    share = share and min(len(each.prompt) for each in prompts) > 1
    try:
        with torch.inference_mode(), loading.out_of_memory():
            sums = _together(backend, prompts) if share else _one_by_one(backend, prompts)
    except OutOfMemoryError:
        if len(prompts) == 1:
            raise GraderError(
                "a single question does not fit into memory: set another `device`", path=backend.folder
            ) from None
        half = len(prompts) // 2
        return [*_batch(backend, prompts[:half]), *_batch(backend, prompts[half:])]
    values = iter(sums)
    return [[Continued(next(values), len(tokens)) for tokens in each.continuations] for each in prompts]


def _together(backend: CausalBackend, prompts: Sequence[PromptContinuations]) -> list[float]:
    """Scores continuations with a cache: the model reads each prompt once."""
    import torch
    from transformers import DynamicCache

    from trecexam.extensions.local_models.shared_prefix import left_padded

    model, device = backend.model, backend.model.device
    # The last token of a prompt goes with the continuations: what it gives predicts their first tokens.
    tokens, mask = left_padded([each.prompt[:-1] for each in prompts], backend.pad, device)
    cache = DynamicCache()
    model(
        input_ids=tokens,
        attention_mask=mask.long(),
        position_ids=(mask.long().cumsum(1) - 1).clamp(min=0),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    rows = [row for row, each in enumerate(prompts) for _ in each.continuations]
    cache.batch_select_indices(torch.tensor(rows, device=device))
    continuations = [tokens for each in prompts for tokens in each.continuations]
    inputs = [
        [prompts[row].prompt[-1], *tokens[:-1]] for row, tokens in zip(rows, continuations, strict=True)
    ]
    width = max(map(len, continuations))
    after = torch.tensor([[*row, *[backend.pad] * (width - len(row))] for row in inputs], device=device)
    ends = torch.tensor([len(row) for row in inputs], device=device)
    steps = torch.arange(width, device=device)
    real = steps[None] < ends[:, None]
    starts = torch.tensor([len(prompts[row].prompt) - 1 for row in rows], device=device)
    logits = model(
        input_ids=after,
        attention_mask=torch.cat([mask[rows], real], dim=1).long(),
        position_ids=starts[:, None] + steps[None],
        past_key_values=cache,
        use_cache=True,
    ).logits
    targets = torch.tensor([[*row, *[0] * (width - len(row))] for row in continuations], device=device)
    return _sums(logits, targets, real)


def _one_by_one(backend: CausalBackend, prompts: Sequence[PromptContinuations]) -> list[float]:
    """Scores continuations without padding or cache: slower, but correct for every architecture."""
    import torch

    sums = []
    for each in prompts:
        for tokens in each.continuations:
            row = torch.tensor([[*each.prompt, *tokens]], device=backend.model.device)
            logits = backend.model(input_ids=row, use_cache=False).logits[:, -len(tokens) - 1 : -1]
            targets = row[:, -len(tokens) :]
            sums += _sums(logits, targets, torch.ones_like(targets, dtype=torch.bool))
    return sums


def _sums(logits: torch.Tensor, targets: torch.Tensor, real: torch.Tensor) -> list[float]:
    """The summed log-probability of each row's targets."""
    import torch

    logits = logits.float()
    steps = logits.gather(2, targets[:, :, None])[:, :, 0] - torch.logsumexp(logits, dim=-1)
    sums: list[float] = steps.masked_fill(~real, 0.0).sum(dim=1).tolist()
    return sums
