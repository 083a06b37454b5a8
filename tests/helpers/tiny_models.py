"""Tiny random language models with tokenizers, saved like real ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from trecexam.graders.prompts import published

CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Models are random, and one test needs answers that depend on the order of computation. New prompts would
# change all models, so the text is fixed.
_TEXT = " ".join(
    prompt.template for prompt in published().values() if prompt.group == 1 and prompt.asks != "statement"
)


def _corpus(further: str = "") -> list[str]:
    words = re.findall(r"\w+|[^\w\s]", _TEXT)
    return [
        _TEXT,
        " ".join(words),
        "1 2 3 4 5 Yes No passage about question number of q1 q2 q3 " * 200,
        *[further] * bool(further),
    ]


def t5_tokenizer(words: int = 700, further: str = "") -> Any:
    """A sentence-piece-like tokenizer as T5 has it: some digits are one token, some two.

    Args:
        further: additional words that it can write.
    """
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram
    from tokenizers.trainers import UnigramTrainer
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(Unigram())
    tokenizer.normalizer = normalizers.Replace(Regex(r"\s+"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = UnigramTrainer(
        vocab_size=words, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(_corpus(further), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=512,
    )


def bpe_tokenizer(words: int = 500, *, chat: bool, further: str = "") -> Any:
    """A byte-level BPE tokenizer, with or without a chat template.

    Args:
        further: additional words that it can write.
    """
    from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    special = ["<|bos|>", "<|eos|>", "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"]
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=words,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(further), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|bos|> $A", special_tokens=[("<|bos|>", tokenizer.token_to_id("<|bos|>"))]
    )
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|bos|>", eos_token="<|eos|>", pad_token="<|pad|>"
    )
    if chat:
        made.chat_template = CHAT
    return made


def save_t5(
    folder: Path,
    *,
    gated: bool = True,
    seed: int = 2,
    varied: bool = True,
    tied: bool = False,
    further: str = "",
    inner: int = 64,
) -> Path:
    """A T5 with two layers.

    Args:
        inner: numbers of a token in the feed-forward layers.
        further: additional words that its tokenizer can write.
        tied: like the first T5, which scales its outputs; T5 1.1 and FLAN-T5 do not.
        varied: with larger weights, since small random models else give the same answer to every prompt.
    """
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = t5_tokenizer(further=further)
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=inner,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu" if gated else "relu",
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=tied,
    )
    model = T5ForConditionalGeneration(config).eval()
    if varied:
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(3.0)
            model.lm_head.weight.mul_(0.05)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_mt5(folder: Path, seed: int = 2) -> Path:
    """An mT5 with two layers, which unlike T5 never scales its outputs."""
    import torch
    from transformers import MT5Config, MT5ForConditionalGeneration

    tokenizer = t5_tokenizer()
    torch.manual_seed(seed)
    config = MT5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    MT5ForConditionalGeneration(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_llama(folder: Path, *, chat: bool = True, seed: int = 5, inner: int = 64, width: int = 32) -> Path:
    """A Llama with two layers.

    Args:
        inner: numbers of a token in the feed-forward layers.
        width: numbers of a token between layers.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = bpe_tokenizer(chat=chat)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=[tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|end|>")],
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.2 * (32 / width) ** 0.5,
    )
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_gpt2(folder: Path, seed: int = 0) -> Path:
    """A GPT-2 with two layers: learned positions, no chat template."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = bpe_tokenizer(chat=False)
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=1024,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.2,
    )
    GPT2LMHeadModel(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
