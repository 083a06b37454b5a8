"""The texts of the pooled passages: each source is read once until it changes or more is wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from converters.errors import ConversionError
from converters.ir_dataset import dataset_passages
from converters.passages import numbered_passages
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
        self._source: object = None
        self._rejected: tuple[Rejected, ...] = ()

    @property
    def has_source(self) -> bool:
        """True where the track has a file or dataset that texts may be in."""
        folder = self.folder
        return bool(folder.passages() or folder.config.track.dataset or folder.recorded())

    def of(self, doc_ids: Iterable[str]) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """Return the texts of documents, as far as the track has them, and the passage lines rejected."""
        dataset = self.folder.config.track.dataset
        path = self.folder.passages() or (None if dataset else self.folder.recorded())
        if path is None and dataset is None:
            raise no_passages(self.folder)
        current = dataset if path is None else (path, stamp(path))
        if current != self._source:
            self._texts, self._sought, self._source = {}, set(), current
        needed = set(doc_ids) - self._sought
        if needed and path is not None:
            wanted = needed | self._texts.keys()
            self._texts, self._rejected = _passages(path, wanted, self.folder.shown(path))
        elif needed:
            new = dataset_passages(str(dataset), needed)
            self._texts = {**self._texts, **{doc_id: each.text for doc_id, each in new.items()}}
        self._sought |= needed
        return self._texts, self._rejected


def no_passages(folder: TrackFolder) -> TrackError:
    """Return the error of a track that lacks the texts of its passages."""
    return TrackError(
        'no passages: put passages.jsonl here, one {"docid", "text"} a line, or set `dataset` in [track]',
        path=folder.root,
    )


def _passages(
    path: Path, doc_ids: Collection[str], file_name: str
) -> tuple[dict[str, str], tuple[Rejected, ...]]:
    errors: list[ConversionError] = []
    texts: dict[str, str] = {}
    lines: dict[str, int] = {}
    numbered = (
        numbered_graded_passages(path)
        if sniffed(path) == "rubric"
        else numbered_passages(path, errors.append)
    )
    try:
        for line, (doc_id, text) in numbered:
            if doc_id not in doc_ids:
                continue
            first = lines.setdefault(doc_id, line)
            if texts.setdefault(doc_id, text) != text:
                reason = (
                    f"passage '{doc_id}' has another text on line {first}, which counts; this one does not"
                )
                errors.append(ConversionError(path, line, reason, "line"))
    except ConversionError as error:
        # A truncated archive: what came before the end counts, the rest is named.
        errors.append(ConversionError(path, error.line, error.reason, "file"))
    return texts, tuple(Rejected(file_name, error.line, error.reason, error.lost) for error in errors)
