"""`track.bank`: generates, edits, checks and compares the test bank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trecexam.extensions.banks.checks import Checked, check_track
from trecexam.extensions.banks.diff import BankDiff, bank_diff
from trecexam.extensions.banks.editing import BankEditing
from trecexam.extensions.banks.generation.generate import Generated, bank_job
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

        An estimate for "nuggetizer" is an upper bound: it assumes lists of maximum length.

        Args:
            prompt: "questions", "nuggets", "subtopics", "subtopic-nuggets", "nuggetizer", or your own file.
                None: `write_bank` of the selected grader, else "questions".
            query_ids: only these queries.
            passages: for "nuggetizer", number of passages to read per query, relevant or else top-ranked;
                None for 50.
            again: include queries with items; new items replace unedited items of a model. Prompts with
                unreadable stored answers are sent again.
            output: file of the track's bank; None for bank.questions.jsonl or bank.nuggets.jsonl.
            writer: replaces the writer in trecexam.toml.
            progress: called with (prompts answered, prompts in all).
            stop: called repeatedly; True ends the requests early and keeps the answers so far.
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
        """Return the folder for the selected grader; without a selection, for each grader."""
        folder = self._track.folder
        return [*usable_folders(folder).values()] or [folder] if self._track.is_joint else [folder]

    def check(self) -> Checked:
        """Check a track's bank for empty, long or duplicate items, copies of the query and more (`bank
        check`).

        Finds queries without items, too, if the track has a file of queries (a dataset has more queries than
        a bank needs), and items of queries without a text.

        Raises:
            TrecexamError, ConversionError: no bank, or an unreadable file.
        """
        folder = self._track.folder
        if self._track.is_joint:
            folder = next((each for each in self._folders() if each.bank(optional=True)), folder)
        return self._track.with_grader_note(check_track(folder), str(folder.grader))

    def diff(self, old: Path | str, new: Path | str, measures: Measures | None = None) -> BankDiff:
        """Compare two bank files by items, and by labels and ranks on stored grades.

        If one of the two is a bank file of the track, each is combined with the track's other bank files;
        else each is the whole bank.

        Args:
            measures: None for the track's own.

        Raises:
            TrecexamError, ConversionError: a bank is unreadable or without items, or there is no leaderboard.
        """
        track = self._track.of_measures(measures)
        loader = track.loader()
        return track.with_grader_note(bank_diff(loader, old, new, measures), loader.name)
