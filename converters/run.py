"""Runs as columns, since three million entries as objects would take a gigabyte."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from converters.arrow import column, strings
from converters.records import RunEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Run:
    """A system's ranked lists, in trec_eval's order.

    Scores are compared in 64 bits, as trec_eval 10 does; infinite ones are first or last. Ties are ordered by
    docno, descending (strcmp). The rank column is ignored. Iterating gives `RunEntry`s.

    Attributes:
        name: the run tag.
        query_ids: in order of first appearance.
        offsets: int64, len(query_ids) + 1: the entries of query i are offsets[i]:offsets[i + 1].
        doc_ids: pyarrow string array of all entries.
        scores: float64, as in the file.
        metadata: the file's ir_metadata header, YAML; "" without one.
        n_reordered_in_32_bits: the number of queries that trec_eval 9, which compares 32-bit floats, would
            order otherwise.
    """

    name: str
    query_ids: tuple[str, ...]
    offsets: NDArray[np.int64]
    doc_ids: Any
    scores: NDArray[np.float64]
    metadata: str = ""
    n_reordered_in_32_bits: int = 0

    def __len__(self) -> int:
        """The number of entries."""
        return int(self.offsets[-1])

    def __contains__(self, query_id: object) -> bool:
        """Return True where the run has entries for a query."""
        return query_id in self.spans

    def __iter__(self) -> Iterator[RunEntry]:
        doc_ids, scores = self.doc_ids, self.scores
        for query_id, (start, end) in self.spans.items():
            rows = zip(doc_ids[start:end].to_pylist(), scores[start:end].tolist(), strict=True)
            for rank, (doc_id, score) in enumerate(rows, 1):
                yield RunEntry(query_id, doc_id, rank, score, self.name)

    def ranking(self, query_id: str, depth: int | None = None) -> list[str]:
        """The first `depth` (None: all) doc_ids for a query, best first; [] if it is missing."""
        start, end = self.spans.get(query_id, (0, 0))
        if depth is not None:
            end = min(end, start + depth)
        ranked: list[str] = self.doc_ids[start:end].to_pylist()
        return ranked

    def top(self, depth: int) -> tuple[NDArray[np.int64], Any]:
        """The first `depth` entries of each query.

        Returns:
            Offsets as those of the run, and their doc_ids, a pyarrow string array.
        """
        import numpy as np

        counts = np.diff(self.offsets)
        if counts.max(initial=0) <= depth:
            return self.offsets, self.doc_ids
        n_top = np.minimum(counts, depth)
        offsets = np.concatenate(([0], np.cumsum(n_top)))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_top)
        return offsets, self.doc_ids.take(column(np.repeat(self.offsets[:-1], n_top) + within))

    def count(self, query_id: str) -> int:
        """The number of documents for a query; 0 if it is missing."""
        start, end = self.spans.get(query_id, (0, 0))
        return end - start

    def renamed(self, name: str) -> Run:
        """Return the run under another name."""
        return replace(self, name=name)

    def without_query_documents(self) -> Run:
        """Return the run without each query's own document, whose id is the query's.

        Queries without another document are left out.
        """
        import numpy as np
        import pyarrow.compute as pc

        codes = np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))
        query_ids = strings(self.query_ids).take(column(codes))
        rows = np.flatnonzero(pc.not_equal(self.doc_ids, query_ids).to_numpy(zero_copy_only=False))
        if len(rows) == len(self):
            return self
        places, codes = np.unique(codes[rows], return_inverse=True)
        names = tuple(self.query_ids[place] for place in places)
        doc_ids, scores = self.doc_ids.take(column(rows)), self.scores[rows]
        run = ordered(self.name, names, codes.astype(np.int32), doc_ids, scores)
        return replace(run, metadata=self.metadata)

    @classmethod
    def from_entries(cls, name: str, entries: Iterable[tuple[str, str, float]]) -> Run:
        """A run from (query_id, doc_id, score), in any order.

        Raises:
            ValueError: a document occurs twice for a query, or a score is not a number.
        """
        import numpy as np

        query_ids: dict[str, int] = {}
        codes, docs, scores = [], [], []
        for query_id, doc_id, score in entries:
            codes.append(query_ids.setdefault(query_id, len(query_ids)))
            docs.append(doc_id)
            scores.append(score)
        values = np.asarray(scores, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError("a score is not a number")
        try:
            return ordered(
                name,
                tuple(query_ids),
                np.asarray(codes, dtype=np.int32),
                strings(docs),
                values,
            )
        except DuplicateError as error:
            raise ValueError(f"document '{error.doc_id}' occurs twice for query '{error.query_id}'") from None

    @cached_property
    def spans(self) -> Mapping[str, tuple[int, int]]:
        """query_id -> (start, end) of its entries in `doc_ids` and `scores`."""
        bounds = self.offsets.tolist()
        return dict(zip(self.query_ids, itertools.pairwise(bounds), strict=True))


class DuplicateError(ValueError):
    """A document that occurs twice for a query."""

    def __init__(self, query_id: str, doc_id: str) -> None:
        super().__init__(query_id, doc_id)
        self.query_id = query_id
        self.doc_id = doc_id


def ordered(
    name: str,
    query_ids: tuple[str, ...],
    codes: NDArray[np.int32],
    doc_ids: Any,
    scores: NDArray[np.float64],
) -> Run:
    """Groups by query and sorts like trec_eval; sorted data is not sorted again.

    Args:
        codes: for each entry, the index of its query in `query_ids`.
        doc_ids: pyarrow large_string array.

    Raises:
        DuplicateError: a document occurs twice for a query.
    """
    import numpy as np
    import pyarrow.compute as pc

    same_query = codes[1:] == codes[:-1]
    if not ((codes[1:] >= codes[:-1]).all() and (scores[1:] <= scores[:-1])[same_query].all()):
        order = np.lexsort((-scores, codes))
        codes, scores = codes[order], scores[order]
        doc_ids = doc_ids.take(column(order))
    doc_ids = _break_ties(codes, scores, doc_ids)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(query_ids))))).astype(np.int64)
    # Query by query, since small dictionaries stay in the processor's cache: 12 ms for 300 x 1,000 documents.
    unique = pc.get_function("unique")
    for query_id, (start, end) in zip(query_ids, itertools.pairwise(offsets.tolist()), strict=True):
        of_query = doc_ids.slice(start, end - start)
        if len(unique.call([of_query])) < end - start:
            docs = of_query.to_pylist()
            raise DuplicateError(query_id, max(docs, key=docs.count))
    n_reordered = _n_reordered_in_32_bits(codes, scores, doc_ids)
    return Run(name, query_ids, offsets, doc_ids, scores, n_reordered_in_32_bits=n_reordered)


def _n_reordered_in_32_bits(codes: NDArray[np.int32], scores: NDArray[np.float64], doc_ids: Any) -> int:
    """Count the queries of ordered entries that have another order where scores are 32-bit floats.

    Rounding keeps the order of scores, or makes neighbours equal; these are then ordered by docno.
    """
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        single = scores.astype(np.float32)
    tied = (codes[1:] == codes[:-1]) & (single[1:] == single[:-1]) & (scores[1:] != scores[:-1])
    rows = np.flatnonzero(tied)
    if not len(rows):
        return 0
    before, after = (doc_ids.take(column(which)).to_pylist() for which in (rows, rows + 1))
    pairs = zip(codes[rows].tolist(), before, after, strict=True)
    return len({code for code, first, second in pairs if first < second})


def _break_ties(codes: NDArray[np.int32], scores: NDArray[np.float64], doc_ids: Any) -> Any:
    """Return the doc_ids with those of equal scores for a query by docno, descending."""
    import numpy as np
    import pyarrow as pa

    tied = (codes[1:] == codes[:-1]) & (scores[1:] == scores[:-1])
    edges = np.flatnonzero(np.diff(tied, prepend=False, append=False))
    pieces: list[Any] = []
    done = 0
    for start, end in zip(edges[::2].tolist(), (edges[1::2] + 1).tolist(), strict=True):
        group = doc_ids[start:end]
        docs = group.to_pylist()
        # Code points sort as their UTF-8 bytes do, which is strcmp's order.
        order = sorted(range(len(docs)), key=docs.__getitem__, reverse=True)
        if order != list(range(len(docs))):
            pieces += [doc_ids[done:start], group.take(column(np.array(order)))]
            done = end
    return pa.concat_arrays([*pieces, doc_ids[done:]]) if pieces else doc_ids
