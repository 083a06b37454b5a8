"""Vectors of texts as the `embedding` grader makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import (
    OFFLINE_MODEL,
    config_digest,
    embedding_folder,
    processor_dtype,
    weights_digest,
)


class TextEncoder:
    """Encodes texts with a sentence-transformers model, as the `embedding` grader that has this model does.

    Args:
        model: a folder (absolute or relative to `root`), a hub id, or None for the extra `offline`.
        root: of the track.
        revision: of the hub id; None for the newest one that is here.
        dtype: of the model's numbers; None for what the processor computes in.

    Raises:
        GraderError: the model is not here and cannot be fetched.
    """

    def __init__(
        self,
        model: str | None,
        root: Path,
        device: str | None = None,
        revision: str | None = None,
        dtype: str | None = None,
    ) -> None:
        folder = embedding_folder(model, revision, root)
        self.name = model or OFFLINE_MODEL
        self._embedder = EmbeddingGrader(folder, device=device, dtype=dtype or processor_dtype())

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """All settings that can change a vector, apart from rounding."""
        return {
            "weights_sha256": weights_digest(self._embedder.folder),
            "config_sha256": config_digest(self._embedder.folder),
            "dtype": self._embedder.dtype,
        }

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension); see `EmbeddingGrader.embed`."""
        return self._embedder.embed(texts)
