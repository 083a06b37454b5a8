"""A run, held as columns: three million entries as objects would take a gigabyte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from converters.records import RunEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Run:
    """One system's ranked lists, in trec_eval's order.

    Scores are compared as 32-bit floats, as trec_eval 9 and pytrec_eval do: two that differ only past
    float precision are a tie. Ties are ordered by docno, descending (strcmp). The rank column is ignored.
    Iterating gives `RunEntry`s.

    Attributes:
        name: the run tag.
        query_ids: in order of first appearance.
        offsets: int64, len(query_ids) + 1: the entries of query i are offsets[i]:offsets[i + 1].
        doc_ids: pyarrow string array of all entries.
        scores: float64, as in the file.
    """

    name: str
    query_ids: tuple[str, ...]
    offsets: NDArray[np.int64]
    doc_ids: Any
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        """The number of entries."""
        return len(self.doc_ids)

    def __contains__(self, query_id: object) -> bool:
        """Whether the run has entries for a query."""
        return query_id in self._index

    def __iter__(self) -> Iterator[RunEntry]:
        for i, query_id in enumerate(self.query_ids):
            start, end = int(self.offsets[i]), int(self.offsets[i + 1])
            rows = zip(self.doc_ids[start:end].to_pylist(), self.scores[start:end].tolist(), strict=True)
            for rank, (doc_id, score) in enumerate(rows, 1):
                yield RunEntry(query_id, doc_id, rank, score, self.name)

    def ranking(self, query_id: str, depth: int | None = None) -> list[str]:
        """The first `depth` (None: all) doc_ids for a query, best first; [] where the run skips it."""
        i = self._index.get(query_id)
        if i is None:
            return []
        start, end = int(self.offsets[i]), int(self.offsets[i + 1])
        if depth is not None:
            end = min(end, start + depth)
        found: list[str] = self.doc_ids[start:end].to_pylist()
        return found

    def count(self, query_id: str) -> int:
        """How many documents the run has for a query; 0 where it skips it."""
        i = self._index.get(query_id)
        return 0 if i is None else int(self.offsets[i + 1] - self.offsets[i])

    def renamed(self, name: str) -> Run:
        """The same run under another name."""
        return replace(self, name=name)

    @classmethod
    def from_entries(cls, name: str, entries: Iterable[tuple[str, str, float]]) -> Run:
        """A run from (query_id, doc_id, score), in any order.

        Raises:
            ValueError: a document stands twice for a query, or a score is not finite.
        """
        import numpy as np
        import pyarrow as pa

        from converters.ordering import DuplicateError, ordered

        query_ids: dict[str, int] = {}
        codes, docs, scores = [], [], []
        for query_id, doc_id, score in entries:
            codes.append(query_ids.setdefault(query_id, len(query_ids)))
            docs.append(doc_id)
            scores.append(score)
        values = np.asarray(scores, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("a score is not a finite number")
        try:
            return ordered(
                name,
                tuple(query_ids),
                np.asarray(codes, dtype=np.int32),
                pa.array(docs, pa.large_string()),
                values,
            )
        except DuplicateError as error:
            raise ValueError(f"document '{error.doc_id}' stands twice for query '{error.query_id}'") from None

    @cached_property
    def _index(self) -> dict[str, int]:
        return {query_id: i for i, query_id in enumerate(self.query_ids)}
