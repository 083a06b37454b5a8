"""What a track's `generate_bank` and `estimate_bank` do: gather what is to be asked, and who, and ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trecexam.errors import GraderError, TrecexamError
from trecexam.extensions.banks.generation.generate import Generated, generate, item_prompts
from trecexam.extensions.banks.generation.iterating import (
    StageWriter,
    Writers,
    generate_nuggets,
    nugget_prompts,
)
from trecexam.extensions.banks.generation.nuggetizing import STAGES, system_of
from trecexam.extensions.banks.generation.passages import PASSAGES, nugget_passages
from trecexam.extensions.banks.generation.plan import BankPlan, plan_bank
from trecexam.extensions.banks.generation.prompts import NUGGETIZER, named
from trecexam.extensions.banks.generation.reading import missing_for_reading
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import NOTHING_SPENT, Estimate, Spent, identity_digest
from trecexam.graders.writing import Instruction, Writer, create_writer
from trecexam.graders.writing.asking import estimate
from trecexam.graders.writing.create import generator_settings
from trecexam.graders.writing.kept_answers import KeptAnswers
from trecexam.track import TrackFolder


def generate_bank(
    folder: TrackFolder,
    prompt: str = "questions",
    *,
    query_ids: Sequence[str] = (),
    subtopics: Path | str | None = None,
    passages: int | None = None,
    again: bool = False,
    output: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    writer: Writer | None = None,
) -> Generated:
    """Has a language model write items for every query that has none: what `bank generate` does.

    Args:
        prompt: "questions", "nuggets", "subtopics", "subtopic-nuggets", "nuggetizer", or a file of your own.
        query_ids: of these queries alone.
        subtopics: a file, for prompts that ask about sub-topics; None for subtopics.tsv of the track.
        passages: for "nuggetizer", how many of a query's passages it reads, the relevant or else the
            top-ranked ones; None for 50.
        again: also where there are items; those that a model wrote, and nobody touched, give way.
        output: a file of the track's bank; None for bank.questions.jsonl or bank.nuggets.jsonl.
        progress: is told how many of how many prompts are answered.
        stop: asked again and again; True ends it early, with what there is.
        writer: in place of the one that trecexam.toml names.

    Raises:
        LockedError: another process is writing the track's bank.
        TrecexamError, ConversionError: what stands in the way.
    """
    with TrackLock(folder.shared_state / "generate.lock", "writing this track's bank"):
        plan = _plan(folder, prompt, query_ids, subtopics, output, passages, again=again)
        if prompt == NUGGETIZER:
            making = _nugget_making(folder, plan, passages, writer)
            return generate_nuggets(plan, named(prompt, folder.root), *making, progress, stop)
        return generate(plan, named(prompt, folder.root), *_asked(folder, writer), progress, stop)


def write_whole_bank(
    folder: TrackFolder,
    prompt: str,
    output: Path | None,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    *,
    beside: Spent = NOTHING_SPENT,
) -> Generated:
    """As `generate_bank`, for all queries; the file is written when the last one is through, and not before.

    Args:
        beside: what others used of the budget of [grader], where its model writes.

    Raises:
        LockedError, TrecexamError, ConversionError: as `generate_bank`.
    """
    with TrackLock(folder.shared_state / "generate.lock", "writing this track's bank"):
        plan = replace(_plan(folder, prompt, (), None, output, None, again=False), whole=True)
        writing = named(prompt, folder.root)
        if prompt == NUGGETIZER:
            making = _nugget_making(folder, plan, None, None, beside)
            return generate_nuggets(plan, writing, *making, progress, stop)
        return generate(plan, writing, *_asked(folder, None, beside=beside), progress, stop)


def bank_spending(folder: TrackFolder, prompt: str) -> dict[str, Spent]:
    """What writing banks in this way took of the budget of [grader], by the writers' digests."""
    if generator_settings(folder.config)[1] != "grader":
        return {}
    spent: dict[str, Spent] = {}
    for system in map(system_of, STAGES) if prompt == NUGGETIZER else ("",):
        writer, answers = _asked(folder, None, system)
        used = answers.used
        tokens = used.tokens_in + used.tokens_out
        spent[identity_digest(writer.identity).hex()] = Spent(tokens, writer.cost(used))
    return spent


