"""Vectors of a track's texts; each text is encoded once and cached in the track."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.features.fill.records import Encoded
from trecexam.graders.embedding import FILE, KeptVectors, spread

#: Texts that are encoded until they are kept and counted. With 512 encoding takes 4% less.
BLOCK = 64


class Encoder(Protocol):
    """The interface of encoders, see `TextEncoder`. One may have a `maker`, too, and a `name`."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, texts: Sequence[str]) -> Vectors: ...


class TrackVectors:
    """The vectors of texts, kept beside those of the `embedding` grader; where that has them, they are taken.

    In memory they are 16-bit numbers, more precise than bfloat16.
    """

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self._folder = folder
        self._vectors: dict[str, Vectors] = {}

    @cached_property
    def _kept(self) -> KeptVectors:
        return KeptVectors(self._folder / FILE, getattr(self.encoder, "maker", self.encoder.identity))

    def encode(self, texts: Collection[str], progress: Encoded | None = None) -> int:
        """Encodes texts without a vector; returns their number."""
        new = [text for text in texts if text not in self._vectors]
        if not new:
            return 0
        self._vectors.update(_halved(self._kept.get(new)))
        missing = sorted({text for text in texts if text not in self._vectors}, key=lambda t: (len(t), t))
        if not missing:
            return 0
        with suppress(OSError):
            # Where nothing can be written, all is encoded again.
            self._folder.mkdir(parents=True, exist_ok=True)
        show, done = progress or (lambda done, of: None), 0
        show(0, len(missing))
        for block in spread([missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]):
            made = dict(zip(block, self.encoder.encode(block), strict=True))
            self._vectors.update(_halved(made))
            self._kept.add(made)
            done += len(block)
            show(done, len(missing))
        return len(missing)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts that were given to `encode`, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, 0), np.float32)
        vectors = np.array([self._vectors[text] for text in texts], np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _halved(vectors: Mapping[str, Vectors]) -> dict[str, Any]:
    return {text: vector.astype(np.float16) for text, vector in vectors.items()}
