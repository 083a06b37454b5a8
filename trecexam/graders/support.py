"""Graders of support: does a cited passage say what the sentence says that cites it? Ratings are 0, 1 and 2.

The offline one compares embeddings: a sentence with the window of the passage that is most like it. It sees
what a passage is about, and neither a negation nor a wrong number; it was fitted on no labels of support.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.segment import segments
from converters.support_labels import LABELS, read_support_labels
from trecexam.bank.model import STATEMENT
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Scale
from trecexam.graders.embedding import CUT_POINTS, EmbeddingGrader
from trecexam.graders.recorded import RecordedGrader, Recording, by_query

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


class SupportRecorded(RecordedGrader):
    """Gives the labels of a file, as out/support.tsv, by run, query, sentence and passage, and no others.

    It needs no texts: a passage without one is known by its id.
    """

    scale = Scale(2, 1)
    model_and_prompt = None

    def __init__(self, path: Path, *_: str | None) -> None:
        super().__init__(path)
        self.item_kinds = frozenset({STATEMENT})

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        return {"grader": "recorded-support", "sha256": self.sha256()}

    @cached_property
    def known_passages(self) -> Mapping[str, Collection[str]]:  # type: ignore[override]
        return by_query((doc_id, name.split("/")[-2]) for doc_id, name in self.recording.by_doc)

    @cached_property
    def recording(self) -> Recording:
        errors: list[ConversionError] = []
        answers: dict[tuple[str, str], Answer] = {}
        for row in read_support_labels(self.path, errors.append):
            key = row.doc_id, f"{row.run}/{row.query_id}/{row.place}"
            answers.setdefault(key, Answer(row.rating, "ok", LABELS[row.rating]))
        if errors:
            # What is wrong with a recording is not stored as if it were no grade.
            raise GraderError(errors[0].reason, path=self.path, line=errors[0].line)
        return Recording(answers, {}, ("", ""))


create_embedding, create_recorded = SupportEmbedding.create, SupportRecorded.create
