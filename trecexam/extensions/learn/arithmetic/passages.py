"""The pooled passages of a query, as input of learning."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Vectors = NDArray[np.float32]

#: The columns of `QueryPassages.features`.
FEATURES = ("fusion", "cosine", "length", "lexical", "rating")
#: Features used always, and features used if they help on held-out queries.
ALWAYS, OPTIONAL = FEATURES[:3], FEATURES[3:]


@dataclass(frozen=True, eq=False)
class QueryPassages:
    """A query's pool.

    Attributes:
        query_id: the query.
        doc_ids: doc_ids of the pooled passages, sorted.
        ranks: index in `doc_ids` of the passage at each rank of each run, -1 for none; shape (runs, depth).
        judgments: judgments of the passages; NaN if missing.
        elsewhere: judgments of passages outside of the pool.
        features: a column for each of `FEATURES`; shape (passages, 5).
        background: features of passages that no run retrieves for this query; shape (any number, 5).
        vectors: unit vectors of the texts; zeros if missing; shape (passages, dimension).
    """

    query_id: str
    doc_ids: tuple[str, ...]
    ranks: NDArray[np.int32]
    judgments: Floats
    elsewhere: Floats
    features: Floats
    background: Floats
    vectors: Vectors

    @property
    def judged(self) -> Bools:
        """Return True for each judged passage."""
        return ~np.isnan(self.judgments)

    def hiding(self, hidden: Bools) -> QueryPassages:
        """Return a copy without some judgments."""
        return replace(self, judgments=np.where(hidden, np.nan, self.judgments))
