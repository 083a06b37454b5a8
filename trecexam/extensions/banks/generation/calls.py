"""The requests and the model of `bank.generate`, of `bank.estimate`, and of `watch` for missing banks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trecexam.errors import GraderError, TrecexamError
from trecexam.extensions.banks.generation.generate import Generated, items_job
from trecexam.extensions.banks.generation.nuggetizing import STAGES, Writers, nuggets_job, system_of
from trecexam.extensions.banks.generation.passages import PASSAGES, nugget_passages
from trecexam.extensions.banks.generation.plan import plan_bank
from trecexam.extensions.banks.generation.prompts import NUGGETIZER, named
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
    """Writes items for each query without items with a language model, like `bank generate`.

    Args:
        folders: of the graders one of which needs the bank; the first where none fits.
        forget_in_file: with `again`, other processes forget unread answers, too.
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
    plan = replace(plan, whole=whole, asks_again=_asks_again(folder, prompt))
    if prompt != NUGGETIZER:
        (source,) = keeping_writers(folder, *([] if writer is None else [writer]))
        return items_job(plan, item_prompt, source, again=again, in_file=forget_in_file)
    # A given writer cannot receive the stages' system messages.
    writers = [writer] if writer is not None else [
        create_writer(folder.config, folder.root, system_of(stage)) for stage in STAGES
    ]  # fmt: skip
    sources = keeping_writers(folder, *writers)
    of_stages: Writers = {"creator": sources[0], "scorer": sources[-1]}
    query_ids = [request.query_id for request in plan.requests]
    texts = nugget_passages(folder, query_ids, passages or PASSAGES)
    return nuggets_job(plan, item_prompt, texts, of_stages, again=again, in_file=forget_in_file)


def _asks_again(folder: TrackFolder, prompt: str) -> str:
    """Say how to send prompts again whose answers cannot be read."""
    words = ["trecexam", "bank", "generate", str(folder.root)]
    words += ["--grader", str(folder.grader)] if folder.is_one_of_several else []
    words += [] if prompt == (folder.write_bank or "questions") else ["--prompt", prompt]
    return f"`{shlex.join([*words, '--again'])}` asks again"
