"""`choices` against an exhaustive search: each permitted answer scored alone by transformers' forward."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trecexam.config import GraderSection
from trecexam.graders import Cell, create
from trecexam.graders.language.grader import LanguageGrader

KINDS = (
    ("seq2seq", "t5"),
    ("seq2seq", "t5-relu"),
    ("causal", "llama"),
    ("causal", "llama-base"),
    ("causal", "gpt2"),
)


def made(models: dict[str, Path], name: str, model: str, **settings: Any) -> LanguageGrader:
    grader = create(GraderSection(name=name, model=str(models[model]), dtype="float32", **settings), Path())
    assert isinstance(grader, LanguageGrader)
    return grader


def log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits.double(), dim=-1)


@torch.inference_mode()
def exhaustive(grader: LanguageGrader, cell: Cell) -> list[float]:
    """log P(answer, end | prompt) for each permitted answer, one forward pass each, nothing shared."""
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


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_choices_are_those_of_an_exhaustive_search(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    grader = made(models, name, model)
    graded = {cell: answer for batch in grader.grade(cells) for cell, answer in batch}
    answers = grader.prompts["question"].answers
    assert graded.keys() == set(cells)
    for cell, answer in graded.items():
        scores = exhaustive(grader, cell)
        shares = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0).tolist()
        assert answer.probabilities is not None
        for (_, rating), share in zip(answers, shares, strict=True):
            assert answer.probabilities[rating] == pytest.approx(share, abs=2e-5)
        first, second = sorted(scores, reverse=True)[:2]
        if first - second > 1e-4:
            assert (answer.raw, answer.rating) == answers[scores.index(first)]


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_log_probabilities_are_transformers_own(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    grader = made(models, name, model)
    jobs = grader._prepare(cells[:9], [])
    answers = [answer for answer, _ in grader.prompts["question"].answers]
    for job, row in zip(jobs, grader.backend.score(jobs, answers)(), strict=True):
        assert row == pytest.approx(exhaustive(grader, job.cell), abs=1e-4)


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_answers_of_several_tokens_are_scored_whole(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    grader = made(models, name, model, prompt="UMBRELA")
    cell = cells[0]._replace(text="a document", item=cells[0].item._replace(kind="query"))
    jobs = grader._prepare([cell], [])
    answers = [answer for answer, _ in grader.prompts["query"].answers]
    assert len(jobs[0].tokens) < grader.max_length
    assert grader.backend.score(jobs, answers)()[0] == pytest.approx(exhaustive(grader, cell), abs=1e-4)


def test_the_encoder_is_transformers_own(models: dict[str, Path]) -> None:
    for model in ("t5", "t5-relu"):
        backend: Any = made(models, "seq2seq", model).backend
        tokens = torch.randint(3, 300, (3, 21))
        mask = torch.arange(21)[None] < torch.tensor([21, 9, 1])[:, None]
        with torch.inference_mode():
            theirs = backend.model.encoder(tokens, attention_mask=mask.long()).last_hidden_state
            ours = backend.scorer.encode(tokens, mask)
        assert torch.allclose(ours[mask], theirs[mask], atol=1e-5)


def test_the_most_probable_answers_vary_with_the_prompt(models: dict[str, Path], cells: list[Cell]) -> None:
    """Else the tests here would show little."""
    grader = made(models, "seq2seq", "t5")
    assert len({answer.rating for batch in grader.grade(cells) for _, answer in batch}) >= 2
