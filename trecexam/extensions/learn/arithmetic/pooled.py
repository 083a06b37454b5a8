"""The pool of a query as it is learned of: passages with a text and without."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import QueryPassages


@dataclass(frozen=True, eq=False)
class PooledQueryToLearn:
    """A query's pool, with text and without.

    Attributes:
        passages: those with a text.
        doc_ids: all of the pool, sorted.
        rows: of `passages` among `doc_ids`.
        judgments: of `doc_ids`; NaN where there is none.
        ranks: as in `PooledQuery`.
        elsewhere: the judgments of passages that are not in the pool.
        mean_ratings: of `doc_ids`, the grader's; NaN where there is none.
    """

    passages: QueryPassages
    doc_ids: tuple[str, ...]
    rows: NDArray[np.intp]
    judgments: Floats
    ranks: NDArray[np.int32]
    elsewhere: Floats
    mean_ratings: Floats

    def hiding(self, hidden: NDArray[np.bool_]) -> PooledQueryToLearn:
        """The same without some judgments; `hidden` is of shape (len(doc_ids),)."""
        judgments = np.where(hidden, np.nan, self.judgments)
        return replace(
            self, judgments=judgments, passages=replace(self.passages, judgments=judgments[self.rows])
        )
