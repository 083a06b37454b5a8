"""`track.bank`: generates, edits, checks and compares the test bank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trecexam.extensions.banks.checks import Checked, check_track
from trecexam.extensions.banks.diff import BankDiff, bank_diff
from trecexam.extensions.banks.editing import BankEditing
from trecexam.extensions.banks.generation.calls import bank_job
from trecexam.extensions.banks.generation.generate import Generated
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import ShowProgress, Stop
from trecexam.graders.writing.base import Writer
from trecexam.inputs.track_graders import Measures, usable_folders


class BankAccessor(BankEditing):
    """The track's test bank."""

    def generate(
        self,
        prompt: str | None = None,
        *,
        query_ids: Sequence[str] = (),
        passages: int | None = None,
        again: bool = False,
        output: Path | str | None = None,
        writer: Writer | None = None,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
    ) -> Generated:
        """Write items for each query without items with a language model, like `bank generate`.

        An estimate for "nuggetizer" is an upper bound: lists are supposed to be as long as they may be.

        Args:
            prompt: "questions", "nuggets", "subtopics", "subtopic-nuggets", "nuggetizer", or a file of your
                own. None: `write_bank` of the selected grader, else "questions".
            query_ids: of these queries alone.
            passages: for "nuggetizer", how many of a query's passages it reads, the relevant or else the
                top-ranked ones; None for 50.
            again: also where there are items; those that a model wrote, and nobody touched, give way. Prompts
                whose stored answers cannot be read are sent again.
            output: a file of the track's bank; None for bank.questions.jsonl or bank.nuggets.jsonl.
            writer: in place of the one that trecexam.toml names.
            progress: called with how many of how many prompts are answered.
            stop: called again and again; True ends asking early, with what there is.
        """
        with self._track.model_lock():
            return bank_job(
                self._folders(),
                prompt,
                query_ids=query_ids,
                passages=passages,
                again=again,
                output=output,
                writer=writer,
            ).ask(progress, stop, self._track.loaders.spent_by_graders)

    def estimate(
        self,
        prompt: str | None = None,
        *,
        query_ids: Sequence[str] = (),
        passages: int | None = None,
        again: bool = False,
        output: Path | str | None = None,
        writer: Writer | None = None,
    ) -> Estimate:
        """Estimate prompts ("cells"), tokens and cost of `generate`."""
        return bank_job(
            self._folders(),
            prompt,
            query_ids=query_ids,
            passages=passages,
            again=again,
            output=output,
            writer=writer,
        ).estimate()

    def _folders(self) -> list[TrackFolder]:
        """Return the folder as the selected grader sees it; where none is selected, as each one does."""
        folder = self._track.folder
        return [*usable_folders(folder).values()] or [folder] if self._track.is_joint else [folder]

    def check(self) -> Checked:
        """Check a track's bank for empty, long or duplicate items, copies of the query and more (`bank
        check`).

        Also queries without items, and items of queries without a text. Queries that lack items are named
        where the track has a file of queries: a dataset has more than it asks.

        Raises:
            TrecexamError, ConversionError: there is no bank, or a file cannot be read at all.
        """
        folder = self._track.folder
        if self._track.is_joint:
            folder = next((each for each in self._folders() if each.bank(optional=True)), folder)
        return self._track.with_grader_note(check_track(folder), str(folder.grader))

    def diff(self, old: Path | str, new: Path | str, measures: Measures | None = None) -> BankDiff:
        """Items, labels and ranks that differ between two bank files, with stored grades.

        Where one of the two is a bank file of the track, each is in its place, beside the track's others;
        else each is the whole bank.

        Args:
            measures: None for the track's own.

        Raises:
            TrecexamError, ConversionError: a bank cannot be read, or has no item to ask about; what is in the
                way of a leaderboard.
        """
        track = self._track.of_measures(measures)
        loader = track.loader()
        return track.with_grader_note(bank_diff(loader, old, new, measures), loader.name)
