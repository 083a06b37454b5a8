"""Holes of a track: passages in the runs' first ranks without a judgment or a grade."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError, sentence
from trecexam.feature import Feature
from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import NO_RUNS
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import shown_error, track_judgments, with_people
from trecexam.inputs.official import Official, no_overlap, read_official
from trecexam.inputs.pool import pool_with_ranks
from trecexam.results.page.page import Page
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table
from trecexam.results.text import plural

By = Literal["query", "run"]
#: Value of query_id in a run's sums, as in trec_eval.
ALL = "all"
#: Maximum number of runs in a note.
_NAMED = 3


class PoolHoles(NamedTuple):
    """The holes of all runs together, each passage of a query counted once.

    Attributes:
        depth: the ranks that count.
        passages: number of passages in these ranks.
        unjudged: number without an official judgment; None if there are no judgments.
        unjudged_alone: number of unjudged passages in the first `depth` ranks of only one run.
        ungraded: number of passages without a rating.
    """

    depth: int
    passages: int
    unjudged: int | None
    unjudged_alone: int | None
    ungraded: int


class HolesRow(NamedTuple):
    """The holes of a run for one query or, as `all`, over all queries.

    Attributes:
        depth: the first ranks that count.
        retrieved: passages in those ranks.
        unjudged: number of retrieved passages without an official judgment; None without judgments.
        ungraded: number of retrieved passages without a rating on any item.
        judged: ir_measures' Judged@depth, 0..1; for `all` the mean, with 0 for a query without results, as in
            `trec_eval -c`. None if `unjudged` is None.
    """

    run: str
    query_id: str
    depth: int
    retrieved: int
    unjudged: int | None
    ungraded: int
    judged: float | None


@dataclass(frozen=True)
class HolesReport(Result):
    """Holes of runs: the table `holes` has each query; `runs`, which is displayed, has the sums.

    Attributes:
        rows: by run, then depth as asked for, then `all` and the track's queries in order. Runs with most
            unjudged passages in the first depth (without judgments: ungraded ones) come first, ties by name.
        pools: one for each depth.
        notes: how to read the numbers, and a summary for each depth.
        by: the first and displayed table; None for `holes` first and `runs` displayed.
    """

    rows: tuple[HolesRow, ...]
    pools: tuple[PoolHoles, ...]
    notes: tuple[str, ...]
    by: By | None = None

    def sums(self) -> tuple[HolesRow, ...]:
        """Return the `all` rows."""
        return tuple(row for row in self.rows if row.query_id == ALL)

    def _declare(self) -> dict[str, Table]:
        """Declare `run query_id depth retrieved unjudged ungraded Judged@10`; `runs` has only `all` rows.

        The last column has the depth in its name; with several depths the column `depth` has them, and it is
        `Judged@depth`.
        """
        depth = self.pools[0].depth if len(self.pools) == 1 else "depth"
        header = (*HolesRow._fields[:-1], f"Judged@{depth}")
        keys = ("run", "query_id", "depth")
        layout, caption = Layout(keys, without=("query_id",)), "sums over all queries"
        tables = {
            "holes": Table(header, self.rows, layout=Layout(keys)),
            "runs": Table(header, self.sums(), layout=layout, caption=caption),
        }
        return dict(reversed(tables.items())) if self.by == "run" else tables

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the table that people see."""
        return (self.tables["holes" if self.by == "query" else "runs"],)

    @property
    def facts(self) -> dict[str, Any]:
        """The holes of all runs together, at each depth."""
        return {"pool": [pool._asdict() for pool in self.pools]}


def is_among(doc_ids: Sequence[str], among: Collection[str]) -> NDArray[np.bool_]:
    """Return a mask of these passages, with a last False for rank -1; shape (n_docs + 1,)."""
    return np.array([doc_id in among for doc_id in doc_ids] + [False], np.bool_)


