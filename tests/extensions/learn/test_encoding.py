"""Vectors of texts, which a track keeps."""

from __future__ import annotations

import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder

from trecexam.extensions.learn import encoding
from trecexam.extensions.learn.encoding import encode
from trecexam.extensions.learn.learned_pool import track_encoder
from trecexam.extensions.local_models.loading import best_dtype
from trecexam.graders import weights
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import offline_folder, processor_dtype
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder

TEXTS = ["heat", "A heat pump moves heat from the cold air outside into a warm house, which costs little."]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "state" / "vectors.sqlite"


def n_encoded(path: Path, texts: list[str], encoder: WordEncoder | None = None) -> int:
    """How many of these texts had to be encoded."""
    words = WordEncoder() if encoder is None else encoder
    before = len(words.encoded)
    assert encode(path, words, texts).shape == (len(texts), 16)
    return len(words.encoded) - before


def test_vectors_equal_those_of_the_embedding_grader_up_to_rounding(learnable: Path) -> None:
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    with OpenTrack(open_folder(learnable)) as loaders:
        encoder = track_encoder(loaders.first.load())
    exact = EmbeddingGrader(folder).embed(TEXTS)
    encoded = encode(learnable / "vectors.sqlite", encoder, TEXTS)
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


def test_kept_vectors_do_not_depend_on_the_order_of_texts(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["who?", *TEXTS, "A pump.", "Winter is cold here."]
    whole = encode(tmp_path / "whole.sqlite", WordEncoder(), texts)
    assert np.linalg.norm(whole, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    monkeypatch.setattr(encoding, "BLOCK", 2)
    assert n_encoded(kept, texts[3:]) == 2
    told: list[tuple[int, int]] = []
    encode(kept, WordEncoder(), texts[::-1], lambda done, of: told.append((done, of)))
    assert told == [(0, 3), (2, 3), (3, 3)]
    assert n_encoded(kept, texts) == 0
    np.testing.assert_array_equal(encode(kept, WordEncoder(), texts), whole)
    assert encode(kept, WordEncoder(), []).shape[0] == 0


def test_stopping_keeps_the_vectors_encoded_so_far(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "BLOCK", 2)

    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(kept, WordEncoder(), ["a", "b", "c"], stop)
    assert n_encoded(kept, ["a", "b", "c"]) == 1


class OtherEncoder(WordEncoder):
    identity = {"words": 2}  # noqa: RUF012


def test_an_encoder_finds_its_own_vectors_alone(kept: Path) -> None:
    assert n_encoded(kept, ["a", "b"]) == 2
    assert n_encoded(kept, ["a"], OtherEncoder()) == 1
    assert n_encoded(kept, ["a", "b", "c"]) == 1


def test_after_any_damage_a_vector_is_unchanged_or_encoded_again(kept: Path) -> None:
    rng = random.Random(0)
    texts = [f"text {number}" for number in range(60)]
    whole = encode(kept, WordEncoder(), texts)
    content = kept.read_bytes()
    for number in range(150):
        damaged = bytearray(content)
        # The first page has the schema.
        bit = rng.randrange(8 * (len(content) if number % 3 else 4096))
        damaged[bit // 8] ^= 1 << bit % 8
        kept.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        np.testing.assert_array_equal(encode(kept, WordEncoder(), texts), whole)


def test_without_a_file_to_write_all_is_encoded(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "file").mkdir(parents=True)
    for path in (tmp_path / "file" / "vectors.sqlite", tmp_path / "folder"):
        assert [n_encoded(path, ["a"]), n_encoded(path, ["a"])] == [1, 1]


def test_a_file_that_another_process_writes_is_waited_for_and_then_left(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert n_encoded(kept, ["a"]) == 1
    monkeypatch.setattr(encoding, "PATIENCE", 0.05)
    other = sqlite3.connect(kept, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert n_encoded(kept, ["a", "b"]) == 2
    other.execute("ROLLBACK")
    other.close()
    assert n_encoded(kept, ["a", "b"]) == 1


def test_several_processes_can_keep_vectors_at_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine two seconds are over before the others have written; then vectors are left.
    monkeypatch.setattr(encoding, "PATIENCE", 60.0)
    assert n_encoded(kept, ["first"]) == 1
    parts = [[f"{number}" for number in range(start, start + 40)] for start in range(0, 400, 20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda texts: n_encoded(kept, texts), parts))
    assert n_encoded(kept, [text for part in parts for text in part]) == 0
