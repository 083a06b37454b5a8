"""The track's test bank: making and editing it, what to look at again, and what another one changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.errors import GraderError
from trecexam.files.track_lock import TrackLock
from trecexam.track_methods.opened import Opened, names_of

if TYPE_CHECKING:
    from trecexam.features.banks.checks import Checked
    from trecexam.features.banks.editing import Edited
    from trecexam.features.banks.generation.generate import Generated
    from trecexam.features.banks.generation.plan import BankPlan
    from trecexam.features.banks.generation.prompts import ItemPrompt
    from trecexam.features.history.arithmetic.banks import BankDiff
    from trecexam.graders.base import Estimate
    from trecexam.graders.writing import Writer
    from trecexam.graders.writing.kept_answers import KeptAnswers
    from trecexam.track_methods.opened import MeasureLike


class Banks(Opened):
    """The track's test bank: making and editing it, what to look at again, what another one changes."""

    def generate_bank(
        self,
        prompt: str = "questions",
        *,
        query_ids: Sequence[str] = (),
        subtopics: Path | str | None = None,
        again: bool = False,
        output: Path | str | None = None,
        progress: Callable[[int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
        writer: Writer | None = None,
    ) -> Generated:
        """Has a language model write items for every query that has none: what `bank generate` does.

        Args:
            prompt: "questions", "nuggets", "subtopics", "subtopic-nuggets", or a file of your own.
            query_ids: of these queries alone.
            subtopics: a file, for prompts that ask about sub-topics; None for subtopics.tsv of the track.
            again: also where there are items; those that a model wrote, and nobody touched, give way.
            output: a file of the track's bank; None for bank.questions.jsonl or bank.nuggets.jsonl.
            progress: is told how many of how many prompts are answered.
            stop: asked again and again; True ends it early, with what there is.
            writer: in place of the one that trecexam.toml names.

        Raises:
            LockedError: another process is writing the track's bank.
            TrecexamError, ConversionError: what stands in the way.
        """
        from trecexam.features.banks.generation.generate import generate

        with TrackLock(self.folder.root / ".trecexam" / "generate.lock", "writing this track's bank"):
            making = self._making(prompt, query_ids, subtopics, again, output, writer)
            return generate(*making, progress, stop)

    def estimate_bank(
        self,
        prompt: str = "questions",
        *,
        query_ids: Sequence[str] = (),
        subtopics: Path | str | None = None,
        again: bool = False,
        output: Path | str | None = None,
        writer: Writer | None = None,
    ) -> Estimate:
        """What `generate_bank` would take, in prompts ("cells"), tokens and money; asks nobody."""
        from trecexam.features.banks.generation.generate import item_prompts
        from trecexam.graders.writing.asking import estimate

        return estimate([item_prompts(*self._making(prompt, query_ids, subtopics, again, output, writer))])

    def _making(
        self,
        prompt: str,
        query_ids: Sequence[str],
        subtopics: Path | str | None,
        again: bool,
        output: Path | str | None,
        writer: Writer | None,
    ) -> tuple[BankPlan, ItemPrompt, Writer, KeptAnswers]:
        from trecexam.features.banks.generation.plan import plan_bank
        from trecexam.features.banks.generation.prompts import named
        from trecexam.features.banks.generation.reading import missing_for_reading
        from trecexam.graders.writing import create_writer
        from trecexam.graders.writing.kept_answers import KeptAnswers

        missing = missing_for_reading()
        if missing:
            raise GraderError(f"answers cannot be read: {missing}")
        asked = named(prompt, self.folder.root)
        who = writer or create_writer(self.folder.config, self.folder.root)
        todo = plan_bank(
            self.folder,
            asked,
            query_ids=query_ids,
            output=None if output is None else Path(output),
            subtopics=None if subtopics is None else Path(subtopics),
            again=again,
        )
        return todo, asked, who, KeptAnswers(self.folder.root / ".trecexam" / "generated.jsonl", who.identity)

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
        """Adds an item to a query; `update` grades it, and it alone.

        Args:
            kind: "question" or "nugget".
            importance: "vital", "okay" or "".
            who, why: noted beside the item in the bank's file; a reason is not needed.

        Raises:
            LockedError: a model is writing the track's bank.
            TrecexamError, ConversionError: the text is empty or the query has it already, the query is not
                the track's, or the bank cannot be read or written.
        """
        from trecexam.features.banks.editing import add_item

        with self._editing():
            return add_item(self.folder, query_id, text, who, kind=kind, importance=importance, why=why)

    def edit_item(
        self, item_id: str, text: str, *, who: str, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Gives an item another text; `update` grades it, and it alone. Its id and its answer key stay.

        Args:
            seen: `trecexam.line.overrides.digest_of` the item that the person saw; None to change it
                whatever it is by now.

        Raises:
            ItemConflictError: the item is another one by now, or gone; nothing was written.
            LockedError, TrecexamError, ConversionError: as `add_item`, or there is no such item.
        """
        from trecexam.features.banks.editing import edit_item

        with self._editing():
            return edit_item(self.folder, item_id, text, who, seen=seen, why=why)

    def retire_item(
        self, item_id: str, *, who: str, retired: bool = True, seen: str | None = None, why: str = ""
    ) -> Edited:
        """Takes an item out of what is asked, or (`retired` False) back into it; its grades are kept.

        Args:
            seen: as in `edit_item`.

        Raises:
            ItemConflictError, LockedError, TrecexamError, ConversionError: as `edit_item`.
        """
        from trecexam.features.banks.editing import retire_item

        with self._editing():
            return retire_item(self.folder, item_id, who, retired=retired, seen=seen, why=why)

    def item_edits(self, query_id: str) -> dict[str, list[dict[str, Any]]]:
        """item_id -> who changed a query's items when, and what they were before; the first change first.

        Raises:
            TrecexamError, ConversionError: the bank cannot be read.
        """
        from trecexam.features.banks.editing import edits

        return edits(self.folder, query_id)

    @contextmanager
    def _editing(self) -> Iterator[None]:
        from trecexam.files.exclusive_lock import exclusive_lock

        # Who has a model write a bank holds the second one for as long as that takes.
        with (
            exclusive_lock(self.folder.state / "bank.lock"),
            TrackLock(self.folder.state / "generate.lock", "writing this track's bank"),
        ):
            yield

    def check_bank(self, *, max_words: int | None = None) -> Checked:
        """Items that are empty, too long, there twice, copies of the query ...; what `bank check` lists.

        Args:
            max_words: of an item; None for 30 of a question and 20 of a nugget.

        Raises:
            TrecexamError, ConversionError: there is no bank, or a file cannot be read at all.
        """
        from trecexam.features.banks.check import check_track

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
        from trecexam.features.banks.diff import bank_diff

        return bank_diff(self._loader, Path(old), Path(new), names_of(measures))
