"""How many tokens enter the model for each token of the prompts, counted by what it gets."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from architectures import saved
from exhaustive import made
from tiny_models import bpe_tokenizer, save_t5

from converters.records import Item
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import Batcher
from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.extensions.local_models.decoder import Decoder
from trecexam.extensions.local_models.grader import _with_prefixes
from trecexam.extensions.local_models.local import WINDOWS, LocalModel
from trecexam.extensions.local_models.seq2seq import Seq2SeqBackend
from trecexam.graders import Cell

#: Prompts -> the most tokens that may be computed for each of theirs.
LIMITS = {300: 1.30, 2_000: 1.15, 20_000: 1.10}
#: Of a batch on a GPU.
GPU_TOKENS = 32_768
#: Architecture -> whether the common beginnings of prompts are read once.
ARCHITECTURES = {
    "t5": False, "llama": True, "qwen3_moe": True, "gemma3_text": True, "granite": True, "gpt_oss": True,
    "phi": True, "mamba": False,
}  # fmt: skip


class Counting(torch.nn.Module):
    """Counts the tokens that enter it and computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.config = transformers.LlamaConfig(vocab_size=8, num_hidden_layers=1)
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: Any = None,
        position_ids: Any = None,
        past_key_values: Any = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> Any:
        self.seen += input_ids.numel()
        if past_key_values is not None:
            states = torch.zeros(len(input_ids), 1, input_ids.shape[1], 1)
            past_key_values.update(states, states, 0)
        return SimpleNamespace(logits=torch.zeros(len(input_ids), logits_to_keep, 8))

    def log_probabilities(self, tokens: torch.Tensor, mask: torch.Tensor, tree: Any) -> torch.Tensor:
        """In place of a T5."""
        self.seen += tokens.numel() + len(tokens) * len(tree.depths)
        return torch.zeros(len(tokens), len(tree.branches))


def drawn_jobs(prompts: int) -> list[Job[Any]]:
    """Ten questions about each passage of 30 to 300 tokens, in a prompt of 60."""
    rng = random.Random(1)
    jobs: list[Job[Any]] = []
    for passage in range(prompts // 10):
        text = [rng.randrange(8) for _ in range(rng.randint(30, 300))]
        for _ in range(10):
            question = [rng.randrange(8) for _ in range(rng.randint(6, 25))]
            jobs.append(Job((), [0] * 30 + text + [1] * 30 + question, passage))
    return jobs


@pytest.mark.parametrize("prompts", LIMITS)
@pytest.mark.parametrize(("kind", "shares"), [("t5", False), ("causal", True), ("causal", False)])
def test_few_tokens_are_computed_in_vain(
    kind: str, shares: bool, prompts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Counting()
    backend: LocalModel = Seq2SeqBackend(Path(), "cpu") if kind == "t5" else CausalBackend(Path(), "cpu")
    # The CPU is cut up for its cores.
    vars(backend)["device"] = "cpu:0"
    tokens = SimpleNamespace(
        tokenizer=SimpleNamespace(pad_token_id=0),
        answers=lambda texts: [[number] for number in range(len(texts))],
    )
    vars(backend).update(ends=[7], tokens=tokens)
    decoder = Decoder(model, 0, [7])
    decoder._works["tree"] = True
    decoder.cuts_caches = shares
    # What nothing computes with need not be made.
    monkeypatch.setattr(decoder, "_tree_masks", lambda *args: None)
    vars(backend).update(scorer=model if kind == "t5" else decoder)
    budget = backend.budget(GPU_TOKENS)
    batcher: Batcher[Any, list[float]] = Batcher(
        lambda jobs: (_with_prefixes(jobs), []),
        lambda jobs, max_tokens: backend.score(jobs, list("012345"), max_tokens),
        budget,
        backend.plan,
    )
    jobs = drawn_jobs(prompts)
    assert sum(map(len, batcher.run(jobs, *WINDOWS["cuda"]))) == prompts
    limit = 0.4 if shares else LIMITS[prompts]
    assert model.seen <= limit * sum(job.length for job in jobs)


def cells_of(prompts: int) -> list[Cell]:
    """The same as texts; a letter and a blank are two tokens or one."""
    rng = random.Random(3)

    def words(letters: Sequence[str], count: int) -> str:
        return " ".join(rng.choices(letters, k=count))

    cells = []
    for passage in range(prompts // 10):
        text = words("abcdefghij", rng.randint(20, 200))
        for number in range(10):
            item = Item("q", f"q/{passage}/{number}", words("klmnopqrst", rng.randint(3, 12)))
            cells.append(Cell("q", "", f"d{passage}", text, item))
    return cells


@pytest.mark.parametrize(
    "name",
    ["llama", *(pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES if name != "llama")],
)
def test_each_architecture_computes_few_tokens_in_vain(name: str, tmp_path: Path) -> None:
    tokenizer = bpe_tokenizer(chat=False)
    with warnings.catch_warnings():
        # Some models of transformers emit warnings.
        warnings.simplefilter("ignore")
        folder = save_t5(tmp_path / name) if name == "t5" else saved(tmp_path / name, name, tokenizer)
        grader = made(folder, "seq2seq" if name == "t5" else "causal", max_batch_tokens=GPU_TOKENS)
        backend: Any = grader.backend
        cells = cells_of(300)
        real = sum(job.length for job in grader._prepare([*zip(cells)])[0])
        list(grader.grade(cells[:1]))
        seen: list[int] = []
        if name == "t5":
            score = backend.scorer.log_probabilities

            def counted(tokens: torch.Tensor, mask: torch.Tensor, tree: Any) -> torch.Tensor:
                seen.append(tokens.numel() + len(tokens) * len(tree.depths))
                return score(tokens, mask, tree)  # type: ignore[no-any-return]

            backend.scorer.log_probabilities = counted
        else:
            backend.model.register_forward_pre_hook(
                lambda module, args, inputs: seen.append(inputs["input_ids"].numel()), with_kwargs=True
            )
        assert sum(map(len, grader.grade(cells))) == len(cells)
    limit = 0.4 if ARCHITECTURES[name] else LIMITS[300]
    assert sum(seen) <= limit * real
