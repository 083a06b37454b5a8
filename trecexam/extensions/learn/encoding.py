"""Vectors of a track's texts: each text is encoded once, and kept by its digest beside the store."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.features import Vectors, max_sim
from trecexam.files.kept import read_kept, write_kept
from trecexam.graders.base import identity_digest
from trecexam.graders.fixed_shapes import EncodedText
from trecexam.tables.text import plural

#: Seconds after which what was encoded is kept, so that who stops loses no more.
KEEP_EVERY = 30

#: Called with how many passages are encoded, and of how many.
Encoded = Callable[[int, int], None]


class Encoder(Protocol):
    """What encodes texts, see `TextEncoder`."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]: ...


class KeptVectors:
    """In place of an encoder where nobody waits: what has no vector yet is not encoded, but refused.

    Args:
        encoder: by which the vectors were made.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.identity = encoder.identity
        self.name = getattr(encoder, "name", None)

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]:
        """Never encodes.

        Raises:
            TrecexamError: always.
        """
        raise TrecexamError(
            f"{plural(len(texts), 'text')} not encoded yet: run `trecexam learn` or `trecexam "
            "learned-next` once"
        )


class TrackVectors:
    """The vectors of texts, and the late interaction of queries with passages.

    Vectors are kept with 16 bits a number, more than bfloat16 has. Tokens' vectors are not: a passage takes
    a hundred of them. So what is kept of a query and a passage is their late interaction, and a passage is
    encoded again only where a new query has it.
    """

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self._path = folder / f"encoded-{identity_digest(encoder.identity).hex()[:12]}.npz"
        self._vectors, self._max_sims = _kept(self._path)

    def encode(
        self,
        passages: Mapping[str, Sequence[str]],
        items: Sequence[str],
        progress: Encoded | None = None,
    ) -> int:
        """Encodes what has no vector yet.

        Args:
            passages: a query's text -> the texts of its passages.
            items: texts of items.

        Returns:
            How many passages were encoded.
        """
        missing: dict[str, list[str]] = {}
        for query, texts in passages.items():
            for text in texts:
                if _pair(query, text) not in self._max_sims or _digest(text) not in self._vectors:
                    missing.setdefault(text, []).append(query)
        short = {*items, *passages} - {text for text in (*items, *passages) if _digest(text) in self._vectors}
        short |= {query for queries in missing.values() for query in queries}
        if not missing and not short:
            return 0
        tokens = {}
        for text, encoded in self.encoder.encode(sorted(short)):
            self._vectors[_digest(text)] = encoded.vector.astype(np.float16)
            if text in passages:
                tokens[text] = encoded.tokens
        kept_at = time.monotonic()
        for number, (text, encoded) in enumerate(self.encoder.encode(list(missing)), 1):
            self._vectors[_digest(text)] = encoded.vector.astype(np.float16)
            for query in missing[text]:
                self._max_sims[_pair(query, text)] = max_sim(tokens[query], encoded.tokens)
            if progress is not None:
                progress(number, len(missing))
            if time.monotonic() - kept_at > KEEP_EVERY:
                self._keep()
                kept_at = time.monotonic()
        self._keep()
        return len(missing)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts that were encoded, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, 0), np.float32)
        vectors = np.array([self._vectors[_digest(text)] for text in texts], np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def max_sims(self, query: str, texts: Sequence[str]) -> list[float]:
        """The late interaction of a query with each of the texts that were encoded for it."""
        return [self._max_sims[_pair(query, text)] for text in texts]

    def _keep(self) -> None:
        content = io.BytesIO()
        np.savez(
            content,
            texts=np.frombuffer(b"".join(self._vectors), "V16"),
            vectors=np.array(list(self._vectors.values()), np.float16),
            pairs=np.frombuffer(b"".join(self._max_sims), "V16"),
            max_sims=np.array(list(self._max_sims.values()), np.float32),
        )
        write_kept(self._path, content.getvalue())


def _kept(path: Path) -> tuple[dict[bytes, Vectors], dict[bytes, float]]:
    """What is kept; nothing where there is no such file or it is damaged, and all is encoded again."""
    content = read_kept(path)
    if content is None:
        return {}, {}
    with np.load(io.BytesIO(content), allow_pickle=False) as kept:
        texts, pairs = (kept[name].tobytes() for name in ("texts", "pairs"))
        vectors, max_sims = kept["vectors"], kept["max_sims"].astype(np.float64).tolist()
    digests = [texts[at : at + 16] for at in range(0, len(texts), 16)]
    of_pairs = [pairs[at : at + 16] for at in range(0, len(pairs), 16)]
    return dict(zip(digests, vectors, strict=True)), dict(zip(of_pairs, max_sims, strict=True))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _pair(query: str, text: str) -> bytes:
    return hashlib.blake2b(_digest(query) + _digest(text), digest_size=16).digest()
