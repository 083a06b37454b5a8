"""Writes the test banks that `watch` finds missing, as `trecexam bank generate` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from trecexam.extensions.banks.generation.calls import bank_spending, estimate_bank, write_whole_bank
from trecexam.graders.base import NOTHING_SPENT, Estimate, Spent
from trecexam.line.bank_writer import WrittenBank
from trecexam.track import TrackFolder


class _Writer:
    def write(
        self,
        folder: TrackFolder,
        progress: Callable[[int, int], None],
        stop: Callable[[], bool] | None,
        beside: Spent,
    ) -> WrittenBank:
        made = write_whole_bank(
            folder, str(folder.write_bank), folder.bank_to_write(), progress, stop, beside=beside
        )
        failures = tuple(f"query {failure.request}: {failure.reason}" for failure in made.failures)
        return WrittenBank(made.output, made.items, made.queries, failures, made.why)

    def estimate(self, folder: TrackFolder) -> Estimate:
        found = estimate_bank(folder, str(folder.write_bank), output=folder.bank_to_write())
        if found.tokens_in is None or found.calls is not None:
            return found
        # Beside others each prompt is said to be a request.
        return found._replace(calls=found.cells, calls_at_most=found.cells)

    def spent(self, folders: Iterable[TrackFolder]) -> Spent:
        # Two graders may have the same writers: what these took counts once.
        found = {
            digest: spent
            for folder in folders
            for digest, spent in bank_spending(folder, str(folder.write_bank)).items()
        }
        return reduce(Spent.plus, found.values(), NOTHING_SPENT)


#: What `watch` asks for banks.
WRITER = _Writer()
