"""Decoder-only architectures: those with prefix sharing, and those scored without it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from exhaustive import exhaustive, made
from tiny_models import bpe_tokenizer

from trecexam.errors import GraderError
from trecexam.extensions.local_models.shared_prefix import SHARING, can_share
from trecexam.graders import Cell

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 1024}
WINDOW = {"sliding_window": 300}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
#: model_type -> its configuration. Windows are shorter than some prompts here.
MODELS: dict[str, dict[str, Any]] = {
    "codegen": {**GPT, "rotary_dim": 8},
    "cohere2": {**SMALL, **WINDOW},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gemma": {**SMALL, "head_dim": 8},
    "gemma2": {**SMALL, **WINDOW, "head_dim": 8, "query_pre_attn_scalar": 8},
    "gemma3_text": {**SMALL, **WINDOW, "head_dim": 8, "query_pre_attn_scalar": 8},
    "gpt2": GPT,
    "gpt_neox": {key: value for key, value in SMALL.items() if key != "num_key_value_heads"},
    "gpt_oss": {**SMALL, **WINDOW, **EXPERTS, "head_dim": 8},
    "gptj": {**GPT, "rotary_dim": 8},
    "llama": SMALL,
    "mistral": {**SMALL, **WINDOW},
    "mixtral": {**SMALL, **EXPERTS, "sliding_window": None},
    "olmo2": SMALL,
    "opt": {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "phi3": SMALL,
    "qwen2": {**SMALL, "use_sliding_window": False, "sliding_window": 64},
    "qwen3": {**SMALL, "head_dim": 8},
    "smollm3": SMALL,
    "stablelm": SMALL,
    # Not in the list: attention by distance, by chunks, by windows of another name, or none at all.
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 1024},
    "gpt_neo": {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 64,
        "max_position_embeddings": 1024,
        "attention_types": [[["global", "local"], 1]],
    },
    "llama4_text": {
        **SMALL, "head_dim": 8, "num_local_experts": 2, "intermediate_size_mlp": 64,
        "attention_chunk_size": 64,
    },
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "rwkv": {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    "lfm2": {**SMALL, "layer_types": ["conv", "full_attention"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return bpe_tokenizer(chat=False)


def saved(folder: Path, name: str, tokenizer: Any, **more: Any) -> Path:
    torch.manual_seed(0)
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = transformers.AutoConfig.for_model(name, vocab_size=len(tokenizer), **ids, **MODELS[name], **more)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


#: At every commit: plain, with a window, with learned positions, and one that must be scored plainly.
FIRST = ("llama", "gemma2", "opt", "bloom")


@pytest.mark.parametrize(
    "name",
    [
        *FIRST,
        *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in (*FIRST, "rwkv")),
    ],
)
def test_choices_equal_an_exhaustive_search_in_every_architecture(
    name: str, tmp_path: Path, tokenizer: Any, cells: list[Cell]
) -> None:
    with warnings.catch_warnings():
        # Some models of transformers emit warnings.
        warnings.simplefilter("ignore")
        grader = made(saved(tmp_path / name, name, tokenizer), "causal")
        jobs = grader._prepare([*zip(cells[:6])], [])
        answers = [answer for answer, _ in grader.prompts["question"].answers]
        for job, row in zip(jobs, grader.backend.score(jobs, answers)(), strict=True):
            assert row == pytest.approx(exhaustive(grader, job.cells[0]), abs=2e-3)
    shares = can_share(grader.backend.model.config, 64)  # type: ignore[attr-defined]
    assert shares == (name in SHARING)


def test_every_architecture_with_prefix_sharing_is_tested() -> None:
    assert set(MODELS) >= SHARING


def test_a_prompt_longer_than_the_window_is_scored_without_sharing() -> None:
    config = transformers.AutoConfig.for_model("mistral", **MODELS["mistral"])
    assert can_share(config, 300)
    assert not can_share(config, 301)
    assert can_share(transformers.AutoConfig.for_model("qwen2", **MODELS["qwen2"]), 1000)
    assert not can_share(transformers.AutoConfig.for_model("falcon", alibi=True), 10)


def test_a_model_without_beam_search_is_reported(tmp_path: Path, tokenizer: Any, cells: list[Cell]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grader = made(saved(tmp_path / "rwkv", "rwkv", tokenizer), "causal", decode="beam", max_new_tokens=4)
        with pytest.raises(GraderError, match='this model does not support `decode = "beam"`'):
            list(grader.grade(cells[:2]))
