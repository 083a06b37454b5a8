"""The requests and the model of `bank.generate`, of `bank.estimate`, and of `watch` for missing banks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from trecexam.errors import GraderError, TrecexamError
from trecexam.extensions.banks.generation.generate import Generated, Steps, items_job, single_step
from trecexam.extensions.banks.generation.nuggetizing import STAGES, nuggetize, system_of
from trecexam.extensions.banks.generation.passages import PASSAGES, nugget_passages
from trecexam.extensions.banks.generation.plan import plan_bank
from trecexam.extensions.banks.generation.prompts import NUGGETIZER, ItemRequest, named
from trecexam.extensions.banks.generation.reading import missing_for_reading
from trecexam.folder import TrackFolder
from trecexam.graders.writing.asking import Job
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import create_writer, keeping_writers


def bank_job(
    folders: Sequence[TrackFolder],
    prompt: str | None = None,
    *,
    query_ids: Sequence[str] = (),
    passages: int | None = None,
    again: bool = False,
    forget_in_file: bool = False,
    whole: bool = False,
    output: Path | str | None = None,
    writer: Writer | None = None,
) -> Job[Generated]:
    """Return the job of writing items for each query without items, like `bank generate`.

    Args:
        folders: folders of graders; the first with this prompt as `write_bank` is used, else the first.
        forget_in_file: with `again`, drop unreadable answers in the file, too, for other processes.
        whole: write nothing before every query is finished.
    """
    if prompt is None:
        prompt = (folders[0].write_bank if len(folders) == 1 else None) or "questions"
    missing = missing_for_reading()
    if missing:
        raise GraderError(f"answers cannot be read: {missing}")
    if passages is not None and prompt != NUGGETIZER:
        raise TrecexamError(
            f"prompt {prompt} does not read passages: leave out `passages`, which is for {NUGGETIZER}"
        )
    if passages is not None and passages < 1:
        raise TrecexamError(f"{NUGGETIZER} needs passages: give 1 or more, not {passages}")
    item_prompt = named(prompt, folders[0].root)
    folder = next((folder for folder in folders if folder.write_bank == prompt), folders[0])
    target = folder.root / f"bank.{item_prompt.kind}s.jsonl" if output is None else Path(output)
    if output is None and folder.write_bank == prompt:
        target = folder.bank_to_write() or target
    plan = plan_bank(folder, item_prompt, query_ids=query_ids, target=target, again=again)
    asks_again = _asks_again(folder, prompt)
    # A given writer cannot receive the stages' system messages.
    systems = [system_of(stage) for stage in STAGES] if prompt == NUGGETIZER else [""]
    writers = [writer] if writer else [create_writer(folder.config, folder.root, each) for each in systems]
    sources = keeping_writers(folder, *writers)
    texts: Mapping[str, Sequence[str]] = {}
    if prompt == NUGGETIZER:
        texts = nugget_passages(folder, [each.query_id for each in plan.requests], passages or PASSAGES)

    def steps(request: ItemRequest) -> Steps:
        if prompt == NUGGETIZER:
            return nuggetize(request, texts[request.query_id], sources, asks_again)
        return single_step(request, item_prompt, sources[0], asks_again)

    return items_job(plan, item_prompt, sources, steps, again=again, in_file=forget_in_file, whole=whole)


def _asks_again(folder: TrackFolder, prompt: str) -> str:
    """Say how to send prompts again whose answers cannot be read."""
    words = ["trecexam", "bank", "generate", str(folder.root)]
    words += ["--grader", str(folder.grader)] if folder.is_one_of_several else []
    words += [] if prompt == (folder.write_bank or "questions") else ["--prompt", prompt]
    return f"`{shlex.join([*words, '--again'])}` asks again"
