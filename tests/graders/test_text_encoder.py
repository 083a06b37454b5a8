"""Vectors of texts and tokens with the model of the extra `offline`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.text_encoder import TextEncoder
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
    assert {str(numbers.dtype) for numbers in encoder._model.parameters()} == {"torch.bfloat16"}
    assert encoder.identity["dtype"] == "bfloat16"


def test_tokens_are_the_texts_own_whatever_else_is_encoded_with_it(encoder: TextEncoder) -> None:
    together, alone = (dict(encoder.encode(texts))["heat"] for texts in (TEXTS, TEXTS[:1]))
    # Beginning, heat, end.
    assert together.tokens.shape == alone.tokens.shape == (3, 384)
    assert (together.tokens * alone.tokens).sum(axis=1) == pytest.approx(np.ones(3), abs=0.01)
