"""Vectors of texts with the model of the extra `offline`."""

from __future__ import annotations

import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder

from trecexam.extensions.learn import encoding
from trecexam.extensions.learn.encoding import TrackVectors
from trecexam.extensions.learn.text_encoder import TextEncoder
from trecexam.extensions.local_models.loading import best_dtype
from trecexam.graders import weights
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import offline_folder, processor_dtype

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


def test_cached_vectors_do_not_depend_on_the_order_of_texts(
    encoder: TextEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["who?", *TEXTS, "A pump.", "Winter is cold here."]
    whole, parts = (TrackVectors(tmp_path / name, encoder) for name in ("whole", "parts"))
    assert whole.encode(texts) == 5
    monkeypatch.setattr(encoding, "BLOCK", 2)
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
    monkeypatch.setattr(encoding, "BLOCK", 2)

    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    words = WordEncoder()
    with pytest.raises(KeyboardInterrupt):
        TrackVectors(tmp_path, words).encode(["a", "b", "c"], stop)
    assert TrackVectors(tmp_path, words).encode(["a", "b", "c"]) == 1
    assert words.encoded == ["a", "b", "c"]


class OtherEncoder(WordEncoder):
    identity = {"words": 2}  # noqa: RUF012


def test_an_encoder_finds_its_own_vectors_alone(tmp_path: Path) -> None:
    assert TrackVectors(tmp_path, WordEncoder()).encode(["a", "b"]) == 2
    assert TrackVectors(tmp_path, OtherEncoder()).encode(["a"]) == 1
    assert TrackVectors(tmp_path, WordEncoder()).encode(["a", "b", "c"]) == 1


def test_after_any_damage_a_vector_is_unchanged_or_encoded_again(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [f"text {number}" for number in range(60)]
    whole = TrackVectors(tmp_path, WordEncoder())
    whole.encode(texts)
    path = tmp_path / "vectors.sqlite"
    content = path.read_bytes()
    for number in range(150):
        damaged = bytearray(content)
        # The first page has the schema.
        bit = rng.randrange(8 * (len(content) if number % 3 else 4096))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        again = TrackVectors(tmp_path, WordEncoder())
        again.encode(texts)
        np.testing.assert_array_equal(again.of(texts), whole.of(texts))


def test_without_a_file_to_write_all_is_encoded(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "vectors.sqlite" / "file").mkdir(parents=True)
    for folder in (tmp_path / "file", tmp_path):
        vectors = TrackVectors(folder, WordEncoder())
        assert vectors.encode(["a"]) == 1
        assert len(vectors.of(["a"])) == 1


def test_a_file_that_another_process_writes_is_waited_for_and_then_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    TrackVectors(tmp_path, WordEncoder()).encode(["a"])
    monkeypatch.setattr(encoding, "PATIENCE", 0.05)
    other = sqlite3.connect(tmp_path / "vectors.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert TrackVectors(tmp_path, WordEncoder()).encode(["a", "b"]) == 2
    other.execute("ROLLBACK")
    other.close()
    assert TrackVectors(tmp_path, WordEncoder()).encode(["a", "b"]) == 1


def test_several_processes_can_keep_vectors_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine two seconds are over before the others have written; then vectors are left.
    monkeypatch.setattr(encoding, "PATIENCE", 60.0)
    TrackVectors(tmp_path, WordEncoder()).encode(["first"])
    parts = [[f"{number}" for number in range(start, start + 40)] for start in range(0, 400, 20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda texts: TrackVectors(tmp_path, WordEncoder()).encode(texts), parts))
    assert TrackVectors(tmp_path, WordEncoder()).encode([text for part in parts for text in part]) == 0


def test_the_oldest_vectors_go_where_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "MOST", 3)
    for text in "abcde":
        TrackVectors(tmp_path, WordEncoder()).encode([text])
    words = WordEncoder()
    assert TrackVectors(tmp_path, words).encode([*"abcde"]) == 2
    assert words.encoded == ["a", "b"]
