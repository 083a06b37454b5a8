from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from support import ask
from tiny_models import save_gpt2, save_llama, save_mt5, save_t5

from trecexam.graders import Cell
from trecexam.graders.prompts import published

_TEXTS = [prompt.template for prompt in published().values() if prompt.group == 1]
WORDS = sorted(set(re.findall("[a-z]+", " ".join(_TEXTS))))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny random models by name, as folders."""
    root = tmp_path_factory.mktemp("models")
    return {
        "t5": save_t5(root / "tiny-t5"),
        "t5-relu": save_t5(root / "tiny-t5-relu", gated=False),
        "t5-tied": save_t5(root / "tiny-t5-tied", tied=True, varied=False),
        "mt5": save_mt5(root / "tiny-mt5"),
        "llama": save_llama(root / "tiny-llama"),
        "llama-base": save_llama(root / "tiny-llama-base", chat=False),
        "gpt2": save_gpt2(root / "tiny-gpt2"),
    }


@pytest.fixture(scope="session")
def cells() -> list[Cell]:
    """Cells of 12 passages of different lengths and 4 questions."""
    rng = random.Random(7)
    questions = [" ".join(rng.sample(WORDS, rng.randint(3, 8))) + "?" for _ in range(4)]
    passages = [" ".join(rng.sample(WORDS, rng.randint(3, 40))) for _ in range(12)]
    return [
        ask(passage, question, number, doc_id=f"d{place}")
        for place, passage in enumerate(passages)
        for number, question in enumerate(questions)
    ]
