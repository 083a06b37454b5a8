"""Graders of support: does a cited passage say what the sentence says that cites it? Ratings are 0, 1 and 2.

The offline one compares embeddings: a sentence with the window of the passage that is most like it. It sees
what a passage is about, and neither a negation nor a wrong number; it was fitted on no labels of support.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.lines import open_input
from converters.segment import segments
from converters.support_labels import LABELS, read_support_labels
from trecexam.bank.model import STATEMENT
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Grader, Scale
from trecexam.graders.cut_points import CUT_POINTS
from trecexam.graders.embedding import (
    READ_AHEAD,
    EmbeddingGrader,
    arguments,
    by_passages,
)

#: Words and punctuation marks of a window of a passage, which ends where a sentence ends.
WINDOW = 64
#: From what is related on (a rating of 2) support is partial, from what is a perfect answer on (5) full: the
#: cosines that `cut_points` linked to judgments of relevance on TREC DL 2019.
SUPPORT_CUTS = (CUT_POINTS[1], CUT_POINTS[4])
#: Sentences that are embedded at once: what was graded is stored after each batch.
MOST_CELLS = 512


class SupportEmbedding(EmbeddingGrader):
    """Grades by the highest cosine of the sentence with the passage or one of its windows."""

    item_kinds = frozenset({STATEMENT})
    scale = Scale(2, 1)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        base = dict(super().identity)
        return {**base, "grader": "embedding-support", "window": WINDOW}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        import numpy as np

        # Runs cite the same passages: one after the other, each passage's windows are embedded once.
        together = sorted(cells, key=lambda cell: cell.text)
        for batch in by_passages(together, READ_AHEAD, most_cells=MOST_CELLS):
            windows = {
                text: list(dict.fromkeys((text, *segments(text, WINDOW))))
                for text in dict.fromkeys(cell.text for cell in batch)
            }
            distinct = dict.fromkeys(window for of_text in windows.values() for window in of_text)
            vectors = self._vectors(list(distinct))
            self._embed_items(cell.item.text for cell in batch)
            yield [
                graded
                for text, cells_of_text in groupby(batch, lambda cell: cell.text)
                for graded in self._graded(
                    list(cells_of_text), np.array([vectors[window] for window in windows[text]])
                )
            ]


class SupportRecorded:
    """Gives the labels of a file, as out/support.tsv, by run, query, sentence and passage, and no others.

    It needs no texts: a passage without one is known by its id.
    """

    item_kinds = frozenset({STATEMENT})
    scale = Scale(2, 1)

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        try:
            with open_input(self.path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise GraderError(f"cannot be read: {error.strerror}", path=self.path) from None
        return {"grader": "recorded-support", "sha256": digest}

    @cached_property
    def known_passages(self) -> Mapping[str, Collection[str]]:
        """query_id -> the passages that it has labels of."""
        doc_ids_by_query: dict[str, set[str]] = {}
        for name, doc_id in self._ratings:
            doc_ids_by_query.setdefault(name.rpartition("/")[0].rpartition("/")[2], set()).add(doc_id)
        return doc_ids_by_query

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        rating_of = self._ratings
        cell_ratings = [(cell, rating_of.get((cell.item.item_id, cell.doc_id))) for cell in cells]
        graded = [
            (cell, Answer(rating, "ok", LABELS[rating]))
            for cell, rating in cell_ratings
            if rating is not None
        ]
        if graded:
            yield graded

    @cached_property
    def _ratings(self) -> Mapping[tuple[str, str], int]:
        errors: list[ConversionError] = []
        ratings: dict[tuple[str, str], int] = {}
        for row in read_support_labels(self.path, errors.append):
            ratings.setdefault((f"{row.run}/{row.query_id}/{row.place}", row.doc_id), row.rating)
        if errors:
            # What is wrong with a recording is not stored as if it were no grade.
            raise GraderError(errors[0].reason, path=self.path, line=errors[0].line)
        return ratings


def create_embedding(settings: GraderSection, root: Path) -> Grader:
    """The grader `embedding` of support.

    Raises:
        GraderError: there are no weights, or not two cut points.
    """
    return SupportEmbedding(**arguments(settings, root, SUPPORT_CUTS))


def create_recorded(settings: GraderSection, root: Path) -> Grader:
    """The grader `recorded` of support.

    Raises:
        GraderError: no file is named.
    """
    if settings.recorded is None:
        raise GraderError("`recorded` in [grader] needs `recorded`, the file of labels, as out/support.tsv")
    return SupportRecorded(root / settings.recorded)
