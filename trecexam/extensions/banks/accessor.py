"""`track.bank`: generates, edits, checks and compares the test bank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.extensions.banks import editing
from trecexam.extensions.banks.check import asks_a_bank, check_track
from trecexam.extensions.banks.diff import bank_diff
from trecexam.extensions.banks.generation.calls import bank_job
from trecexam.line.track_graders import usable_folders
from trecexam.track_groups import Group

if TYPE_CHECKING:
    from trecexam.extensions.banks.bank_difference import BankDiff
    from trecexam.extensions.banks.checks import Checked
    from trecexam.extensions.banks.editing import Edited
    from trecexam.extensions.banks.generation.generate import Generated
    from trecexam.graders.base import Estimate
    from trecexam.graders.writing.asking import ShowProgress, Stop
    from trecexam.graders.writing.base import Writer
    from trecexam.line.measure_names import Measures


class BankAccessor(Group):
    """The track's test bank."""

    def generate(
        self,
        prompt: str = "questions",
        *,
        query_ids: Sequence[str] = (),
        passages: int | None = None,
        again: bool = False,
        whole: bool = False,
        output: Path | str | None = None,
        writer: Writer | None = None,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
    ) -> Generated:
        """Writes items for each query without items with a language model, like `bank generate`.

        An estimate for "nuggetizer" is an upper bound: lists are supposed to be as long as they may be.

        Args:
            prompt: "questions", "nuggets", "subtopics", "subtopic-nuggets", "nuggetizer", or a file of your
                own.
            query_ids: of these queries alone.
            passages: for "nuggetizer", how many of a query's passages it reads, the relevant or else the
                top-ranked ones; None for 50.
            again: also where there are items; those that a model wrote, and nobody touched, give way.
            whole: write the file when the last query is through, and not before.
            output: a file of the track's bank; None for bank.questions.jsonl or bank.nuggets.jsonl.
            writer: in place of the one that trecexam.toml names.
            progress: called with how many of how many prompts are answered.
            stop: called again and again; True ends asking early, with what there is.

        Raises:
            TrecexamError, ConversionError: with the reason.
        """
        with self.track.model_lock():
            return bank_job(
                self.track.folder,
                prompt,
                query_ids=query_ids,
                passages=passages,
                again=again,
                whole=whole,
                output=output,
                writer=writer,
            ).ask(progress, stop, self.track.loaders.spent_by_graders)

    def estimate(
        self,
        prompt: str = "questions",
        *,
        query_ids: Sequence[str] = (),
        passages: int | None = None,
        again: bool = False,
        whole: bool = False,
        output: Path | str | None = None,
        writer: Writer | None = None,
        timed: bool = False,
    ) -> Estimate:
        """Estimates the prompts ("cells"), tokens and cost of `generate`, by its arguments; calls no model.

        Args:
            timed: also how long, where a model in this process writes: a few prompts are tried, and not kept.
        """
        return bank_job(
            self.track.folder,
            prompt,
            query_ids=query_ids,
            passages=passages,
            again=again,
            whole=whole,
            output=output,
            writer=writer,
        ).estimate(timed=timed)

    def add_item(
        self,
        query_id: str,
        text: str,
        *,
        who: str,
        kind: str = "question",
        importance: str = "",
        why: str = "",
    ) -> Edited:
        """Adds an item to the end of a query's items; `update` then grades only this item.

        Args:
            kind: "question" or "nugget".
            importance: "vital", "okay" or "".
            who, why: noted beside the item in the bank's file; a reason is not needed.

        Raises:
            LockedError: a model is writing the track's bank.
            TrecexamError, ConversionError: the text is empty or the query has it already, the query is not
                the track's, or the bank cannot be read or written.
        """
        return editing.add_item(
            self.track.folder, query_id, text, who=who, kind=kind, importance=importance, why=why
        )

    def edit_item(
        self, item_id: str, text: str, *, who: str, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Changes an item's text and keeps its id and answer key; `update` then grades only this item.

        Args:
            seen: `trecexam.line.overrides.digest_of` the item that the person saw; None to change it
                whatever it is by now.

        Raises:
            ItemConflictError: the item is another one by now, or gone; nothing was written.
            LockedError, TrecexamError, ConversionError: as `add_item`, or there is no such item.
        """
        return editing.edit_item(self.track.folder, item_id, text, who=who, seen=seen, why=why)

    def retire_item(
        self, item_id: str, *, who: str, retired: bool = True, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Retires an item, or (`retired` False) back into it; its grades are kept.

        Args:
            seen: as in `edit_item`.

        Raises:
            ItemConflictError, LockedError, TrecexamError, ConversionError: as `edit_item`.
        """
        return editing.retire_item(self.track.folder, item_id, who=who, retired=retired, seen=seen, why=why)

    def edits(self, query_id: str) -> dict[str, list[dict[str, Any]]]:
        """item_id -> the changes of a query's items, oldest first: who, when, and the text before.

        Raises:
            TrecexamError, ConversionError: the bank cannot be read.
        """
        return editing.edits(self.track.folder, query_id)

    def check(self) -> Checked:
        """Checks a track's bank for empty, long or duplicate items, copies of the query and more (`bank
        check`).

        Also queries without items, and items of queries without a text. Queries that lack items are named
        where the track has a file of queries: a dataset has more than it asks.

        Raises:
            TrecexamError, ConversionError: there is no bank, or a file cannot be read at all.
        """
        folder = self.track.folder
        if self.track.is_joint:
            # A grader's files may be there that cannot grade.
            folder = next(filter(asks_a_bank, usable_folders(folder).values()), folder)
        return self.track.noted(check_track(folder), str(folder.grader))

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
        track = self.track.of_measures(measures)
        loader = track.loader()
        return track.noted(bank_diff(loader, old, new, measures), loader.name)
