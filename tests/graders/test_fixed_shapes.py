"""Vectors of texts, and so answers, are bit-identical whatever else is embedded."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import bpe_tokenizer

from converters.records import Item
from trecexam.graders import Cell
from trecexam.graders.embedding import EmbeddingGrader, load_model
from trecexam.graders.support import SupportEmbedding
from trecexam.graders.weights import offline_folder

pytest.importorskip("sentence_transformers", reason="the extra `embedding` is not installed")

WORDS = (Path(__file__).parents[2] / "README.md").read_text().split()


def passages(number: int) -> list[str]:
    """Texts of the README of 1 to 90 words, and one that is longer than the model reads."""
    rng = random.Random(2)
    texts = [" ".join(rng.sample(WORDS, rng.choice((1, 3, 10, 25, 26, 27, 40, 90)))) for _ in range(number)]
    return [*dict.fromkeys(texts), " ".join(WORDS[:600])]


def cells(number: int) -> list[Cell]:
    items = [Item("q", f"q/{i}", question) for i, question in enumerate(("What is a run?", "Who grades?"))]
    return [Cell("q", "", f"d{d}", text, item) for d, text in enumerate(passages(number)) for item in items]


@pytest.fixture(scope="module", params=["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def grader(request: pytest.FixtureRequest) -> EmbeddingGrader:
    return _grader(request.param)


def _grader(dtype: str, **settings: object) -> EmbeddingGrader:
    # Random weights give the same maximum for most words, whatever the batch: a real model is needed.
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    return EmbeddingGrader(folder, device="cpu", dtype=dtype, **settings)  # type: ignore[arg-type]


def test_a_vector_is_bit_identical_alone_in_batches_and_in_any_order(
    grader: EmbeddingGrader, thorough: bool
) -> None:
    texts = passages(10 if thorough else 5)
    alone = {text: grader.embed([text])[0].tobytes() for text in texts}
    for seed in range(2):
        shuffled = random.Random(seed).sample(texts, len(texts) - seed)
        vectors = grader.embed(shuffled)
        assert [
            text for text, vector in zip(shuffled, vectors, strict=True) if vector.tobytes() != alone[text]
        ] == []


def test_answers_do_not_depend_on_how_cells_are_split_over_updates(
    grader: EmbeddingGrader, thorough: bool
) -> None:
    asked = cells(8 if thorough else 3)
    expected = {cell: answer for batch in grader.grade(asked) for cell, answer in batch}
    vectors = {text: vector.tobytes() for text, vector in grader._items.items()}
    assert len(expected) == len(asked)
    for seed in range(2):
        rng = random.Random(seed)
        # In-memory state is lost with the process.
        grader._items = {}
        rest = rng.sample(asked, len(asked))
        answers = {}
        while rest:
            size = rng.randint(1, len(rest))
            update, rest = rest[:size], rest[size:]
            answers.update({cell: answer for batch in grader.grade(update) for cell, answer in batch})
        assert answers == expected
        assert {text: vector.tobytes() for text, vector in grader._items.items()} == vectors


@pytest.mark.slow
def test_support_does_not_depend_on_how_citations_are_split_over_updates() -> None:
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    support = SupportEmbedding(folder, (0.56, 0.74), "cpu")
    asked = [cell._replace(item=cell.item._replace(kind="statement")) for cell in cells(3)]
    together = {cell: answer for batch in support.grade(asked) for cell, answer in batch}
    support._items = {}
    assert {
        cell: answer for cell in asked[::-1] for batch in support.grade([cell]) for _, answer in batch
    } == together


def test_vectors_equal_those_of_sentence_transformers_up_to_rounding(grader: EmbeddingGrader) -> None:
    texts = passages(5)
    published = load_model(grader.folder, "cpu", "float32").encode(texts, normalize_embeddings=True)
    assert np.abs(published - grader.embed(texts)).max() < (1e-6 if grader.dtype == "float32" else 0.01)


def test_bfloat16_is_in_the_identity_and_that_of_float32_is_unchanged() -> None:
    assert "dtype" not in _grader("float32").identity
    assert _grader("bfloat16").identity == {**_grader("float32").identity, "dtype": "bfloat16"}


@pytest.mark.parametrize("first", [None, "query: "])
@pytest.mark.slow
def test_a_vector_is_the_same_with_any_number_of_threads(
    tmp_path: Path, threads: Callable[[int], None], first: str | None
) -> None:
    embedder = _grader("float32")
    embedder.folder = _of_silu(tmp_path, first)
    texts = [" ".join(WORDS[:number]) for number in range(60, 120, 7)]
    vectors = []
    for number in (1, 2, 3, 6):
        threads(number)
        vectors.append(embedder.embed(texts).tobytes())
    assert len(set(vectors)) == 1


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
    expected = embedder.embed(passages(3)).tobytes()
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(lambda _: embedder.embed(passages(3)).tobytes(), range(6)))
        # A new thread has torch's default number.
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 4
    finally:
        torch.set_num_threads(before)
    assert set(made) == {expected}


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


def _of_silu(folder: Path, first: str | None) -> Path:
    """A model whose activation torch splits among threads.

    Args:
        first: a prompt that precedes each text.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import Qwen3Config, Qwen3Model

    tokenizer = bpe_tokenizer(chat=False)
    torch.manual_seed(3)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=1_091,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=512,
        initializer_range=0.1,
    )
    Qwen3Model(config).save_pretrained(folder / "words")
    tokenizer.save_pretrained(folder / "words")
    prompts = {"prompts": {"first": first}, "default_prompt_name": "first"} if first else {}
    modules = [Transformer(str(folder / "words")), Pooling(32)]
    SentenceTransformer(modules=modules, device="cpu", **prompts).save(str(folder / "model"))
    return folder / "model"


def test_no_texts_give_no_vectors(grader: EmbeddingGrader) -> None:
    assert len(grader.embed([])) == 0
