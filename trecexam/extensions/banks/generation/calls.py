"""The requests and the model of `bank.generate`, of `bank.estimate`, and of `watch` for missing banks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from trecexam.errors import GraderError, TrecexamError
from trecexam.extensions.banks.generation.generate import Generated, generate
from trecexam.extensions.banks.generation.iterating import Writers, generate_nuggets, nugget_prompts
from trecexam.extensions.banks.generation.nuggetizing import STAGES, system_of
from trecexam.extensions.banks.generation.passages import PASSAGES, nugget_passages
from trecexam.extensions.banks.generation.plan import plan_bank
from trecexam.extensions.banks.generation.prompts import NUGGETIZER, named
from trecexam.extensions.banks.generation.reading import missing_for_reading
from trecexam.files.track_lock import TrackLock
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import Job, SpentByGraders
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import Instruction, create_writer, keeping_writers
from trecexam.line.bank_writer import WrittenBank


def bank_job(
    folder: TrackFolder,
    prompt: str = "questions",
    *,
    query_ids: Sequence[str] = (),
    passages: int | None = None,
    again: bool = False,
    whole: bool = False,
    output: Path | str | None = None,
    writer: Writer | None = None,
) -> Job[Generated]:
    """Writes items for each query without items with a language model, like `bank generate`."""
    missing = missing_for_reading()
    if missing:
        raise GraderError(f"answers cannot be read: {missing}")
    if passages is not None and prompt != NUGGETIZER:
        raise TrecexamError(
            f"prompt {prompt} does not read passages: leave out `passages`, which is for {NUGGETIZER}"
        )
    if passages is not None and passages < 1:
        raise TrecexamError(f"{NUGGETIZER} needs passages: give 1 or more, not {passages}")
    item_prompt = named(prompt, folder.root)
    plan = plan_bank(
        folder,
        item_prompt,
        query_ids=query_ids,
        output=None if output is None else Path(output),
        again=again,
    )
    plan = replace(plan, whole=whole)
    if prompt != NUGGETIZER:
        (source,) = keeping_writers(folder, *([] if writer is None else [writer]))
        return Job(generate(plan, item_prompt, source))
    # A given writer cannot receive the stages' system messages.
    writers = [writer] if writer is not None else [
        create_writer(folder.config, folder.root, Instruction(system_of(stage))) for stage in STAGES
    ]  # fmt: skip
    sources = keeping_writers(folder, *writers)
    of_stages: Writers = {"creator": sources[0], "scorer": sources[-1]}
    query_ids = [request.query_id for request in plan.requests]
    texts = nugget_passages(folder, query_ids, passages or PASSAGES)
    return Job(
        generate_nuggets(plan, item_prompt, texts, of_stages),
        lambda: nugget_prompts(plan, texts, of_stages),
        tries=2,
    )


class _Writer:
    def write(
        self,
        folder: TrackFolder,
        progress: Callable[[int, int], None],
        stop: Callable[[], bool] | None,
        spent_by_graders: SpentByGraders,
    ) -> WrittenBank:
        with TrackLock(folder.writing_lock_path, "calling this track's model"):
            job = bank_job(folder, str(folder.write_bank), output=folder.bank_to_write(), whole=True)
            made = job.ask(progress, stop, spent_by_graders)
        failures = tuple(f"query {failure.request}: {failure.reason}" for failure in made.failures)
        return WrittenBank(made.output, made.items, made.queries, failures, made.why)

    def estimate(self, folder: TrackFolder) -> Estimate:
        return bank_job(folder, str(folder.write_bank), output=folder.bank_to_write()).estimate()


#: The writer of missing banks for `watch`.
WRITER = _Writer()
