"""The texts of the pooled passages: each source is read once until it changes or more is wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from converters.errors import ConversionError
from converters.records import Passage
from trecexam.errors import TrackError
from trecexam.files.stamps import Rejected, sniffed, stamp
from trecexam.track import TrackFolder


class Texts:
    """The passages of one track."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self._texts: dict[str, str] = {}
        self._sought: set[str] = set()
        self._texts_stamp: object = None
        self._texts_rejected: tuple[Rejected, ...] = ()

    def of(self, doc_ids: Iterable[str]) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """The texts of these documents, as far as the track has them, and the passage lines not taken.

        Raises:
            TrackError: the track has no passages at all.
        """
        path = self.folder.passages()
        recorded = self.folder.recorded()
        dataset = self.folder.config.track.dataset
        source: Path | None = path
        if path is None and dataset is None:
            if recorded is None:
                raise TrackError(
                    'no passages: put passages.jsonl here, one {"docid", "text"} a line, '
                    "or set `dataset` in [track]",
                    path=self.folder.root,
                )
            source = recorded
        current = dataset if source is None else (source, stamp(source))
        if current != self._texts_stamp:
            self._texts, self._sought, self._texts_stamp = {}, set(), current
        wanted = set(doc_ids) - self._sought
        if wanted:
            if source is None:
                assert dataset is not None
                self._texts.update(_dataset_texts(dataset, wanted))
            else:
                found, self._texts_rejected = _passages(
                    source, wanted | self._texts.keys(), self.folder.shown(source)
                )
                self._texts.update(found)
            self._sought |= wanted
        return self._texts, self._texts_rejected


def _passages(path: Path, wanted: Collection[str], shown: str) -> tuple[dict[str, str], tuple[Rejected, ...]]:
    rejected: list[Rejected] = []

    def refuse(error: ConversionError) -> None:
        rejected.append(Rejected(shown, error.line, error.reason))

    texts: dict[str, str] = {}
    try:
        for passage in _read_passages(path, refuse):
            if passage.doc_id in wanted and texts.setdefault(passage.doc_id, passage.text) != passage.text:
                rejected.append(
                    Rejected(
                        shown,
                        None,
                        f"passage '{passage.doc_id}' stands twice with different texts; the first one counts",
                    )
                )
    except ConversionError as error:
        # A truncated archive: what came before the end counts, the rest is named.
        refuse(error)
    return texts, tuple(rejected)


def _read_passages(path: Path, on_error: Callable[[ConversionError], None]) -> Iterator[Passage]:
    from converters.passages import read_passages
    from converters.rubric_jsonl import read_graded_passages

    if sniffed(path) == "rubric":
        return iter(read_graded_passages(path))
    return iter(read_passages(path, on_error))


def _dataset_texts(dataset: str, wanted: Collection[str]) -> dict[str, str]:
    from converters.ir_dataset import dataset_passages

    return {doc_id: passage.text for doc_id, passage in dataset_passages(dataset, wanted).items()}
