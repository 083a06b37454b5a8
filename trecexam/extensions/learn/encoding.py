"""Vectors of a track's texts: each text is encoded once, and remembered with the track."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.features import Vectors, max_sim
from trecexam.graders.fixed_shapes import EncodedText
from trecexam.graders.kept_vectors import FILE, KeptVectors
from trecexam.tables.text import plural

#: Passages that are encoded until they are kept, so that who stops loses no more; and read at a time.
BLOCK = 512

#: Called with how many passages are encoded, and of how many.
Encoded = Callable[[int, int], None]


class Encoder(Protocol):
    """What encodes texts, see `TextEncoder`."""

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]: ...


class NoEncoder:
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

    Vectors have 16 bits a number, more than bfloat16 has. Tokens' vectors are not kept: a passage takes a
    hundred of them. So what is kept of a query and a passage is their late interaction, with the passage's
    vector, and a passage is encoded again only where a new query has it.
    """

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.encoder = encoder
        self._folder = folder
        self._kept = KeptVectors(folder / FILE, encoder.identity, "<f2")
        self._kept_pairs = KeptVectors(folder / FILE, {**encoder.identity, "late interaction": True}, "<f2")
        self._vectors: dict[str, Vectors] = {}
        self._max_sims: dict[tuple[str, str], float] = {}

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
        self._recall(passages, {*items, *passages})
        missing: dict[str, list[str]] = {}
        for query, texts in passages.items():
            for text in texts:
                if (query, text) not in self._max_sims:
                    missing.setdefault(text, []).append(query)
        short = {*items, *passages} - self._vectors.keys()
        short |= {query for queries in missing.values() for query in queries}
        if not missing and not short:
            return 0
        with suppress(OSError):
            # Where nothing can be written, all is encoded again.
            self._folder.mkdir(parents=True, exist_ok=True)
        tokens = {}
        for text, encoded in self.encoder.encode(sorted(short)):
            self._vectors[text] = encoded.vector.astype(np.float16)
            if text in passages:
                tokens[text] = encoded.tokens
        self._kept.add({text: self._vectors[text] for text in short})
        rows: dict[str, Vectors] = {}
        for number, (text, encoded) in enumerate(self.encoder.encode(list(missing)), 1):
            vector = self._vectors[text] = encoded.vector.astype(np.float16)
            for query in missing[text]:
                sim = self._max_sims[query, text] = max_sim(tokens[query], encoded.tokens)
                rows[_pair(query, text)] = np.append(vector, np.array([sim], "<f4").view("<f2"))
            if len(rows) >= BLOCK or number == len(missing):
                self._kept_pairs.add(rows)
                rows = {}
            if progress is not None:
                progress(number, len(missing))
        return len(missing)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of texts that were given to `encode`, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, 0), np.float32)
        vectors = np.array([self._vectors[text] for text in texts], np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def max_sims(self, query: str, texts: Sequence[str]) -> list[float]:
        """The late interaction of a query with each of the texts that `encode` was given for it."""
        return [self._max_sims[query, text] for text in texts]

    def _recall(self, passages: Mapping[str, Sequence[str]], short: Collection[str]) -> None:
        """Takes what is kept of these texts."""
        texts = [text for text in short if text not in self._vectors]
        for text, vector in self._kept.get(texts).items():
            self._vectors[text] = vector
        pairs = [
            (query, text)
            for query, texts in passages.items()
            for text in dict.fromkeys(texts)
            if (query, text) not in self._max_sims
        ]
        for start in range(0, len(pairs), BLOCK):
            block = pairs[start : start + BLOCK]
            rows = self._kept_pairs.get([_pair(*pair) for pair in block])
            for query, text in block:
                row = rows.get(_pair(query, text))
                if row is not None:
                    self._vectors[text] = row[:-2]
                    self._max_sims[query, text] = float(row[-2:].view("<f4")[0])


def _pair(query: str, text: str) -> str:
    """Another one for each query and text."""
    return f"{len(query)} {query}{text}"
