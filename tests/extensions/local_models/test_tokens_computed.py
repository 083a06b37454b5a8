"""How many tokens enter the model for each token of the prompts, counted by what it gets."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from architectures import saved
from exhaustive import made
from tiny_models import bpe_tokenizer, save_t5

from converters.records import Item
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
