"""Statistics of items and grades, counted from the pool's cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.items.grades_plot import GRADES
from trecexam.extensions.items.items_plot import ItemSummary
from trecexam.line.item_values import item_values
from trecexam.line.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.scores.ratings import MAX_RATING, covered_items

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

#: The codes of a cell in the order of GRADES.
_CODES = (*range(MAX_RATING + 1), UNPARSED, REFUSED, ERROR, MISSING)
assert len(_CODES) == len(GRADES)


@dataclass(frozen=True, eq=False)
class Quality:
    """Statistics of a track's items.

    Attributes:
        items: all, retired ones last.
        grades: how often each of GRADES was given to items that are not retired; shape (len(GRADES),).
    """

    items: tuple[ItemSummary, ...]
    grades: NDArray[np.int64]

    @property
    def live(self) -> tuple[ItemSummary, ...]:
        """The active items."""
        return tuple(item for item in self.items if not item.retired)


def quality(track: Assessment, runs: Sequence[str]) -> Quality:
    """The items of a loaded track.

    Args:
        runs: the names of the runs that count.
    """
    scores = track.config.scores
    depth = track.config.track.depth
    items: list[ItemSummary] = []
    grades = np.zeros(len(GRADES), np.int64)
    discriminations = item_values(track, "discrimination")
    row_of = {run: row for row, run in enumerate(track.runs)}
    rows = [row_of[run] for run in runs]
    for q in track.ratings():
        sheet = track.sheets[q.query_id]
        gradable, flat, n_items = sheet.gradable, sheet.flat(), len(sheet.items)
        columns = [sheet.where(gradable & (flat == code))[1] for code in _CODES]
        counts = np.stack([np.bincount(of_code, minlength=n_items) for of_code in columns], axis=1)
        ranks = track.pool[q.query_id].ranks[rows, :depth]
        reached = covered_items(q, ranks, scores.min_rating)
        rated = q.ratings >= 0
        n_rated, total = rated.sum(axis=0), np.where(rated, q.ratings, 0).sum(axis=0, dtype=np.int64)
        reaching = (q.ratings >= scores.min_rating).sum(axis=0)
        unread = counts[:, [_CODES.index(UNPARSED), _CODES.index(REFUSED)]].sum(axis=1)
        for n, item in enumerate(track.bank.items[q.query_id]):
            items.append(
                ItemSummary(
                    q.query_id,
                    item.item_id,
                    item.text,
                    item.kind,
                    item.importance,
                    passages=int(counts[n].sum()),
                    rated=int(n_rated[n]),
                    unparsed=int(unread[n]),
                    mean_rating=int(total[n]) / int(n_rated[n]) if n_rated[n] else float("nan"),
                    reaching=int(reaching[n]),
                    covering=int(reached[:, n].sum()),
                    n_runs=len(runs),
                    # Further digits may differ between machines, and so would the outputs.
                    discrimination=round(discriminations.get((q.query_id, item.item_id), math.nan), 3),
                )
            )
        grades += counts.sum(axis=0)
    retired = [
        ItemSummary(query_id, item.item_id, item.text, item.kind, item.importance, retired=True)
        for query_id, retired_items in track.bank.retired.items()
        for item in retired_items
    ]
    return Quality((*items, *retired), grades)
