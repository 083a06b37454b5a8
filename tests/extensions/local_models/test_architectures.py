"""Decoder-only architectures against plain forward passes of transformers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from architectures import MODELS, saved
from exhaustive import exhaustive, made
from tiny_models import bpe_tokenizer

from trecexam.errors import GraderError
from trecexam.graders import Cell


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return bpe_tokenizer(chat=False)


#: The way of models that take no tree of answers.
OTHER_WAYS = {
    **dict.fromkeys(("bloom", "mpt", "gpt_neo", "llama4_text", "mamba", "lfm2"), "cache"),
    "rwkv": "rows",
}
#: At every commit: plain, with a window, with learned positions, recurrent, and by distance.
FIRST = ("llama", "gemma2", "gpt_oss", "opt", "mamba", "bloom")


@pytest.mark.parametrize(
    "name",
    [*FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in FIRST)],
)
@pytest.mark.parametrize("prompt", ["QuestionSelfRatedUnanswerablePromptWithChoices", "UMBRELA"])
def test_choices_equal_an_exhaustive_search_in_every_architecture(
    name: str, prompt: str, tmp_path: Path, tokenizer: Any, cells: list[Cell]
) -> None:
    """Ratings of one token and of several; prompts shorter and longer than the models' windows."""
    with warnings.catch_warnings():
        # Some models of transformers emit warnings.
        warnings.simplefilter("ignore")
        grader = made(saved(tmp_path / name, name, tokenizer), "causal", prompt=prompt)
        kind = next(iter(grader.item_kinds))
        cells = [cell._replace(item=cell.item._replace(kind=kind)) for cell in cells[:6]]
        jobs = grader._prepare([*zip(cells)])[0]
        answers = [answer for answer, _ in grader.prompts[kind].answers]
        for job, row in zip(jobs, grader.backend.score(jobs, answers, 10_000)(), strict=True):
            assert row == pytest.approx(exhaustive(grader, job.request[0]), abs=1e-3)
    decoder = grader.backend.scorer  # type: ignore[attr-defined]
    assert decoder.way(64) == OTHER_WAYS.get(name, "tree")


def test_a_model_without_beam_search_is_reported(tmp_path: Path, tokenizer: Any, cells: list[Cell]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grader = made(saved(tmp_path / "rwkv", "rwkv", tokenizer), "causal", decode="beam", max_new_tokens=4)
        with pytest.raises(GraderError, match="transformers cannot write texts with this model"):
            list(grader.grade(cells[:2]))
