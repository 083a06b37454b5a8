"""Tiny random models of many decoder-only architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

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
    "qwen3_moe": {
        **SMALL, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    },
    "granite": SMALL,
    "glm4": {**SMALL, "head_dim": 8},
    "olmo3": {**SMALL, **WINDOW},
    "phi": SMALL,
    "smollm3": SMALL,
    "stablelm": SMALL,
    # No trees: attention by distance, by chunks, by windows of another name, or none at all.
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
