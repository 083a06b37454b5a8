"""`choices` against an exhaustive search: each permitted answer scored alone by transformers' forward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from exhaustive import exhaustive, made

from trecexam.errors import GraderError
from trecexam.graders import Cell

KINDS = (
    ("seq2seq", "t5"),
    ("seq2seq", "t5-relu"),
    ("seq2seq", "t5-tied"),
    ("seq2seq", "mt5"),
    ("causal", "llama"),
    ("causal", "llama-base"),
    ("causal", "gpt2"),
)


@pytest.mark.parametrize(("name", "model"), [("seq2seq", "t5"), ("seq2seq", "mt5"), ("causal", "llama")])
def test_choices_equal_an_exhaustive_search(
    models: dict[str, Path], cells: list[Cell], thorough: bool, name: str, model: str
) -> None:
    cells = cells[:: 1 if thorough else 3]
    grader = made(models[model], name)
    graded = {cell: answer for batch in grader.grade(cells) for cell, answer in batch}
    answers = grader.prompts["question"].answers
    assert graded.keys() == set(cells)
    for cell in cells[::9]:
        answer = graded[cell]
        scores = exhaustive(grader, cell)
        shares = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0).tolist()
        assert answer.probabilities is not None
        for (_, rating), share in zip(answers, shares, strict=True):
            assert answer.probabilities[rating] == pytest.approx(share, abs=2e-5)
        first, second = sorted(scores, reverse=True)[:2]
        if first - second > 1e-4:
            assert (answer.raw, answer.rating) == answers[scores.index(first)]


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_log_probabilities_equal_those_of_transformers(
    models: dict[str, Path], cells: list[Cell], thorough: bool, name: str, model: str
) -> None:
    grader = made(models[model], name)
    jobs = grader._prepare([*zip(cells[: 9 if thorough else 4])])[0]
    answers = [answer for answer, _ in grader.prompts["question"].answers]
    for job, row in zip(jobs, grader.backend.score(jobs, answers, 2_000)(), strict=True):
        assert row == pytest.approx(exhaustive(grader, job.request[0]), abs=1e-4)


@pytest.mark.parametrize(("name", "model"), KINDS)
def test_answers_of_several_tokens_are_scored_whole(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    grader = made(models[model], name, prompt="UMBRELA")
    cell = cells[0]._replace(text="a document", item=cells[0].item._replace(kind="query"))
    jobs = grader._prepare([(cell,)])[0]
    answers = [answer for answer, _ in grader.prompts["query"].answers]
    assert len(jobs[0].tokens) < grader.max_length
    assert grader.backend.score(jobs, answers, 2_000)()[0] == pytest.approx(
        exhaustive(grader, cell), abs=1e-4
    )


def test_the_encoder_output_equals_that_of_transformers(models: dict[str, Path]) -> None:
    for model in ("t5", "t5-relu"):
        backend: Any = made(models[model], "seq2seq").backend
        tokens = torch.randint(3, 300, (3, 21))
        mask = torch.arange(21)[None] < torch.tensor([21, 9, 1])[:, None]
        with torch.inference_mode():
            theirs = backend.model.encoder(tokens, attention_mask=mask.long()).last_hidden_state
            ours = backend.scorer.encode(tokens, mask)
        assert torch.allclose(ours[mask], theirs[mask], atol=1e-5)


def test_the_most_probable_answers_vary_with_the_prompt(models: dict[str, Path], cells: list[Cell]) -> None:
    """Otherwise these tests would show little."""
    grader = made(models["t5"], "seq2seq")
    assert len({answer.rating for batch in grader.grade(cells) for _, answer in batch}) >= 2


def test_an_incompatible_version_of_transformers_is_rejected(
    models: dict[str, Path], cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    grader = made(models["t5"], "seq2seq")
    # Another test's grader may have this model.
    vars(grader.backend).pop("scorer", None)
    activations = {"gelu_pytorch_tanh": torch.tanh}
    monkeypatch.setattr("trecexam.extensions.local_models.t5.ACT2FN", activations)
    with pytest.raises(GraderError, match="computes this model differently from trecexam"):
        list(grader.grade(cells))
