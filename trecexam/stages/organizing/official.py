"""The official judgments that a command compares with, and whether they meet the pool at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import converters
from converters.records import Qrel
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline


@dataclass(frozen=True)
class Official:
    """Official judgments, as they are in their file.

    Attributes:
        source: the file, as people see it; or the dataset.
        rows: the judgments, in the file's order.
    """

    source: str
    rows: tuple[Qrel, ...]

    @cached_property
    def labels(self) -> Mapping[str, Mapping[str, int]]:
        """query_id -> doc_id -> label; the best one where a passage is judged for several subtopics."""
        found: dict[str, dict[str, int]] = {}
        for row in self.rows:
            judged = found.setdefault(row.query_id, {})
            judged[row.doc_id] = max(row.relevance, judged.get(row.doc_id, row.relevance))
        return found

    def meets(self, pool: Mapping[str, Collection[str]]) -> str | None:
        """Says in a line why these judgments and this pool have nothing in common; None where they have.

        Args:
            pool: query_id -> pooled doc_ids.
        """
        common = [query_id for query_id in pool if query_id in self.labels]
        if not common:
            return (
                f"{self.source}: none of its {len(self.labels):,} queries ({_some(self.labels)}) is among "
                f"the track's ({_some(pool)}); are query ids written in another form?"
            )
        pooled = {doc_id for query_id in common for doc_id in pool[query_id]}
        if not pooled:
            return None
        if any(doc_id in pooled for query_id in common for doc_id in self.labels[query_id]):
            return None
        judged = sorted(doc_id for query_id in common for doc_id in self.labels[query_id])
        return (
            f"{self.source}: no passage that it judges ({_some(judged)}) is in the pool "
            f"({_some(sorted(pooled))}); are document ids written in another form?"
        )


def official(pipeline: Pipeline, path: Path | None = None) -> Official:
    """The track's official judgments, or those of another file.

    Args:
        pipeline: a loaded one.
        path: a qrels file in place of the track's.

    Raises:
        TrecexamError: the track has none; with what to do.
        ConversionError: `path` cannot be read; with its line.
    """
    folder = pipeline.folder
    if path is not None:
        return Official(str(path), tuple(converters.read(path, "qrels")))
    assert pipeline.snapshot is not None
    file = folder.qrels()
    if pipeline.snapshot.official is None:
        for row in pipeline.snapshot.rejected:
            if file is not None and row.file == folder.shown(file):
                raise TrecexamError(
                    f"the official judgments were not taken: {row.reason}", path=file, line=row.line
                )
        raise TrecexamError(
            "no official judgments: put qrels.txt here or name a file with `qrels` in [track]",
            path=folder.root,
        )
    return Official(
        folder.shown(file) if file else str(folder.config.track.dataset), pipeline.snapshot.official
    )


def _some(ids: Collection[str] | Sequence[str]) -> str:
    shown = [f"'{one}'" for _, one in zip(range(2), ids, strict=False)]
    return ", ".join(shown) + (", ..." if len(ids) > len(shown) else "") if shown else "none"
