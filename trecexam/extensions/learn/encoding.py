"""Vectors of a track's texts; each text is encoded once, and its vector is stored in `.trecexam/`."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.features.fill.records import Encoded
from trecexam.files.kept import read_kept, write_kept
from trecexam.graders.base import identity_digest
from trecexam.graders.embedding import EmbeddingGrader

#: Texts per batch of encoding. 512 would save 4% of the time.
BLOCK = 64
#: Seconds between writes: the encoding time that a killed process loses.
LOST = 30.0


def encode(
    folder: Path, encoder: EmbeddingGrader, texts: Sequence[str], progress: Encoded | None = None
) -> Vectors:
    """Return the unit vectors of texts, shape (len(texts), dimension); encode texts without a stored vector.

    Vectors are stored as 16-bit numbers, which are more precise than bfloat16.

    Args:
        folder: folder of the vector files, one per encoder.
    """
    if not texts:
        return np.empty((0, 1), np.float32)
    path = folder / f"vectors-{identity_digest(encoder.identity).hex()[:16]}"
    key_of = {
        text: hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest() for text in texts
    }
    vectors = _read(path)
    missing = sorted((text for text in key_of if key_of[text] not in vectors), key=lambda t: (len(t), t))
    show, done, written = progress or (lambda done, of: None), 0, time.monotonic()
    try:
        for block in reversed([missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]):
            show(done, len(missing))
            new = encoder.embed(block).astype(np.float16)
            vectors |= zip((key_of[text] for text in block), new, strict=True)
            done += len(block)
            if time.monotonic() > written + LOST:
                _write(path, vectors)
                written = time.monotonic()
    finally:
        if done:
            _write(path, vectors)
    if missing:
        show(done, done)
    rows = np.array([vectors[key_of[text]] for text in texts], np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _read(path: Path) -> dict[bytes, NDArray[np.float16]]:
    content = read_kept(path)
    if content is None:
        return {}
    arrays = np.load(io.BytesIO(content))
    return dict(zip(arrays["keys"].tolist(), arrays["vectors"], strict=True))


def _write(path: Path, vectors: dict[bytes, NDArray[np.float16]]) -> None:
    """Store vectors together with those of other processes, if the file is writable."""
    merged = _read(path) | vectors
    buffer = io.BytesIO()
    np.savez(buffer, keys=np.array([*merged], "V16"), vectors=np.array([*merged.values()]))
    with suppress(TrecexamError):
        write_kept(path, buffer.getvalue())
