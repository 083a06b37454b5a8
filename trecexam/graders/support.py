"""Graders of support: does a cited passage say what the sentence says that cites it? Ratings are 0, 1 and 2.

The offline one compares embeddings: a sentence with the window of the passage that is most like it. It sees
what a passage is about, and neither a negation nor a wrong number; it was fitted on no labels of support.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from converters.segment import segments
from trecexam.config import RaySection, SupportSection
from trecexam.errors import GraderError, did_you_mean
from trecexam.graders.base import Answer, Cell, Grader, Scale
from trecexam.graders.creation import create
from trecexam.graders.cut_points import CUT_POINTS, rating
from trecexam.graders.embedding import EmbeddingGrader, by_passages
from trecexam.graders.traits import traits_of
from trecexam.graders.weights import OFFLINE_MODEL, embedding_folder
from trecexam.graders.writing.base import naming

#: The kind of items that are sentences of responses.
STATEMENT = "statement"
#: The published prompt, by its name here.
PROMPT = "TRECRAG2024Support"
#: Words and punctuation marks of a window of a passage, which ends where a sentence ends.
WINDOW = 64
#: From what is related on (a rating of 2) support is partial, from what is a perfect answer on (5) full: the
#: cosines that `cut_points` linked to judgments of relevance on TREC DL 2019.
SUPPORT_CUTS = (CUT_POINTS[1], CUT_POINTS[4])
#: Sentences that are embedded at once: what was graded is stored after each batch.
MOST_CELLS = 512
_GRADERS = ("embedding", "openai", "causal", "seq2seq")


class SupportEmbedding(EmbeddingGrader):
    """Grades by the highest cosine of the sentence with the passage or one of its windows."""

    item_kinds = frozenset({STATEMENT})
    scale = Scale(2, 1)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        own = dict(super().identity)
        return {**own, "grader": "embedding-support", "window": WINDOW}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        # Runs cite the same passages: one after the other, each passage's windows are embedded once.
        together = sorted(cells, key=lambda cell: cell.text)
        for batch in by_passages(together, self.batch_size, most_cells=MOST_CELLS):
            windows = {
                text: dict.fromkeys((text, *segments(text, WINDOW))) for cell in batch for text in [cell.text]
            }
            distinct = list(dict.fromkeys(window for of_text in windows.values() for window in of_text))
            row_of = {window: row for row, window in enumerate(distinct)}
            vectors = self.embed(distinct)
            self._embed_items(cell.item.text for cell in batch)
            graded = []
            for cell in batch:
                rows = [row_of[window] for window in windows[cell.text]]
                cosine = round(float((vectors[rows] @ self._items[cell.item.text]).max()), 4)
                graded.append((cell, Answer(rating(cosine, self.cut_points), "ok", f"{cosine:.4f}")))
            yield graded


def create_support(settings: SupportSection, root: Path, ray: RaySection | None = None) -> Grader:
    """The grader that [support] names.

    Raises:
        GraderError: no such grader, it cannot run here, or its prompt asks about other things.
    """
    if settings.name not in _GRADERS:
        hint = did_you_mean(settings.name, _GRADERS, f"known here: {', '.join(_GRADERS)}")
        raise GraderError(f"`name` in [support] is '{settings.name}', which grades no support; {hint}")
    if settings.name == "embedding" and settings.prompt is not None:
        raise GraderError("`prompt` in [support] is not for `embedding`, which asks no model")
    with naming("support"):
        if settings.name == "embedding":
            return SupportEmbedding(
                embedding_folder(settings.model, settings.revision, root),
                settings.cut_points or SUPPORT_CUTS,
                settings.device,
                settings.batch_size,
                model=settings.model or OFFLINE_MODEL,
            )
        own = settings.as_grader().model_copy(update={"prompt": settings.prompt or PROMPT})
        grader = create(own, root, ray)
    traits = traits_of(grader)
    if traits.item_kinds != {STATEMENT} or traits.scale.max_rating != Scale(2).max_rating:
        raise GraderError(
            "the prompt of [support] asks about {statement} and {citation}, with max_rating = 2: "
            "2 is full support, 1 partial, 0 none"
        )
    return grader
