"""Vectors of a track's texts; each text is encoded once and cached in the track."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.graders.kept_vectors import FILE, KeptVectors
from trecexam.tables.text import plural

#: Texts that are encoded until they are kept and counted. With 512 encoding takes 4% less.
BLOCK = 64

#: Called with how many texts are encoded, and of how many.
Encoded = Callable[[int, int], None]


class Encoder(Protocol):
    """The interface of encoders, see `TextEncoder`."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, texts: Sequence[str]) -> Vectors: ...


class NoEncoder:
    """An encoder that only uses cached vectors and raises an error for others.

    Args:
        encoder: made the vectors.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.identity = encoder.identity
        self.name = getattr(encoder, "name", None)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Never encodes.

        Raises:
            TrecexamError: always.
        """
        raise TrecexamError(
            f"{plural(len(texts), 'text')} not encoded yet: run `trecexam learn` or `trecexam learned-next` "
            f"first"
        )


class TrackVectors:
    """The vectors of texts; cached as 16-bit numbers, more precise than bfloat16."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self._folder = folder
        self._kept = KeptVectors(folder / FILE, encoder.identity, "<f2")
        self._vectors: dict[str, Vectors] = {}

    def encode(self, texts: Collection[str], progress: Encoded | None = None) -> int:
        """Encodes texts without a vector; returns their number."""
        self._vectors.update(self._kept.get([text for text in texts if text not in self._vectors]))
        missing = sorted({text for text in texts if text not in self._vectors}, key=lambda t: (len(t), t))
        if not missing:
            return 0
        with suppress(OSError):
            # Where nothing can be written, all is encoded again.
            self._folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            made = dict(zip(block, self.encoder.encode(block).astype(np.float16), strict=True))
            self._vectors.update(made)
            self._kept.add(made)
            if progress is not None:
                progress(start + len(block), len(missing))
        return len(missing)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts that were given to `encode`, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, 0), np.float32)
        vectors = np.array([self._vectors[text] for text in texts], np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
