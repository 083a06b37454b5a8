"""The track's test bank: what to look at again, and what another one changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.track_methods.opened import Opened, names_of

if TYPE_CHECKING:
    from trecexam.bank.checks import Checked
    from trecexam.scores.history.banks import BankDiff
    from trecexam.track_methods.opened import MeasureLike


class Banks(Opened):
    """The track's test bank: what to look at again, and what another one changes."""

    def check_bank(self, *, max_words: int | None = None) -> Checked:
        """Items that are empty, too long, there twice, copies of the query ...; what `bank check` lists.

        Args:
            max_words: of an item; None for 30 of a question and 20 of a nugget.

        Raises:
            TrecexamError, ConversionError: there is no bank, or a file cannot be read at all.
        """
        from trecexam.stages.organizing.bank_check import check_track

        return check_track(self.folder, max_words)

    def bank_diff(
        self, old: Path | str, new: Path | str, measures: Sequence[MeasureLike] | None = None
    ) -> BankDiff:
        """Which items differ between two bank files, and which labels and ranks, by the grades in the store.

        Where one of the two is a bank file of the track, each stands in its place; else for the whole bank.

        Args:
            measures: None for the track's own.

        Raises:
            TrecexamError, ConversionError: a bank cannot be read, or has no item that is asked about.
        """
        from trecexam.stages.organizing.bank_diff import bank_diff

        return bank_diff(self._pipeline, Path(old), Path(new), names_of(measures))
