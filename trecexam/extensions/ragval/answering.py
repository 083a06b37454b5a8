"""`trecexam ragval answers`: the two bounds, a model's answers without and with the block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.knowledge import TRUTHFULNESS, line_of
from trecexam.extensions.ragval.knowledge.prompts import asking, display_name
from trecexam.files.atomic import replace_together, sha256
from trecexam.files.kept import recall, remember
from trecexam.folder import TrackFolder
from trecexam.graders.replies import read_reply
from trecexam.graders.writing.asking import AskingResult, Job, PromptSet, read_replies
from trecexam.graders.writing.create import keeping_writers
from trecexam.inputs.inputs import whole_bank

#: Bounds and names of the runs: without the block, and with the block.
Bound = Literal["closed-book", "oracle"]
BOUNDS: tuple[Bound, ...] = ("closed-book", "oracle")


@dataclass(frozen=True, kw_only=True)
class Answers(AskingResult[tuple[Bound, str]]):
    """Result of answering; keys are (bound, question_id).

    Attributes:
        files: path -> number of answers.
        cut: number of truncated blocks.
    """

    files: Mapping[Path, int]
    cut: int


def answers_job(folder: TrackFolder) -> Job[Answers]:
    """Answer the bank's questions with a language model, as bounds, like `ragval answers`.

    Writes runs/closed-book.jsonl and runs/oracle.jsonl: all questions of the bank except retired ones.
    """
    bank = whole_bank(folder, folder.bank())
    items = [item for items in bank.items.values() for item in items if item.kind == TRUTHFULNESS]
    if not items:
        raise TrecexamError(
            "the bank has no questions with knowledge blocks: write them with `trecexam ragval questions`",
            path=folder.root,
        )
    paths = {bound: folder.runs / f"{bound}.jsonl" for bound in BOUNDS}
    memory = folder.state / "ragval-answers.json"
    digests = recall(memory)
    for bound, path in paths.items():
        if path.exists() and digests.get(bound) != sha256(path.read_bytes()):
            raise TrecexamError(
                "was edited, or not written by `ragval answers`, and was not changed: move it away",
                path=path,
            )
    (source,) = keeping_writers(folder)
    writer = source.writer
    # A server's limit is unknown; cut at the judge's limit.
    most = folder.config.grader.max_characters if writer.meter is not None else None
    texts = {item.query_id: item.text for item in items}
    prompts = PromptSet.of_fitted(
        source,
        {
            (bound, item.query_id): asking(bound, item.text, item.gold_answers[0], writer, most)
            for bound in BOUNDS
            for item in items
        },
    )

    def write(result: AskingResult[tuple[Bound, str]]) -> Answers:
        """Write all files; unfinished thoughts are no answer."""
        lines: dict[Bound, list[bytes]] = {bound: [] for bound in BOUNDS}
        for reply in read_replies([prompts], lambda _, stored: read_reply(stored.text).text):
            bound, question_id = reply.key
            row = {
                "question_id": question_id,
                "run_id": bound,
                "question": texts[question_id],
                "answer": reply.record,
                "n_input_tokens": reply.kept.tokens_in,
                "n_output_tokens": reply.kept.tokens_out,
                "origin": reply.origin(display_name(bound), cut=reply.kept.cut),
            }
            lines[bound].append(line_of(row))
        contents = {bound: b"".join(of_bound) for bound, of_bound in lines.items() if of_bound}
        for bound, content in contents.items():
            replace_together({paths[bound]: content})
            remember(memory, {**recall(memory), bound: sha256(content)})
        files = {path: len(lines[bound]) for bound, path in paths.items()}
        return result.made(Answers, files=files, cut=len(prompts.cut))

    return Job([prompts], write)
