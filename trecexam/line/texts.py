"""The texts of the pooled passages: each source is read once until it changes or more is wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from converters.errors import ConversionError
from converters.ir_dataset import dataset_passages
from converters.passages import numbered_passages
from converters.records import Passage
from converters.rubric_jsonl import numbered_graded_passages
from trecexam.errors import TrackError
from trecexam.files.stamps import Rejected, sniffed, stamp
from trecexam.folder import TrackFolder


class Texts:
    """The passages of one track."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        #: Never changed once given: loaded tracks hold it.
        self._texts: Mapping[str, str] = {}
        self._sought: set[str] = set()
        self._texts_stamp: object = None
        self._texts_rejected: tuple[Rejected, ...] = ()

    @property
    def has_source(self) -> bool:
        """Whether the track has any file or dataset that texts may be in."""
        folder = self.folder
        dataset = folder.config.track.dataset
        return not (folder.passages() is None and dataset is None and folder.recorded() is None)

    def of(self, doc_ids: Iterable[str]) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """The texts of these documents, as far as the track has them, and the passage lines rejected.

        Raises:
            TrackError: the track has no passages at all.
        """
        path = self.folder.passages()
        recorded = self.folder.recorded()
        dataset = self.folder.config.track.dataset
        source: Path | None = path
        if path is None and dataset is None:
            if recorded is None:
                raise no_passages(self.folder)
            source = recorded
        current = dataset if source is None else (source, stamp(source))
        if current != self._texts_stamp:
            self._texts, self._sought, self._texts_stamp = {}, set(), current
        needed = set(doc_ids) - self._sought
        if needed:
            if source is None:
                assert dataset is not None
                new = dataset_passages(dataset, needed)
                self._texts = {**self._texts, **{doc_id: each.text for doc_id, each in new.items()}}
            else:
                self._texts, self._texts_rejected = _passages(
                    source, needed | self._texts.keys(), self.folder.shown(source)
                )
            self._sought |= needed
        return self._texts, self._texts_rejected


def no_passages(folder: TrackFolder) -> TrackError:
    """Return the error of a track that lacks the texts of its passages."""
    return TrackError(
        'no passages: put passages.jsonl here, one {"docid", "text"} a line, or set `dataset` in [track]',
        path=folder.root,
    )


def _passages(
    path: Path, doc_ids: Collection[str], file_name: str
) -> tuple[dict[str, str], tuple[Rejected, ...]]:
    rejected: list[Rejected] = []

    def refuse(error: ConversionError) -> None:
        rejected.append(Rejected(file_name, error.line, error.reason, error.lost))

    texts: dict[str, str] = {}
    lines: dict[str, int] = {}
    try:
        for line, (doc_id, text) in _numbered_passages(path, refuse):
            if doc_id not in doc_ids:
                continue
            first = lines.setdefault(doc_id, line)
            if texts.setdefault(doc_id, text) != text:
                reason = (
                    f"passage '{doc_id}' has another text on line {first}, which counts; this one does not"
                )
                rejected.append(Rejected(file_name, line, reason, "line"))
    except ConversionError as error:
        # A truncated archive: what came before the end counts, the rest is named.
        rejected.append(Rejected(file_name, error.line, error.reason, "file"))
    return texts, tuple(rejected)


def _numbered_passages(
    path: Path, on_error: Callable[[ConversionError], None]
) -> Iterator[tuple[int, Passage]]:
    if sniffed(path) == "rubric":
        return numbered_graded_passages(path)
    return numbered_passages(path, on_error)