def holes_of_runs(
    ranks: NDArray[np.int32], judged: NDArray[np.bool_] | None, rated: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return each run's counts for one query: passages, unjudged, ungraded; shape (runs, 3).

    Args:
        ranks: of shape (n_runs, depth), see `trecexam.inputs.pool.PooledQuery`.
        judged, rated: masks from `is_among`; `judged` None counts no passage as unjudged.
    """
    retrieved = np.count_nonzero(ranks >= 0, axis=1)
    n_judged = retrieved if judged is None else np.count_nonzero(judged[ranks], axis=1)
    n_rated = np.count_nonzero(rated[ranks], axis=1)
    return np.stack([retrieved, retrieved - n_judged, retrieved - n_rated], axis=1)


def holes_report(
    track: GradedTrack,
    depths: Sequence[int] | None = None,
    *,
    qrels: Path | None = None,
    by: By | None = None,
) -> HolesReport:
    """Report passages in the runs' first ranks without a judgment or a grade."""
    judgments, notes = _judgments(track, qrels)
    depths = tuple(dict.fromkeys(depths or (track.config.track.depth,)))
    counts, pools = _count_holes(track, judgments, depths)
    # Runs with most unjudged passages first, or ungraded ones where there are no judgments.
    missing = counts[depths[0]].sum(axis=0)[:, 2 if judgments is None else 1].tolist()
    rows: list[HolesRow] = []
    for _, name, run in sorted(zip((-n for n in missing), track.runs, range(len(missing)), strict=True)):
        for depth in depths:
            rows += _rows(name, track.bank.query_ids, depth, counts[depth][:, run], judgments is not None)
    report = HolesReport(tuple(rows), pools, notes, by)
    lines = (_pool_line(pool, [row for row in report.sums() if row.depth == pool.depth]) for pool in pools)
    return replace(report, notes=(*notes, *(lines if rows else ())))


def _rows(
    run: str, query_ids: Sequence[str], depth: int, counts: NDArray[np.int64], has_judgments: bool
) -> Iterator[HolesRow]:
    """Yield the sums over a run's queries, then each query; `counts` come from `holes_of_runs`."""
    retrieved, n_judged = counts[:, 0], counts[:, 0] - counts[:, 1]
    rates = np.divide(n_judged, retrieved, out=np.zeros(len(counts)), where=retrieved > 0).tolist()
    rates.insert(0, sum(rates) / len(rates) if rates else 0.0)
    every = np.concatenate([counts.sum(axis=0, keepdims=True), counts]).tolist()
    for query_id, (n, unjudged, ungraded), rate in zip((ALL, *query_ids), every, rates, strict=True):
        judged = (unjudged, ungraded, rate) if has_judgments else (None, ungraded, None)
        yield HolesRow(run, query_id, depth, n, *judged)


def _count_holes(
    track: GradedTrack, judgments: Official | None, depths: Sequence[int]
) -> tuple[dict[int, NDArray[np.int64]], tuple[PoolHoles, ...]]:
    """Return depth -> counts of `holes_of_runs` by query and run, and the pool's holes per depth."""
    ratings, shape = track.ratings(), (len(track.runs), 3)
    counts = {depth: np.zeros((len(ratings), *shape), np.int64) for depth in depths}
    #: Counts: passages, unjudged, unjudged in one run only, ungraded.
    pools = {depth: np.zeros(4, np.int64) for depth in depths}
    pooled = track.pool
    if max(depths) > track.config.track.depth:
        pooled = pool_with_ranks(tuple(track.runs.values()), track.bank.query_ids, max(depths))
    for number, q in enumerate(ratings):
        of_query = pooled[q.query_id]
        rated = is_among(of_query.doc_ids, frozenset(compress(q.doc_ids, q.rated.tolist())))
        judged = None
        if judgments is not None:
            judged = is_among(of_query.doc_ids, judgments.judged.get(q.query_id, {}))
        for depth in depths:
            ranks = of_query.ranks[:, :depth]
            counts[depth][number] = holes_of_runs(ranks, judged, rated)
            in_runs = np.bincount(ranks[ranks >= 0], minlength=len(rated) - 1)
            unjudged = (in_runs > 0) & (True if judged is None else ~judged[:-1])
            kinds = in_runs > 0, unjudged, unjudged & (in_runs == 1), (in_runs > 0) & ~rated[:-1]
            pools[depth] += np.count_nonzero(kinds, axis=1)
    pool_holes = [PoolHoles(depth, *of_pool.tolist()) for depth, of_pool in pools.items()]
    if judgments is None:
        pool_holes = [pool._replace(unjudged=None, unjudged_alone=None) for pool in pool_holes]
    return counts, tuple(pool_holes)


def _judgments(track: GradedTrack, qrels: Path | None) -> tuple[Official | None, tuple[str, ...]]:
    """Return the official judgments, and notes on them."""
    if not track.runs:
        return None, (f"no runs yet: drop some into {track.folder.runs}",)
    try:
        judgments = track_judgments(track) if qrels is None else with_people(track, read_official(qrels))
    except TrecexamError as error:
        reason = shown_error(track.folder, error)
        return None, (f"{reason}; until then only ungraded passages are counted",)
    queries = track.bank.query_ids
    apart = no_overlap(judgments, track.ranked_passages(), track.config.track.unit)
    notes = [*judgments.warnings(), *judgments.people_notes, *([apart] if apart else [])]
    unknown = sum(query_id not in judgments.judged for query_id in queries)
    if unknown and not apart:
        notes.append(
            f"{judgments.source}: {unknown:,} of the track's {plural(len(queries), 'query')} have no "
            "official judgment at all; all their passages count as unjudged"
        )
    return judgments, tuple(notes)


def _pool_line(pool: PoolHoles, runs: Sequence[HolesRow]) -> str:
    passages = plural(pool.passages, "passage")
    line = f"the first {pool.depth:,} ranks of {plural(len(runs), 'run')} have {passages}: "
    if pool.unjudged is None:
        return line + f"{pool.ungraded:,} ungraded"
    line += (
        f"{pool.unjudged:,} unjudged ({pool.unjudged_alone or 0:,} of them only one run has), "
        f"{pool.ungraded:,} ungraded"
    )
    counts = sorted(((row.unjudged or 0, row.run) for row in runs), key=lambda count: (-count[0], count[1]))
    worst = [f"{run} ({count:,})" for count, run in counts if count][:_NAMED]
    return f"{line}; most unjudged: {', '.join(worst)}" if worst else line


#: Maximum rows on the page; the file has all rows.
_ROWS = 15


@memoized
def own_holes(track: GradedTrack) -> HolesReport:
    """Return the holes in the track's depth."""
    return holes_report(track)


def _page(track: GradedTrack, page: Page) -> None:
    """Add the section "holes"."""
    holes = own_holes(track)
    if holes.rows:
        page.add("holes", holes, title="Holes", files=("holes.tsv",), rows=_ROWS)
    else:
        page.add("holes", title="Holes", why=sentence(NO_RUNS))


_HOLES = "Per run and query: passages in the first ranks without a judgment or a grade."
HOLES = Feature({"holes.tsv": (_HOLES, own_holes)}, _page)
