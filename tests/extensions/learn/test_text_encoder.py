"""Vectors of texts with the model of the extra `offline`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable

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
