"""Vectors of texts: they hardly depend on what else is embedded, and threads are given back."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from converters.records import Item
from trecexam.graders import Cell
from trecexam.graders.embedding import EmbeddingGrader, load_model
from trecexam.graders.weights import offline_folder

pytest.importorskip("sentence_transformers", reason="the extra `embedding` is not installed")

WORDS = (Path(__file__).parents[2] / "README.md").read_text().split()


def passages(number: int) -> list[str]:
    """Texts of the README of 1 to 90 words, and one that is longer than the model reads."""
    rng = random.Random(2)
    texts = [" ".join(rng.sample(WORDS, rng.choice((1, 3, 10, 25, 26, 27, 40, 90)))) for _ in range(number)]
    return [*dict.fromkeys(texts), " ".join(WORDS[:600])]


@pytest.fixture(scope="module", params=["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def grader(request: pytest.FixtureRequest) -> EmbeddingGrader:
    return _grader(request.param)


def _grader(dtype: str, **settings: object) -> EmbeddingGrader:
    # Random weights give the same maximum for most words, whatever the batch: a real model is needed.
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    return EmbeddingGrader(folder, device="cpu", dtype=dtype, **settings)  # type: ignore[arg-type]


def rounding(grader: EmbeddingGrader) -> float:
    """How far two ways to compute a unit vector may be apart."""
    return 1e-6 if grader.dtype == "float32" else 0.01


def test_vectors_equal_those_of_sentence_transformers_up_to_rounding(grader: EmbeddingGrader) -> None:
    texts = passages(5)
    published = load_model(grader.folder, "cpu", "float32").encode(texts, normalize_embeddings=True)
    assert np.abs(published - grader.embed(texts)).max() < rounding(grader)


def test_bfloat16_is_in_the_identity_and_that_of_float32_is_unchanged() -> None:
    assert "dtype" not in _grader("float32").identity
    assert _grader("bfloat16").identity == {**_grader("float32").identity, "dtype": "bfloat16"}


def test_after_a_failed_batch_no_further_batch_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = _grader("float32")
    embedder.embed(["loaded"])
    threads, begun = torch.get_num_threads(), []

    def run(features: object) -> None:
        begun.append(features)
        time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(embedder._shaped, "_run", run)
    with pytest.raises(KeyboardInterrupt):
        embedder.embed([" ".join(WORDS[number : number + 300]) for number in range(60)])
    assert len(begun) < 30
    assert torch.get_num_threads() == threads


@pytest.mark.slow
def test_the_thread_count_of_torch_is_restored_after_concurrent_embedding() -> None:
    embedder = _grader("float32")
    expected = embedder.embed(passages(3))
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(lambda _: embedder.embed(passages(3)), range(6)))
        # A new thread has torch's default number.
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 4
    finally:
        torch.set_num_threads(before)
    assert all(np.abs(vectors - expected).max() < rounding(embedder) for vectors in made)


def test_of_long_passages_fewer_are_embedded_before_storing(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = _grader("float32")
    monkeypatch.setattr(embedder, "embed", lambda texts: np.ones((len(texts), 2), np.float32))

    def largest(characters: int) -> int:
        texts = [f"{number:03}".ljust(characters, "x") for number in range(600)]
        asked = [Cell("q", "", text[:3], text, Item("q", "q/1", "What?")) for text in texts]
        batches = list(embedder.grade(asked))
        assert [cell for batch in batches for cell, _ in batch] == asked
        return max(map(len, batches))

    assert largest(340) == 512
    assert largest(3_000) < 100
    assert largest(300_000) == 1
