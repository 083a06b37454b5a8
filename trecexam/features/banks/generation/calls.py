"""What a track's `generate_bank` and `estimate_bank` do: gather what is to be asked, and who, and ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trecexam.errors import GraderError
from trecexam.features.banks.generation.generate import Generated, generate, item_prompts
from trecexam.features.banks.generation.plan import BankPlan, plan_bank
from trecexam.features.banks.generation.prompts import ItemPrompt, named
from trecexam.features.banks.generation.reading import missing_for_reading
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.graders.writing import Writer, create_writer
from trecexam.graders.writing.asking import estimate
from trecexam.graders.writing.kept_answers import KeptAnswers
from trecexam.track import TrackFolder


def generate_bank(
    folder: TrackFolder,
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
    with TrackLock(folder.state / "generate.lock", "writing this track's bank"):
        making = _making(folder, prompt, query_ids, subtopics, output, writer, again=again)
        return generate(*making, progress, stop)


def estimate_bank(
    folder: TrackFolder,
    prompt: str = "questions",
    *,
    query_ids: Sequence[str] = (),
    subtopics: Path | str | None = None,
    again: bool = False,
    output: Path | str | None = None,
    writer: Writer | None = None,
    timed: bool = False,
) -> Estimate:
    """What `generate_bank` would take, in prompts ("cells"), tokens and money; asks nobody.

    Args:
        timed: also how long, where a model in this process writes: a few prompts are tried, and not kept.
    """
    making = _making(folder, prompt, query_ids, subtopics, output, writer, again=again)
    return estimate([item_prompts(*making)], timed=timed)


def _making(
    folder: TrackFolder,
    prompt: str,
    query_ids: Sequence[str],
    subtopics: Path | str | None,
    output: Path | str | None,
    writer: Writer | None,
    *,
    again: bool,
) -> tuple[BankPlan, ItemPrompt, Writer, KeptAnswers]:
    missing = missing_for_reading()
    if missing:
        raise GraderError(f"answers cannot be read: {missing}")
    item_prompt = named(prompt, folder.root)
    writer = writer or create_writer(folder.config, folder.root)
    todo = plan_bank(
        folder,
        item_prompt,
        query_ids=query_ids,
        output=None if output is None else Path(output),
        subtopics=None if subtopics is None else Path(subtopics),
        again=again,
    )
    return todo, item_prompt, writer, KeptAnswers(folder.state / "generated.jsonl", writer.identity)
