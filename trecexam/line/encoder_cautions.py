"""A caution on runs that rank passages as the encoder of the `embedding` grader does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from trecexam.scores.encoder_likeness import MAX_RANKS, MIN_RUNS, agreement, runs_like_encoder
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trecexam.line.assessment import Assessment
    from trecexam.line.sheets import Sheet


def encoder_cautions(track: Assessment) -> tuple[str, ...]:
    """A line that names the runs nearer to the grader's encoder than chance allows, see `runs_like_encoder`.

    A passage's cosine is its highest over the query's items, as its label is its best rating.
    """
    if track.traits.cosines is None or len(track.runs) < MIN_RUNS:
        return ()
    runs = track.derived("runs like the encoder", ("cells", "runs"), lambda: _runs_like_encoder(track))
    if not runs:
        return ()
    rank, their, them = ("ranks", "its", "it") if len(runs) == 1 else ("rank", "their", "them")
    return (
        f"{plural(len(runs), 'run')} {rank} passages much as the grader's encoder does "
        f"({shorten_list(runs, quote='')}): {their} scores are likely too high; leave {them} out, "
        "or use another grader",
    )


def _runs_like_encoder(track: Assessment) -> tuple[str, ...]:
    names = list(track.runs)
    return tuple(names[row] for row in runs_like_encoder(encoder_agreements(track)))


def encoder_agreements(track: Assessment) -> NDArray[np.float64]:
    """How far each run ranks as the grader's encoder does, shape (runs, queries): see `agreement`."""
    agreements = np.full((len(track.runs), len(track.sheets)), np.nan)
    for column, (query_id, sheet) in enumerate(track.sheets.items()):
        ranks = track.pool[query_id].ranks[:, :MAX_RANKS]
        if ranks.shape[1] < 2:
            continue
        highest: NDArray[np.float64] = track.cache.get(
            f"cosines {query_id}", sheet.digest, partial(highest_cosines, track, sheet)
        )
        # The last one is for rank -1.
        agreements[:, column] = agreement(np.append(highest, np.nan)[ranks])
    return agreements


def highest_cosines(track: Assessment, sheet: Sheet) -> NDArray[np.float64]:
    """Each passage's highest cosine, NaN where it has none."""
    cosines = track.grades.cosines(sheet)
    if cosines is None or not cosines.shape[1]:
        return np.full(len(sheet.doc_ids), np.nan)
    highest: NDArray[np.float64] = np.fmax.reduce(cosines, axis=1)
    return highest
