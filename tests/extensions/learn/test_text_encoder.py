"""Vectors of texts and tokens with the model of the extra `offline`."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from learnable import make_learnable

import trecexam
from trecexam.extensions.learn.encoding import TrackVectors
from trecexam.extensions.learn.text_encoder import TextEncoder
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import offline_folder

TEXTS = ["heat", "A heat pump moves heat from the cold air outside into a warm house, which costs little."]


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    return TextEncoder(None, Path())


def test_vectors_are_those_of_the_embedding_grader_but_for_rounding(encoder: TextEncoder) -> None:
    folder = offline_folder()
    assert folder is not None
    exact = EmbeddingGrader(folder).embed(TEXTS)
    encoded = dict(encoder.encode(TEXTS))
    for text, vector in zip(TEXTS, exact, strict=True):
        assert float(encoded[text].vector @ vector) > 0.999
        assert np.linalg.norm(encoded[text].vector) == pytest.approx(1, abs=1e-5)


def test_the_model_works_in_bfloat16_and_its_identity_says_so(encoder: TextEncoder) -> None:
    assert "torch.bfloat16" in {str(numbers.dtype) for numbers in encoder._shaped._model.parameters()}
    assert encoder.identity["dtype"] == "bfloat16"


def test_vectors_are_the_texts_own_to_the_last_bit_whatever_else_is_encoded_with_it(
    encoder: TextEncoder,
) -> None:
    words = TEXTS[1].split()
    texts = [*TEXTS, *(" ".join(words[:n]) for n in range(2, len(words))), " ".join(words * 40)]
    alone = {text: dict(encoder.encode([text]))[text] for text in texts}
    # Beginning, heat, end.
    assert alone["heat"].tokens.shape == (3, 384)
    assert np.linalg.norm(alone["heat"].tokens, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    for seed in range(3):
        for text, encoded in encoder.encode(random.Random(seed).sample(texts, len(texts) - seed)):
            assert encoded.vector.tobytes() == alone[text].vector.tobytes()
            assert encoded.tokens.tobytes() == alone[text].tokens.tobytes()


def test_a_model_that_pads_at_the_left_encodes_each_text_by_itself(tmp_path: Path) -> None:
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    left = tmp_path / "left"
    shutil.copytree(folder, left, copy_function=os.symlink)
    settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"padding_side": "left"}
    (left / "tokenizer_config.json").unlink()
    (left / "tokenizer_config.json").write_text(json.dumps(settings))
    encoder = TextEncoder(str(left), Path())
    together = dict(encoder.encode([*TEXTS, "A pump."]))
    assert not encoder._shaped._pads
    alone = dict(encoder.encode(TEXTS[:1]))["heat"]
    assert together["heat"].vector.tobytes() == alone.vector.tobytes()
    assert together["heat"].tokens.tobytes() == alone.tokens.tobytes()
    usual = dict(TextEncoder(None, Path()).encode(["heat"]))["heat"]
    assert alone.tokens.shape == (3, 384)
    assert float(usual.vector @ alone.vector) > 0.999


def test_what_a_track_keeps_of_texts_hangs_on_no_order(encoder: TextEncoder, tmp_path: Path) -> None:
    passages = {"heat": [TEXTS[1], "A pump.", "Winter is cold here."], "cold": ["Winter is cold here."]}
    whole, parts = (TrackVectors(made_folder(tmp_path / name), encoder) for name in ("whole", "parts"))
    whole.encode(passages, ["who?", "why?"])
    parts.encode({"cold": passages["cold"]}, ["why?"])
    parts.encode({"heat": passages["heat"][:2]}, [])
    parts.encode(passages, ["who?"])
    kept = TrackVectors(tmp_path / "parts", encoder)
    assert kept.encode(passages, ["who?", "why?"]) == 0
    for query, texts in passages.items():
        asked = [*texts, query, "who?", "why?"]
        assert whole.of(asked).tobytes() == parts.of(asked).tobytes() == kept.of(asked).tobytes()
        assert whole.max_sims(query, texts) == parts.max_sims(query, texts) == kept.max_sims(query, texts)


def made_folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_what_is_learned_is_the_same_in_whatever_order_runs_came(
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
            {name: (root / "out" / name).read_bytes() for name in ("learned.tsv", "learned.qrels")}
        )
    assert outputs[0] == outputs[1]
