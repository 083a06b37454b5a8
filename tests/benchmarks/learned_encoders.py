"""Other encoders than all-MiniLM-L6-v2, for benchmarks: what `trecexam learn` is worth with each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from trecexam.extensions.learn.arithmetic.features import Vectors
from trecexam.extensions.learn.text_encoder import TextEncoder
from trecexam.graders.fixed_shapes import EncodedText

#: Of a text: the vectors of its tokens.
Tokens = Callable[[str], Vectors]


class TokenMeans:
    """Encodes a text as the mean of its tokens' vectors, which are the same in every text.

    Args:
        name: of the encoder.
        tokens: the vectors of a text's tokens.
        dimension: of the vectors.
    """

    def __init__(self, name: str, tokens: Tokens, dimension: int) -> None:
        self.name = name
        self.identity: Mapping[str, object] = {"benchmark": name}
        self._tokens = tokens
        self._dimension = dimension

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]:
        for text in texts:
            tokens = self._tokens(text)
            # A text of unknown words alone is like all others equally.
            mean = tokens.mean(axis=0) if len(tokens) else np.ones(self._dimension, np.float32)
            yield text, EncodedText(unit(mean[None])[0], unit(tokens))


class Reduced:
    """An encoder's vectors along their principal axes over a collection.

    Args:
        encoder: whose.
        vectors: of the collection.
        dimension: how many axes are kept.
    """

    def __init__(self, encoder: TextEncoder, vectors: Vectors, dimension: int) -> None:
        self.name = f"{encoder.name.rpartition('/')[2]}, {dimension} principal axes"
        self.identity: Mapping[str, object] = {**encoder.identity, "axes": dimension}
        self._encoder = encoder
        _, _, axes = np.linalg.svd(vectors, full_matrices=False)
        self._axes = axes[:dimension].T

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]:
        for text, encoded in self._encoder.encode(texts):
            yield (
                text,
                EncodedText(unit(encoded.vector[None] @ self._axes)[0], unit(encoded.tokens @ self._axes)),
            )


def latent_semantic(texts: Sequence[str], dimension: int) -> TokenMeans:
    """TF-IDF and truncated SVD (Deerwester et al., "Indexing by latent semantic analysis", 1990).

    A word's vector is its row of the right singular vectors, times its inverse document frequency.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    matrix = vectorizer.fit_transform(texts)
    axes = TruncatedSVD(dimension, random_state=0).fit(matrix).components_.T
    vectors = (axes * vectorizer.idf_[:, None]).astype(np.float32)
    column, analyze = vectorizer.vocabulary_, vectorizer.build_analyzer()
    return TokenMeans(
        f"TF-IDF and SVD, {dimension} axes",
        lambda text: vectors[[column[word] for word in analyze(text) if word in column]],
        dimension,
    )


def word_embeddings(encoder: TextEncoder) -> TokenMeans:
    """The means of the vectors that MiniLM has of word pieces before they see each other."""
    model = encoder._model
    table = model[0].auto_model.embeddings.word_embeddings.weight.detach().float().numpy()
    pieces = partial(model.tokenizer, add_special_tokens=False, truncation=True, max_length=256)
    return TokenMeans(
        "word pieces of all-MiniLM-L6-v2", lambda text: table[pieces(text)["input_ids"]], table.shape[1]
    )


def word_llama(folder: Path) -> TokenMeans:
    """WordLlama's static vectors of word pieces.

    Args:
        folder: `wordllama/` of the wheel, unpacked: weights and tokenizer are read, no code is run.
    """
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    pieces = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    vectors = table.astype(np.float32)
    return TokenMeans(
        "WordLlama l2_supercat_256, static",
        lambda text: vectors[pieces.encode(text, add_special_tokens=False).ids],
        vectors.shape[1],
    )


def unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)
