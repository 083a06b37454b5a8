"""Vectors of a track's texts: each text is encoded once, and remembered with the track."""

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
    """What encodes texts, see `TextEncoder`."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, texts: Sequence[str]) -> Vectors: ...


class NoEncoder:
    """In place of an encoder where nobody waits: what has no vector yet is not encoded, but refused.

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
            f"{plural(len(texts), 'text')} not encoded yet: run `trecexam learn` or `trecexam "
            "learned-next` once"
        )


class TrackVectors:
    """The vectors of texts. Kept ones have 16 bits a number, more than bfloat16 has."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self._folder = folder
        self._kept = KeptVectors(folder / FILE, encoder.identity, "<f2")
        self._vectors: dict[str, Vectors] = {}

    def encode(self, texts: Collection[str], progress: Encoded | None = None) -> int:
        """Encodes what has no vector yet; gives how many texts that were."""
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
