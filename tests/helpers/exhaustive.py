"""Permitted answers scored one by one with the forward pass of transformers; `choices` must equal these."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trecexam.config import GraderSection
from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.graders import Cell, create


def made(folder: Path, name: str, **settings: Any) -> LanguageGrader:
    """A grader with the model in `folder`, in float32."""
    grader = create(GraderSection(name=name, model=str(folder), dtype="float32", **settings), Path())
    assert isinstance(grader, LanguageGrader)
    return grader


def log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits.double(), dim=-1)


@torch.inference_mode()
def exhaustive(grader: LanguageGrader, cell: Cell) -> list[float]:
    """log P(answer, end | prompt) for each permitted answer, one forward pass each, without sharing."""
    backend: Any = grader.backend
    tokenizer, model = backend.tokens.tokenizer, backend.model
    prompt = grader.prompts[cell.item.kind]
    text = prompt.text(cell.query_text, cell.item, cell.text)
    found = []
    for answer, _ in prompt.answers:
        if backend.name == "seq2seq":
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            wanted = tokenizer(answer, add_special_tokens=False)["input_ids"]
            start = model.config.decoder_start_token_id
            logits = model(input_ids=ids, decoder_input_ids=torch.tensor([[start, *wanted]])).logits[0]
            ends = [tokenizer.eos_token_id]
        else:
            chat = tokenizer.chat_template is not None
            if chat:
                text_ = tokenizer.apply_chat_template(
                    [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
                )
            else:
                text_ = text
            before = tokenizer(text_, add_special_tokens=not chat)["input_ids"]
            wanted = tokenizer(answer if chat else f" {answer}", add_special_tokens=False)["input_ids"]
            logits = model(input_ids=torch.tensor([before + wanted])).logits[0, len(before) - 1 :]
            eos = model.config.eos_token_id
            ends = eos if isinstance(eos, list) else [eos]
        steps = log_softmax(logits)
        score = sum(float(steps[place, token]) for place, token in enumerate(wanted))
        found.append(score + math.log(sum(math.exp(float(steps[len(wanted), end])) for end in ends)))
    return found
