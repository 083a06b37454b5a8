"""Vectors of a track's texts; each text is encoded once and cached in the track."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import Vectors
from trecexam.features.fill.records import Encoded
from trecexam.graders.base import identity_digest
from trecexam.graders.embedding import spread

#: Texts that are encoded until they are kept and counted. With 512 encoding takes 4% less.
BLOCK = 64
#: Vectors that are kept; the oldest go.
MOST = 500_000
#: Seconds to wait for another process that writes.
PATIENCE = 2.0
_CHECK = 8


class Encoder(Protocol):
    """The interface of encoders, see `TextEncoder`. One may have a `name`, too."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, texts: Sequence[str]) -> Vectors: ...


class TrackVectors:
    """The vectors of texts as 16-bit numbers, more precise than bfloat16; kept in `vectors.sqlite`."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        """Keep vectors in a folder, which is made where it is missing."""
        self.encoder = encoder
        self._path = folder / "vectors.sqlite"
        self._vectors: dict[str, Any] = {}

    def encode(self, texts: Collection[str], progress: Encoded | None = None) -> int:
        """Encodes texts without a vector; returns their number."""
        new = [text for text in texts if text not in self._vectors]
        if not new:
            return 0
        self._read(new)
        missing = sorted({text for text in new if text not in self._vectors}, key=lambda t: (len(t), t))
        if not missing:
            return 0
        show, done = progress or (lambda done, of: None), 0
        show(0, len(missing))
        for block in spread([missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]):
            vectors = self.encoder.encode(block).astype(np.float16)
            self._vectors.update(zip(block, vectors, strict=True))
            self._keep(block)
            done += len(block)
            show(done, len(missing))
        return len(missing)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts that were given to `encode`, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, 0), np.float32)
        vectors = np.array([self._vectors[text] for text in texts], np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def _read(self, texts: Sequence[str]) -> None:
        if not self._path.is_file():
            return
        keys = self._keys(texts)
        with self._undamaged(), closing(sqlite3.connect(self._path, PATIENCE)) as connection:
            for text, key in keys.items():
                for (content,) in connection.execute("SELECT vector FROM vectors WHERE text = ?", (key,)):
                    if content[-_CHECK:] == _check(key, content[:-_CHECK]):
                        self._vectors[text] = np.frombuffer(content[:-_CHECK], np.float16)

    def _keep(self, texts: Sequence[str]) -> None:
        rows = []
        for text, key in self._keys(texts).items():
            content = self._vectors[text].tobytes()
            rows.append((key, content + _check(key, content)))
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if not self._path.is_file():
                # SQLite waits for ever for who writes into a pipe.
                self._path.rmdir() if self._path.is_dir() else self._path.unlink()
        with self._undamaged(), closing(sqlite3.connect(self._path, PATIENCE)) as connection, connection:
            # A machine that loses power may leave a damaged file, which is no loss.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(place INTEGER PRIMARY KEY, text BLOB UNIQUE, vector BLOB)"
            )
            connection.executemany("INSERT OR REPLACE INTO vectors (text, vector) VALUES (?, ?)", rows)
            connection.execute(
                "DELETE FROM vectors WHERE place <= (SELECT MAX(place) FROM vectors) - ?", (MOST,)
            )

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Continue where the file is locked, full or not to be written; remove it where it is damaged."""
        try:
            yield
        except sqlite3.OperationalError:
            return
        except (sqlite3.DatabaseError, TypeError, ValueError, OverflowError):
            for path in (self._path, self._path.with_name(f"{self._path.name}-journal")):
                with suppress(OSError):
                    path.unlink()

    def _keys(self, texts: Sequence[str]) -> dict[str, bytes]:
        encoder = identity_digest(self.encoder.identity)
        contents = {text: text.encode(errors="surrogatepass") for text in texts}
        return {
            text: hashlib.blake2b(content, digest_size=16, key=encoder).digest()
            for text, content in contents.items()
        }


def _check(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(vector, digest_size=_CHECK, key=key).digest()
