"""Tests that need a GPU. Run: bash tests/run.sh -m gpu tests/gpu"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support import ask
from tiny_models import save_llama, save_t5

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from trecexam.config import GraderSection  # noqa: E402
from trecexam.graders import Answer, Cell, create  # noqa: E402


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {"seq2seq": save_t5(root / "t5"), "causal": save_llama(root / "llama")}


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    rng = random.Random(5)
    words = ["answer", "relevant", "complete", "gaps", "context", "question"]
    return [
        ask(
            " ".join(rng.choices(words, k=rng.randint(3, 60))),
            f"question {number}?",
            number,
            doc_id=f"d{place}",
        )
        for place in range(60)
        for number in range(5)
    ]


def grades(models: dict[str, Path], name: str, cells: list[Cell], **settings: Any) -> dict[Cell, Answer]:
    grader = create(GraderSection(name=name, model=str(models[name]), **settings), Path())
    return {cell: answer for batch in grader.grade(cells) for cell, answer in batch}


@pytest.mark.parametrize("name", ["seq2seq", "causal"])
def test_a_gpu_gives_the_same_grades_as_a_cpu(models: dict[str, Path], cells: list[Cell], name: str) -> None:
    cpu = grades(models, name, cells, device="cpu", dtype="float32")
    gpu = grades(models, name, cells, device="cuda", dtype="float32")
    for cell, answer in cpu.items():
        assert gpu[cell].probabilities == pytest.approx(answer.probabilities, abs=1e-3)


@pytest.mark.parametrize("name", ["seq2seq", "causal"])
def test_bfloat16_changes_few_grades(models: dict[str, Path], cells: list[Cell], name: str) -> None:
    exact = grades(models, name, cells, device="cuda", dtype="float32")
    rounded = grades(models, name, cells, device="cuda", dtype="bfloat16")
    assert sum(rounded[cell].rating == answer.rating for cell, answer in exact.items()) >= 0.9 * len(cells)


def test_a_nearly_full_gpu_still_grades(models: dict[str, Path], cells: list[Cell]) -> None:
    expected = grades(models, "seq2seq", cells, device="cuda", dtype="float32")
    free, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(64 * 2**20 / total)
    try:
        found = grades(models, "seq2seq", cells, device="cuda", dtype="float32", max_batch_tokens=2**20)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert {cell: answer.rating for cell, answer in found.items()} == {
        cell: answer.rating for cell, answer in expected.items()
    }
    assert free
