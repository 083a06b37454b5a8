"""The items that passages reach, in the order in which ndeval adds gains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.labels import naming


def reached_items(judged: Judged, rel: int, alpha: float) -> NDArray[np.bool_]:
    """Whether each passage reaches each item: bool of shape (passages + 1, items), False in the last row.

    With a `min_rating` in the judgments, rel = 1 is that rating, as in the 0/1 rows of `subtopic_qrels`; a
    greater rel is a rating itself, as in `rating_qrels`.

    The sums of alpha_nDCG depend on the order of items in their last bit, and where such a bit decides a
    tie, the ideal ranking does. Items are in the order in which pyndeval meets them in these rows. With
    alpha = 0.5 all sums are exact, and the order is left unchanged.

    Raises:
        ValueError: the judgments have no ratings of items.
    """
    from_subtopics = judged.min_rating is not None and rel == 1
    least = max(judged.min_rating or 0, 0) if from_subtopics else rel
    reached: NDArray[np.bool_] = judged.items >= least
    if judged.min_rating is None or alpha == 0.5:
        return reached
    return reached[:, _order(judged, by_item=from_subtopics)]


def _order(judged: Judged, *, by_item: bool) -> NDArray[np.intp]:
    """The items by their first rows: query by query, within it item by item or else passage by passage."""
    ratings = _with_named_items(judged)
    rated = ratings >= 0
    n_items = rated.shape[1]
    first_doc = rated.argmax(axis=0) if len(rated) else np.zeros(n_items, np.intp)
    first_query = np.append(judged.query_of_row, 0)[first_doc]
    never = ~rated.any(axis=0)
    if by_item:
        return np.lexsort((np.arange(n_items), first_query, never))
    # The rows of one passage rise in rating.
    first_rating = np.append(ratings, judged.items[-1:], axis=0)[first_doc, np.arange(n_items)]
    return np.lexsort((np.arange(n_items), first_rating, first_doc, never))


def _with_named_items(judged: Judged) -> NDArray[np.integer]:
    """The ratings of all passages, as in rows that name every item."""
    ratings = judged.items[:-1].copy()
    rated = judged.labels != UNJUDGED
    for i, n_items in enumerate(judged.n_items.tolist()):
        of_query = slice(int(judged.offsets[i]), int(judged.offsets[i + 1])), slice(n_items)
        ratings[of_query] = naming(ratings[of_query], rated[of_query[0]])
    return ratings
