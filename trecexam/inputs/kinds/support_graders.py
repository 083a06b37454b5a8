"""Graders of support in this process: by sentence embeddings, and from labels that exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from converters.recordings import read_recorded_support
from converters.segment import segments
from trecexam.bank.model import STATEMENT
from trecexam.config import GraderSection
from trecexam.graders.base import Answer, Cell, Scale
from trecexam.graders.embedding import CUT_POINTS, EmbeddingGrader
from trecexam.graders.recorded import RecordedGrader, Recording, recorded_path

#: Words and punctuation marks of a window of a passage, which ends where a sentence ends.
WINDOW = 64
#: From what is related on (a rating of 2) support is partial, from what is a perfect answer on (5) full: the
#: cosines that were linked to judgments of relevance on TREC DL 2019.
SUPPORT_CUTS = (CUT_POINTS[1], CUT_POINTS[4])


class SupportEmbedding(EmbeddingGrader):
    """Says how far a cited passage says what the sentence says that cites it: 0, 1 or 2.

    A sentence is compared with the window of the passage that is most like it. The grader sees what a passage
    is about, and neither a negation nor a wrong number; it was fitted on no labels of support.
    """

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


class RecordedSupport(RecordedGrader):
    """Looks up labels of support, as in out/support.tsv: of run, query, sentence and the passage's id."""

    scale = Scale(2, 1)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        # Whatever else the file looks like.
        self.item_kinds = frozenset({STATEMENT})

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        return {"grader": "recorded-support", "sha256": self.sha256}

    @cached_property
    def known_passages(self) -> Mapping[str, Collection[str]]:  # type: ignore[override]
        doc_ids: dict[str, set[str]] = {}
        for doc_id, item_id in self.recording.by_doc:
            doc_ids.setdefault(item_id.split("/")[-2], set()).add(doc_id)
        return doc_ids

    @cached_property
    def recording(self) -> Recording:
        answers: dict[tuple[str, str], Answer] = {}
        for grade in read_recorded_support(self.path):
            answers.setdefault((grade.doc_id, grade.item_id), Answer(grade.rating, "ok", grade.answer))
        return Recording(answers, {}, None)


create_embedding = SupportEmbedding.create


def create_recorded(settings: GraderSection, root: Path) -> RecordedSupport:
    """Make the grader of the labels that [grader] names."""
    return RecordedSupport(recorded_path(settings, root))
