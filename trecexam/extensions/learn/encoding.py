"""Vectors of a track's texts; each text is encoded once and kept in `vectors.sqlite`."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.features.fill.records import Encoded
from trecexam.graders.base import identity_digest
from trecexam.graders.embedding import EmbeddingGrader

#: Texts that are encoded until they are kept and counted. With 512 encoding takes 4% less.
BLOCK = 64
#: Seconds to wait for another process that writes.
PATIENCE = 2.0
_CHECK = 8


def encode(
    path: Path, encoder: EmbeddingGrader, texts: Sequence[str], progress: Encoded | None = None
) -> Vectors:
    """Return the unit vectors of texts, shape (len(texts), dimension); encode those that are not kept.

    A vector is kept as 16-bit numbers, which are more precise than bfloat16.
    """
    if not texts:
        return np.empty((0, 1), np.float32)
    digest = identity_digest(encoder.identity)
    keys = {
        text: hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16, key=digest).digest()
        for text in texts
    }
    vectors = _read(path, keys)
    missing = sorted((text for text in keys if text not in vectors), key=lambda text: (len(text), text))
    show, done = progress or (lambda done, of: None), 0
    # The long ones come first, so that the time that is left is not guessed too short.
    for block in reversed([missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]):
        show(done, len(missing))
        new = dict(zip(block, encoder.embed(block).astype(np.float16), strict=True))
        _keep(path, {keys[text]: vector.tobytes() for text, vector in new.items()})
        vectors |= new
        done += len(block)
    if missing:
        show(done, done)
    rows = np.array([vectors[text] for text in texts], np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _read(path: Path, keys: Mapping[str, bytes]) -> dict[str, Any]:
    vectors: dict[str, Any] = {}
    if path.is_file():
        with _undamaged(path), closing(sqlite3.connect(path, PATIENCE)) as connection:
            for text, key in keys.items():
                for (content,) in connection.execute("SELECT vector FROM vectors WHERE text = ?", (key,)):
                    if content[-_CHECK:] == _check(key, content[:-_CHECK]):
                        vectors[text] = np.frombuffer(content[:-_CHECK], np.float16)
    return vectors


def _keep(path: Path, contents: Mapping[bytes, bytes]) -> None:
    rows = [(key, content + _check(key, content)) for key, content in contents.items()]
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file():
            # SQLite waits for ever for who writes into a pipe.
            path.rmdir() if path.is_dir() else path.unlink()
    with _undamaged(path), closing(sqlite3.connect(path, PATIENCE)) as connection, connection:
        # A machine that loses power may leave a damaged file, which is no loss.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB)")
        connection.executemany("INSERT OR REPLACE INTO vectors (text, vector) VALUES (?, ?)", rows)


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Continue where the file is locked, full or not to be written; remove it where it is damaged."""
    try:
        yield
    except sqlite3.OperationalError:
        return
    except (sqlite3.DatabaseError, TypeError, ValueError, OverflowError):
        for damaged in (path, path.with_name(f"{path.name}-journal")):
            with suppress(OSError):
                damaged.unlink()


def _check(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(vector, digest_size=_CHECK, key=key).digest()
