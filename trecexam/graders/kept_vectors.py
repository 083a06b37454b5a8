"""Vectors of a track's texts, kept by digest: each text is embedded once, also by the next process.

Nothing depends on them: where they are missing, damaged or cannot be written, texts are embedded again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.graders.base import identity_digest

#: In .trecexam/, for all who encode the track's texts.
FILE = "vectors.sqlite"
#: Bytes of vectors in a file, at most: the oldest go. 340,000 texts by a model of 384 dimensions.
MOST_BYTES = 2**29
#: Seconds to wait for another process that writes.
PATIENCE = 2.0
_CHECK = 8
_DTYPE = "<f4"
_asleep: ContextVar[bool] = ContextVar("_asleep", default=False)


@contextmanager
def no_kept_vectors() -> Iterator[None]:
    """Read no kept vectors and add none, where embedding itself is to be timed."""
    token = _asleep.set(True)
    try:
        yield
    finally:
        _asleep.reset(token)


class KeptVectors:
    """The vectors that one model made, in a file that other models' may be in, too.

    Args:
        path: an SQLite file; it is made with the first vector, if its folder is there.
        maker: model and environment; vectors of another maker are not found.
    """

    def __init__(self, path: Path, maker: Mapping[str, Any]) -> None:
        self.path = path
        self._maker = identity_digest(maker)

    def get(self, texts: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Return cached vectors by text."""
        if _asleep.get() or not self.path.is_file():
            return {}
        vectors: dict[str, NDArray[Any]] = {}
        with self._undamaged(), closing(sqlite3.connect(self.path, PATIENCE)) as connection:
            for text in texts:
                key = self._key(text)
                for (content,) in connection.execute("SELECT vector FROM vectors WHERE text = ?", (key,)):
                    vector, check = content[:-_CHECK], content[-_CHECK:]
                    if check == _check(key, vector):
                        vectors[text] = np.frombuffer(vector, _DTYPE).astype(_DTYPE)
        return vectors

    def add(self, vectors: Mapping[str, NDArray[Any]]) -> None:
        """Keep vectors; where that cannot be done, it is left."""
        if _asleep.get() or not vectors or not self.path.parent.is_dir():
            return
        rows = []
        for text, vector in vectors.items():
            key, content = self._key(text), vector.astype(_DTYPE).tobytes()
            rows.append((key, content + _check(key, content)))
        most = max(1, MOST_BYTES // len(rows[0][1]))
        if not self.path.is_file():
            # SQLite waits for ever for who writes into a pipe.
            with suppress(OSError):
                self.path.rmdir() if self.path.is_dir() else self.path.unlink()
        with self._undamaged(), closing(sqlite3.connect(self.path, PATIENCE)) as connection, connection:
            # A machine that loses power may leave a damaged file, which is no loss.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(place INTEGER PRIMARY KEY, text BLOB UNIQUE, vector BLOB)"
            )
            connection.executemany("INSERT OR REPLACE INTO vectors (text, vector) VALUES (?, ?)", rows)
            connection.execute(
                "DELETE FROM vectors WHERE place <= (SELECT MAX(place) FROM vectors) - ?", (most,)
            )

    @contextmanager
    def _undamaged(self) -> Iterator[None]:
        """Continue where the file is locked, full or not to be written; remove it where it is damaged."""
        try:
            yield
        except sqlite3.OperationalError:
            return
        except (sqlite3.DatabaseError, TypeError, ValueError, OSError, OverflowError):
            for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
                with suppress(OSError):
                    path.unlink()

    def _key(self, text: str) -> bytes:
        content = text.encode(errors="surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=self._maker).digest()


def _check(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(vector, digest_size=_CHECK, key=key).digest()
