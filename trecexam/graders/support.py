"""The offline grader of support: does a cited passage say what the sentence says that cites it?

A sentence is compared with the window of the passage whose embedding is most like it. The grader sees what a
passage is about, and neither a negation nor a wrong number; it was fitted on no labels of support.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from converters.segment import segments
from trecexam.bank.model import STATEMENT
from trecexam.graders.base import Answer, Cell, Scale
from trecexam.graders.embedding import CUT_POINTS, EmbeddingGrader

#: Words and punctuation marks of a window of a passage, which ends where a sentence ends.
WINDOW = 64
#: From what is related on (a rating of 2) support is partial, from what is a perfect answer on (5) full: the
#: cosines that were linked to judgments of relevance on TREC DL 2019.
SUPPORT_CUTS = (CUT_POINTS[1], CUT_POINTS[4])


class SupportEmbedding(EmbeddingGrader):
    """Grades by the highest cosine of the sentence with the passage or one of its windows."""

    item_kinds = frozenset({STATEMENT})
    scale = Scale(2, 1)
    cuts = SUPPORT_CUTS
    #: Sentences that are embedded at once: what was graded is stored after each batch.
    read_ahead = 512

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        return {**super().identity, "grader": "embedding-support", "window": WINDOW}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        # Runs cite the same passages: one after the other, each passage's windows are embedded once.
        return super().grade(sorted(cells, key=lambda cell: cell.text))

    def windows(self, text: str) -> Sequence[str]:
        return list(dict.fromkeys((text, *segments(text, WINDOW))))


create = SupportEmbedding.create
