# ruff: noqa: E501
"""How early a leaderboard is right if the most useful cells are graded first: prints the table of results/useful-cells.md.

    python tests/benchmarks/useful_cells.py TRACK

TRACK is a track of ../shared/dl19 with `pool_judged = true` that the recorded grader has graded. Its grades are
removed and added again in different orders. Some minutes, after encoding.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from trecexam.folder import TrackFolder
from trecexam.graders.base import Answer, Cell, Grader
from trecexam.grades.cell_order import useful_cells
from trecexam.grades.evaluation import rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import missing_cells
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.sheets import MISSING

MEASURES = ("P(rel=4)@20", "nDCG@20", "Cover(rel=4)@20")
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.6, 0.8, 1.0)


class RevealingGrader(Grader):
    """Says of itself what it is told to, and answers nothing here."""

    def __init__(self, grader: Grader, share: Any) -> None:
        self._grader = grader
        self.cells_share = share

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._grader.identity

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        raise NotImplementedError


def ungraded(track: GradedTrack, share: str = "nothing") -> GradedTrack:
    """The track without its grades."""
    sheets = {
        q: replace(sheet, codes=np.full_like(sheet.codes, MISSING)) for q, sheet in track.sheets.items()
    }
    cells = track.config.cells.model_copy(update={"order": "useful"})
    return replace(
        track,
        sheets=sheets,
        grader=RevealingGrader(track.grader, share),
        config=track.config.model_copy(update={"cells": cells}),
    )


def revealed(cells: Iterable[Cell], full: GradedTrack) -> list[tuple[str, int, int]]:
    """The cells as (query_id, row, column), in the order in which they are asked for."""
    columns = {
        q: {item.item_id: at for at, item in enumerate(sheet.items)} for q, sheet in full.sheets.items()
    }
    order: list[tuple[str, int, int]] = []
    for cell in cells:
        sheet = full.sheets[cell.query_id]
        order.append((cell.query_id, sheet.row_of[cell.doc_id], columns[cell.query_id][cell.item.item_id]))
    return order


def partly(track: GradedTrack, full: GradedTrack, order: Sequence[tuple[str, int, int]]) -> GradedTrack:
    """The track with the grades of these cells; passages of the same text and equal items have them too."""
    codes = {q: sheet.codes.copy() for q, sheet in track.sheets.items()}
    known = {(full.sheets[q].texts[row], full.sheets[q].items[column].text, q) for q, row, column in order}
    for q, row, column in order:
        codes[q][row, column] = full.sheets[q].codes[row, column]
    for q, sheet in full.sheets.items():
        if len(set(sheet.texts)) < len(sheet.texts):
            for row, text in enumerate(sheet.texts):
                for column, item in enumerate(sheet.items):
                    if (text, item.text, q) in known:
                        codes[q][row, column] = sheet.codes[row, column]
    return replace(
        track,
        sheets={q: replace(sheet, codes=codes[q]) for q, sheet in track.sheets.items()},
    )


def means(track: GradedTrack) -> np.ndarray:
    return rubric_values(track, MEASURES).array.mean(axis=1)


def taus(
    track: GradedTrack, full: GradedTrack, order: Sequence[tuple[str, int, int]], total: int
) -> list[str]:
    expected, cells = means(full), []
    for share in SHARES:
        if share * total > len(order) and share - len(order) / total > 0.1 and share < 1:
            cells.append("")
            continue
        values = means(partly(track, full, order[: round(share * total)]))
        cells.append(
            " ".join(
                f"{kendalltau(expected[:, k], values[:, k]).statistic:.2f}" for k in range(len(MEASURES))
            )
        )
    return cells


def main(root: str) -> None:
    with OpenTrack(TrackFolder.open(root)) as loaders:
        full = loaders.first.load()
        blank = ungraded(full)
        orders = {
            "bank": revealed(missing_cells(blank), full),
            "whole passages by rank": revealed(useful_cells(ungraded(full, "answer")), full),
            "useful, items by words": revealed(useful_cells(ungraded(full, "nothing")), full),
        }
        total = len(orders["bank"])
        print("| " + " | ".join(["order", "asked", *(f"{share:.0%}" for share in SHARES)]) + " |")
        print("|---" * (len(SHARES) + 2) + "|")
        for name, order in orders.items():
            row = [name, f"{len(order) / total:.0%}", *taus(blank, full, order, total)]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
