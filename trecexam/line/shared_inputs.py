"""What the loaders of one track share: the store, its files as they were read, texts and pools."""

from __future__ import annotations

from collections import Counter

from trecexam.files.cache import Cache, FileCache
from trecexam.folder import TrackFolder
from trecexam.line.run_columns import RunColumns
from trecexam.line.store import GradeStore
from trecexam.line.texts import Texts


class SharedInputs:
    """Of one track, for as many loaders as there are: what one of them read is not read again.

    Attributes:
        files: what was made of each file.
        cache: inputs and texts, where there are several loaders.
        columns: those of large runs.
        opened: another number whenever the store was closed since: what was loaded from it is stale.
        graded: digest of a grader's identity -> how many cells it graded here: others may be the same one.
        several: whether there are several loaders. Where there is one, nothing is kept for others.
    """

    def __init__(self, folder: TrackFolder, *, several: bool = False) -> None:
        self.files = FileCache()
        self.cache = Cache()
        self.columns = RunColumns(folder.shared_state / "runs", write=False)
        self.graded: Counter[bytes] = Counter()
        self.opened = 0
        self.several = several
        self._folder = folder
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
        return self.cache.get(("texts", source), None, lambda: Texts(folder))
