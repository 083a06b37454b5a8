"""Compares two readings of answers: the paper's, and that of the workbench's released code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from converters.gold import KIND as GOLD
from trecexam.errors import TrecexamError
from trecexam.line.evaluation import leaderboard
from trecexam.line.loader import TrackLoader
from trecexam.line.measure_names import names_of
from trecexam.tables.result import Tables
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike


def difference(
    track: Assessment, compat: str = "workbench", measures: Sequence[MeasureLike] | None = None
) -> Tables:
    """A row per run and measure with both readings; runs no model.

    Args:
        compat: the other way, as `compat` in [grader].
        measures: None for the track's own.

    Raises:
        TrecexamError: the grader's answers can be read in one way only.
    """
    traits = track.traits
    if traits.read is None or GOLD in traits.item_kinds:
        raise TrecexamError(
            f"the `{track.grader.identity['grader']}` grader's answers can be read in only one way; `verify "
            f"readings` is for language models"
        )
    if traits.free_text is False:
        raise TrecexamError(
            'with `decode = "choices"` the model picks a permitted answer, so there is nothing to read; '
            '`verify readings` is for `decode = "beam"`'
        )
    config = track.folder.config
    grader = config.grader.model_copy(update={"compat": compat})
    folder = replace(track.folder, config=config.model_copy(update={"grader": grader}))
    with TrackLoader(folder) as loader:
        other = loader.load()
        names = names_of(measures)
        board, other_board = leaderboard(track, names), leaderboard(other, names)
        cells = differ = 0
        for ratings, other_ratings in zip(track.ratings(), other.ratings(), strict=True):
            cells += int((ratings.ratings >= 0).sum())
            differ += int((ratings.ratings != other_ratings.ratings).sum())
    values = {row.run: row.scores for row in other_board.rows}
    rows = tuple(
        (
            row.run,
            measure,
            score.mean,
            values[row.run][measure_index].mean,
            values[row.run][measure_index].mean - score.mean,
        )
        for row in board.rows
        for measure_index, (measure, score) in enumerate(zip(board.measures, row.scores, strict=True))
    )
    note = f"{differ:,} of {cells:,} ratings differ when read as '{compat}'"
    table = Table(("run", "measure", "value", compat, "difference"), rows)
    return Tables({"readings": table}, (note,), about={"cells": cells, "differ": differ})
