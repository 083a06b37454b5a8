"""Writes the test banks that `watch` finds missing, as `trecexam bank generate` does."""

from __future__ import annotations

from collections.abc import Callable

from trecexam.extensions.banks.generation.calls import bank_job
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import SpentByGraders
from trecexam.line.bank_writer import WrittenBank
from trecexam.track import TrackFolder


class _Writer:
    def write(
        self,
        folder: TrackFolder,
        progress: Callable[[int, int], None],
        stop: Callable[[], bool] | None,
        spent_by_graders: SpentByGraders,
    ) -> WrittenBank:
        with TrackLock(folder.writing_lock_path, "asking this track's model"):
            job = bank_job(folder, str(folder.write_bank), output=folder.bank_to_write(), whole=True)
            made = job.ask(progress, stop, spent_by_graders)
        failures = tuple(f"query {failure.request}: {failure.reason}" for failure in made.failures)
        return WrittenBank(made.output, made.items, made.queries, failures, made.why)

    def estimate(self, folder: TrackFolder) -> Estimate:
        return bank_job(folder, str(folder.write_bank), output=folder.bank_to_write()).estimate()


#: What `watch` asks for banks.
WRITER = _Writer()
