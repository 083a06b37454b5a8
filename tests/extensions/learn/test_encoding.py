"""Vectors of texts, which a track keeps."""

from __future__ import annotations

import random
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


def n_encoded(folder: Path, texts: list[str], encoder: WordEncoder | None = None) -> int:
    """How many of these texts had to be encoded."""
    words = WordEncoder() if encoder is None else encoder
    before = len(words.encoded)
    assert encode(folder, words, texts).shape == (len(texts), 16)
    return len(words.encoded) - before


def test_vectors_equal_those_of_the_embedding_grader_up_to_rounding(learnable: Path) -> None:
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    with OpenTrack(open_folder(learnable)) as loaders:
        encoder = track_encoder(loaders.first.load())
    exact = EmbeddingGrader(folder).embed(TEXTS)
    encoded = encode(learnable, encoder, TEXTS)
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["who?", *TEXTS, "A pump.", "Winter is cold here."]
    whole = encode(tmp_path / "whole", WordEncoder(), texts)
    assert np.linalg.norm(whole, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    monkeypatch.setattr(encoding, "BLOCK", 2)
    assert n_encoded(tmp_path, texts[3:]) == 2
    told: list[tuple[int, int]] = []
    encode(tmp_path, WordEncoder(), texts[::-1], lambda done, of: told.append((done, of)))
    # The longest text, which is left over, comes first.
    assert told == [(0, 3), (1, 3), (3, 3)]
    assert n_encoded(tmp_path, texts) == 0
    np.testing.assert_array_equal(encode(tmp_path, WordEncoder(), texts), whole)
    assert encode(tmp_path, WordEncoder(), []).shape[0] == 0


def test_a_stopped_process_keeps_all_vectors_and_a_killed_one_all_but_the_last_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "BLOCK", 2)
    texts = ["a", "b", "c"]

    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(tmp_path, WordEncoder(), texts, stop)
    assert n_encoded(tmp_path, texts) == 2
    monkeypatch.setattr(encoding, "LOST", 0.0)
    # Another process sees what this one has encoded so far, and its vectors stay.
    left = []
    encode(
        tmp_path / "new", WordEncoder(), texts, lambda *_: left.append(n_encoded(tmp_path / "new", texts[:2]))
    )
    assert left == [2, 0, 0]
    encode(tmp_path / "two", WordEncoder(), texts[:1], lambda *_: n_encoded(tmp_path / "two", texts[1:]))
    assert n_encoded(tmp_path / "two", texts) == 0


class OtherEncoder(WordEncoder):
    identity = {"words": 2}  # noqa: RUF012


def test_an_encoder_finds_its_own_vectors_alone(tmp_path: Path) -> None:
    assert n_encoded(tmp_path, ["a", "b"]) == 2
    assert n_encoded(tmp_path, ["a"], OtherEncoder()) == 1
    assert n_encoded(tmp_path, ["a", "b", "c"]) == 1


def test_after_any_damage_a_vector_is_unchanged_or_encoded_again(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [f"text {number}" for number in range(60)]
    whole = encode(tmp_path, WordEncoder(), texts)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for number in range(50):
        damaged = bytearray(content)
        bit = rng.randrange(8 * len(content))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        np.testing.assert_array_equal(encode(tmp_path, WordEncoder(), texts), whole)
