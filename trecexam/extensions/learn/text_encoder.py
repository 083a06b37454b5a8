"""Vectors of texts by the model of the `embedding` grader, in bfloat16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.graders.embedding import load_model
from trecexam.graders.fixed_shapes import FixedShapes
from trecexam.graders.weights import OFFLINE_MODEL, config_digest, embedding_folder, weights_digest


class TextEncoder:
    """Encodes texts with a sentence-transformers model in bfloat16, which halves the time on a CPU.

    Args:
        model: a folder (absolute or relative to `root`), a hub id, or None for the extra `offline`.
        root: of the track.
        revision: of the hub id; None for the newest one that is here.

    Raises:
        GraderError: the model is not here and cannot be fetched.
    """

    def __init__(
        self, model: str | None, root: Path, device: str | None = None, revision: str | None = None
    ) -> None:
        self.folder = embedding_folder(model, revision, root)
        self.name = model or OFFLINE_MODEL
        self.device = device

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """All settings that can change a vector, apart from rounding."""
        return {
            "weights_sha256": weights_digest(self.folder),
            "config_sha256": config_digest(self.folder),
            "dtype": "bfloat16",
        }

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension); texts past the model's length are cut at their end.

        Vectors are a function of their text alone, to the last bit, as those of the `embedding` grader.
        """
        return self._shaped.encode(texts)

    @cached_property
    def _shaped(self) -> FixedShapes:
        return FixedShapes(load_model(self.folder, self.device, dtype="bfloat16"))
