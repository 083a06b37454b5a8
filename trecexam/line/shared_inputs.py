"""What the loaders of one track share: the store, its files as they were read, texts and pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any

from converters.ir_dataset import dataset_qrels, dataset_queries
from trecexam.files.cache import FileCache
from trecexam.folder import TrackFolder
from trecexam.line.run_columns import RunColumns
from trecexam.line.store import GradeStore
from trecexam.line.texts import Texts
from trecexam.line.track_inputs import TrackInputs


class SharedInputs:
    """Of one track, for as many loaders as there are: what one of them read is not read again.

    Attributes:
        files: what was made of each file.
        inputs: how they are read -> their stamps, and the inputs; where there are several loaders.
        dataset_queries, dataset_qrels: what a dataset has, read once.
        columns: those of large runs.
        opened: another number whenever the store was closed since: what was loaded from it is stale.
        graded: digest of a grader's identity -> how many cells it graded here: others may be the same one.
        several: whether there are several loaders. Where there is one, nothing is kept for others.
    """

    def __init__(self, folder: TrackFolder, *, several: bool = False) -> None:
        self.files = FileCache()
        self.inputs: dict[Hashable, tuple[Any, TrackInputs]] = {}
        self.dataset_queries = cache(lambda dataset: tuple(dataset_queries(dataset)))
        self.dataset_qrels = cache(lambda dataset: tuple(dataset_qrels(dataset)))
        self.columns = RunColumns(folder.shared_state / "runs", write=False)
        self.graded: Counter[bytes] = Counter()
        self.opened = 0
        self.several = several
        self._folder = folder
        self._texts: dict[Path | str | None, Texts] = {}
        self._store: GradeStore | None = None

    @property
    def store(self) -> GradeStore:
        """The grades; opened for reading only until `open_to_write`."""
        if self._store is None:
            self._store = GradeStore(self._folder.store_path, write=False)
        return self._store

    def open_to_write(self) -> bool:
        """Opens the store for writing; whether it was not.

        Raises:
            StoreError: it cannot be written.
        """
        if self._store is not None and self._store.write:
            return False
        self.close()
        self._store = GradeStore(self._folder.store_path, write=True)
        self.columns.write = True
        return True

    def close(self) -> None:
        """Closes the store; it is opened again where it is requested."""
        if self._store is not None:
            self._store.close()
        self._store = None
        self.opened += 1

    @property
    def lost(self) -> bool:
        """Whether the file of the store that is open is gone, or is another one by now."""
        return self._store is not None and self._store.is_replaced()

    def texts(self, folder: TrackFolder) -> Texts:
        """The passages of the track, as one of its graders has them."""
        passages, dataset = folder.passages(), folder.config.track.dataset
        source = passages or dataset or folder.recorded()
        if source not in self._texts:
            self._texts[source] = Texts(folder)
        return self._texts[source]