def estimate_bank(
    folder: TrackFolder,
    prompt: str = "questions",
    *,
    query_ids: Sequence[str] = (),
    subtopics: Path | str | None = None,
    passages: int | None = None,
    again: bool = False,
    output: Path | str | None = None,
    writer: Writer | None = None,
    timed: bool = False,
) -> Estimate:
    """What `generate_bank` would take, in prompts ("cells"), tokens and money; asks nobody.

    Of "nuggetizer" it is an upper bound, but for what is asked once more: lists are supposed to be as long as
    they may be.

    Args:
        timed: also how long, where a model in this process writes: a few prompts are tried, and not kept.
    """
    plan = _plan(folder, prompt, query_ids, subtopics, output, passages, again=again)
    if prompt == NUGGETIZER:
        return _with_retries(
            estimate(nugget_prompts(plan, *_nugget_making(folder, plan, passages, writer)), timed=timed)
        )
    return estimate([item_prompts(plan, named(prompt, folder.root), *_asked(folder, writer))], timed=timed)


def _with_retries(estimated: Estimate) -> Estimate:
    """The same, where each answer that cannot be read is asked for once more."""
    if estimated.tokens_out_at_most is None:
        return estimated
    cost = estimated.cost_at_most
    return estimated._replace(
        tokens_out_at_most=2 * estimated.tokens_out_at_most,
        cost_at_most=None if cost is None else 2 * cost,
        calls=estimated.cells,
        calls_at_most=2 * estimated.cells,
    )


def _plan(
    folder: TrackFolder,
    prompt: str,
    query_ids: Sequence[str],
    subtopics: Path | str | None,
    output: Path | str | None,
    passages: int | None,
    *,
    again: bool,
) -> BankPlan:
    missing = missing_for_reading()
    if missing:
        raise GraderError(f"answers cannot be read: {missing}")
    if passages is not None and prompt != NUGGETIZER:
        raise TrecexamError(f"prompt {prompt} reads no passages: `passages` is for {NUGGETIZER}")
    if passages is not None and passages < 1:
        raise TrecexamError(f"{NUGGETIZER} needs passages: give 1 or more, not {passages}")
    return plan_bank(
        folder,
        named(prompt, folder.root),
        query_ids=query_ids,
        output=None if output is None else Path(output),
        subtopics=None if subtopics is None else Path(subtopics),
        again=again,
    )


def _asked(
    folder: TrackFolder, writer: Writer | None, system: str = "", beside: Spent = NOTHING_SPENT
) -> tuple[Writer, KeptAnswers]:
    """Who is asked, by default the model that trecexam.toml names, and what it answered before."""
    if writer is None:
        writer = create_writer(folder.config, folder.root, Instruction(system))
        # What [generator] names has a budget of its own.
        if writer.meter is not None and generator_settings(folder.config)[1] == "grader":
            writer.meter.beside = beside
    return writer, KeptAnswers(folder.shared_state / "generated.jsonl", writer.identity)


def _nugget_making(
    folder: TrackFolder,
    plan: BankPlan,
    passages: int | None,
    writer: Writer | None,
    beside: Spent = NOTHING_SPENT,
) -> tuple[Mapping[str, Sequence[str]], Writers]:
    if writer is not None:
        both = StageWriter(*_asked(folder, writer))
        writers: Writers = dict.fromkeys(STAGES, both)
    else:
        writers = {stage: StageWriter(*_asked(folder, None, system_of(stage), beside)) for stage in STAGES}
    query_ids = [request.query_id for request in plan.requests]
    return nugget_passages(folder, query_ids, passages or PASSAGES), writers
