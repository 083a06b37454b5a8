"""Vectors of texts with the model of the extra `offline`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from learnable import WordEncoder, make_learnable
from near import near

import trecexam
from trecexam.extensions.learn.encoding import TrackVectors
from trecexam.extensions.learn.learned_pool import track_encoder
from trecexam.extensions.learn.text_encoder import TextEncoder
from trecexam.extensions.local_models.loading import best_dtype
from trecexam.graders import weights
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import offline_folder, processor_dtype
from trecexam.track import selection

TEXTS = ["heat", "A heat pump moves heat from the cold air outside into a warm house, which costs little."]


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    return TextEncoder(None, Path())


def test_vectors_equal_those_of_the_embedding_grader_up_to_rounding(encoder: TextEncoder) -> None:
    folder = offline_folder()
    assert folder is not None
    exact = EmbeddingGrader(folder).embed(TEXTS)
    encoded = encoder.encode(TEXTS)
    assert encoded.shape == (2, 384)
    assert (encoded * exact).sum(axis=1).min() > 0.999
    assert np.linalg.norm(encoded, axis=1) == pytest.approx(np.ones(2), abs=1e-5)


@pytest.mark.parametrize("limit", ["AVX2", "AVX512_CORE_VNNI"])
def test_a_processor_without_bfloat16_encodes_in_float32(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert processor_dtype() == "float32"
    assert best_dtype("auto", "cpu") == torch.float32
    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    encoder = TextEncoder(None, Path())
    assert encoder.identity["dtype"] == "float32"
    assert encoder.maker["dtype"] == "float32"


@pytest.mark.parametrize(("flags", "dtype"), [("fma avx2", "float32"), ("avx512_bf16", "bfloat16")])
def test_the_flags_of_the_processor_say_what_it_computes_in(
    monkeypatch: pytest.MonkeyPatch, flags: str, dtype: str
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(weights, "_of_processor", lambda key: flags)
    assert processor_dtype() == dtype
    assert str(best_dtype("auto", "cpu")) == f"torch.{dtype}"


def test_vectors_of_the_embedding_grader_are_not_made_again(tmp_path: Path) -> None:
    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    root = make_learnable(tmp_path / "track")
    with trecexam.open_track(root) as track:
        track.update()
        assert selection(track).loader().grader.identity["grader"] == "embedding"
        encoder = track_encoder(selection(track).graded())
        assert encoder.identity["dtype"] == "float32"
        passages = [json.loads(line)["text"] for line in (root / "passages.jsonl").read_text().splitlines()]
        vectors = TrackVectors(root / ".trecexam", encoder)
        assert vectors.encode(passages) == 0
    assert np.allclose(vectors.of(passages), encoder.encode(passages), atol=1e-3)


def test_a_vector_does_not_depend_on_the_other_texts_up_to_rounding(
    encoder: TextEncoder,
) -> None:
    words = TEXTS[1].split()
    texts = [*TEXTS, *(" ".join(words[:n]) for n in range(2, len(words))), " ".join(words * 40)]
    alone = {text: encoder.encode([text])[0] for text in texts}
    for seed in range(3):
        sample = random.Random(seed).sample(texts, len(texts) - seed)
        for text, vector in zip(sample, encoder.encode(sample), strict=True):
            assert float(vector @ alone[text]) > 0.999


def test_cached_vectors_do_not_depend_on_the_order_of_texts(
    encoder: TextEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["who?", *TEXTS, "A pump.", "Winter is cold here."]
    whole, parts = (TrackVectors(tmp_path / name, encoder) for name in ("whole", "parts"))
    assert whole.encode(texts) == 5
    monkeypatch.setattr("trecexam.extensions.learn.encoding.BLOCK", 2)
    assert parts.encode(texts[3:]) == 2
    told: list[tuple[int, int]] = []
    assert parts.encode(texts[::-1], lambda done, of: told.append((done, of))) == 3
    assert told == [(0, 3), (2, 3), (3, 3)]
    kept = TrackVectors(tmp_path / "parts", encoder)
    assert kept.encode(texts) == 0
    vectors = whole.of(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    assert (vectors * parts.of(texts)).sum(axis=1).min() > 0.999
    np.testing.assert_array_equal(kept.of(texts), parts.of(texts))
    assert kept.of([]).shape[0] == 0


def test_stopping_keeps_the_vectors_encoded_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trecexam.extensions.learn.encoding.BLOCK", 2)

    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    words = WordEncoder()
    with pytest.raises(KeyboardInterrupt):
        TrackVectors(tmp_path, words).encode(["a", "b", "c"], stop)
    assert TrackVectors(tmp_path, words).encode(["a", "b", "c"]) == 1
    assert words.encoded == ["a", "b", "c"]


def test_any_first_texts_are_a_fair_sample_of_short_and_long_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trecexam.extensions.learn.encoding.BLOCK", 4)
    texts = ["word " * n + str(n) for n in range(1, 201)]
    words = WordEncoder()
    TrackVectors(tmp_path, words).encode(texts)
    lengths = [len(text) for text in words.encoded]
    mean = sum(lengths) / len(lengths)
    for first in range(20, 201, 4):
        assert sum(lengths[:first]) / first == pytest.approx(mean, rel=0.2)


@pytest.mark.slow
def test_learned_labels_do_not_depend_on_the_order_in_which_runs_came(
    encoder: TextEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trecexam.extensions.learn.learned_pool.TextEncoder", lambda *_: encoder)
    outputs = []
    for order in (["abcd"], ["d", "b", "c", "a"]):
        root = make_learnable(tmp_path / str(len(order)))
        (root / "runs").rename(root / "waiting")
        (root / "runs").mkdir()
        with trecexam.open_track(root) as track:
            for names in order:
                for name in names:
                    (root / "waiting" / f"{name}.run").rename(root / "runs" / f"{name}.run")
                # After each drop.
                (root / "out").mkdir(exist_ok=True)
                track.learn.labels().write(root / "out")
        outputs.append(
            "".join((root / "out" / name).read_text() for name in ("learned.tsv", "learned.qrels"))
        )
    assert near(*outputs)
