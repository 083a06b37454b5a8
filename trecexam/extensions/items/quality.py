"""Statistics of the bank's items, and of the grades given on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.sheets import UNREAD
from trecexam.results.table import Table
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.cover import best_ratings


class ItemRow(NamedTuple):
    """An item of the bank with statistics of its grades; a retired item has no numbers.

    Attributes:
        retired: "retired" or "".
        passages: pooled passages of the query that have a text.
        rated: number of these with a rating by a person or the grader, after the rule for unparsed answers.
        unparsed: number of the grader's answers without a rating, refusals included.
        mean_rating: mean over rated passages, 0..5; None without any.
        share_reaching: share of rated passages with min_rating or better; None without any.
        runs_covering: number of the `n_runs` runs with such a passage in their first ranks.
    """

    query_id: str
    item_id: str
    kind: str
    importance: str
    retired: str = ""
    passages: int | None = None
    rated: int | None = None
    unparsed: int | None = None
    mean_rating: float | None = None
    share_reaching: float | None = None
    runs_covering: int | None = None
    n_runs: int | None = None
    share_of_runs: float | None = None
    text: str = ""


def item_rows(track: GradedTrack) -> tuple[ItemRow, ...]:
    """Return a row per item, retired items last; () without runs or ratings."""
    scores, n_runs = track.config.scores, len(track.runs)
    rows: list[ItemRow] = []
    for q in track.ratings() if n_runs else ():
        sheet = track.sheets[q.query_id]
        n_items, gradable = len(sheet.items), sheet.gradable
        unread = gradable & np.isin(sheet.flat(), UNREAD)
        passages = np.bincount(sheet.where(gradable)[1], minlength=n_items)
        unparsed = np.bincount(sheet.where(unread)[1], minlength=n_items)
        ranks = track.pool[q.query_id].ranks[:, : track.config.track.depth]
        best = best_ratings(Judged.from_ratings([q]).items, ranks)
        covering = (best >= scores.min_rating).sum(axis=0)
        rated = (q.ratings >= 0).sum(axis=0)
        total = np.where(q.ratings >= 0, q.ratings, 0).sum(axis=0, dtype=np.int64)
        reaching = (q.ratings >= scores.min_rating).sum(axis=0)
        for n, item in enumerate(track.bank.items[q.query_id]):
            n_rated, n_covering = int(rated[n]), int(covering[n])
            rows.append(
                ItemRow(
                    *(q.query_id, item.item_id, item.kind, item.importance),
                    passages=int(passages[n]),
                    rated=n_rated,
                    unparsed=int(unparsed[n]),
                    mean_rating=int(total[n]) / n_rated if n_rated else None,
                    share_reaching=int(reaching[n]) / n_rated if n_rated else None,
                    runs_covering=n_covering,
                    n_runs=n_runs,
                    share_of_runs=n_covering / n_runs,
                    text=item.text,
                )
            )
    if not any(row.rated for row in rows):
        return ()
    retired = (
        ItemRow(query_id, item.item_id, item.kind, item.importance, "retired", text=item.text)
        for query_id, items in track.bank.retired.items()
        for item in items
    )
    return (*rows, *retired)


def grades_table(track: GradedTrack) -> Table:
    """Return counts of the grader's ratings, and of cells without a rating; no rows without cells."""
    counts = track.counts
    codes = np.concatenate([np.empty(0, np.int8), *(sheet.flat() for sheet in track.sheets.values())])
    ratings = np.bincount(codes[codes >= 0].astype(np.int64), minlength=track.grader.scale.max_rating + 1)
    cells = {str(rating): count for rating, count in enumerate(ratings.tolist())}
    without = (counts.unparsed, counts.refused, counts.error, counts.missing)
    names = ("unparsed", "refused", "error", "no grade yet")
    cells |= {name: count for name, count in zip(names, without, strict=True) if count}
    total = sum(cells.values())
    rows = ((name, count, count / total) for name, count in cells.items() if total)
    return Table(("grade", "cells", "share"), tuple(rows))
