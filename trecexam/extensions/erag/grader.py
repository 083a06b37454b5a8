"""The `erag` grader: compares a RAG system's answer from one document with the gold outputs.

Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from converters.gold import KIND
from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.erag.metrics import Metric, metric_of, scored
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders.base import Cell, Factory
from trecexam.graders.replies import read_reply
from trecexam.graders.writing.base import Fitted, Writer, WritingGrader, missing_for_writing, refuse
from trecexam.graders.writing.create import grading_writer
from trecexam.templates import OwnPrompt, TemplateFile, filled, read_own_prompt

SLOTS = ("query", "document")
_TEXT = (
    "Answer the query with what the document says, in as few words as possible, and with nothing else.\n\n"
    "Document: {document}\n\nQuery: {query}\n\nAnswer:"
)


class _PromptFile(TemplateFile):
    version: int | str = Field("1", description="Change it when the same text is to be asked again.")


BUILT_IN = OwnPrompt(_PromptFile(template=_TEXT, version="1"), "trecexam-erag", "", _TEXT, jinja=False)


def erag_prompt(path: Path) -> OwnPrompt[_PromptFile]:
    """Read the prompt in a .toml or .jinja file."""
    if path.suffix.lower() not in PROMPT_SUFFIXES:
        raise GraderError(
            "the prompt of `erag` is a .toml or .jinja file with {query} and {document}", path=path
        )
    return read_own_prompt(path, _PromptFile, SLOTS, {slot: (slot,) for slot in SLOTS})


class EragGrader(WritingGrader):
    """Grader of documents by a downstream model; the rating is 5 x label, halves rounded up.

    The model sees the query and the document, never a gold output. Its output is stored, and the metric is
    computed from it, so that another metric or new gold outputs need no model.
    """

    name = "erag"
    item_kinds = frozenset({KIND})
    needs_query_text = True

    def __init__(self, writer: Writer, metric: Metric, prompt: OwnPrompt[_PromptFile]) -> None:
        super().__init__(writer)
        self.metric = metric
        self._prompt = prompt

    def prompt(self, cell: Cell) -> Fitted:
        erag_prompt, query = self._prompt, self.writer.plain(cell.query_text)

        def render(document: str) -> str:
            slots = {"query": query, "document": document}
            return filled(erag_prompt.template, slots, jinja=erag_prompt.jinja, name=erag_prompt.name)

        return self.writer.fitted(render, cell.text)

    def read(self, item: Item, text: str, cut: bool = False) -> int | None:
        return _read(self.metric, item, text, cut)

    def asked(self) -> Mapping[str, Any]:
        text, version = self._prompt, str(self._prompt.file.version)
        return {"prompts": [{"name": text.name, "version": version, "template": text.template, "asks": KIND}]}


def _read(metric: Metric, item: Item, text: str, cut: bool = False) -> int | None:
    # A truncated output cannot be scored.
    output, ends_early = read_reply(text, cut=cut)
    label = None if ends_early else scored(metric, output, item.gold_answers)
    return five(label) if isinstance(label, float) else None


def five(label: float) -> int:
    """Return a label 0..1 on the scale 0..5: 5 x label, halves rounded up."""
    # Labels such as 0.7 = 3.5 / 5 are not exact.
    return math.floor(round(5 * label, 9) + 0.5)


def _create(settings: GraderSection, root: Path) -> EragGrader:
    refuse(settings, ("decode", "compat", "passage_first", "structured"), "reads free text by a metric")
    prompt = BUILT_IN if settings.prompt is None else erag_prompt(root / settings.prompt)
    return EragGrader(grading_writer(settings, root), metric_of(settings.metric, root), prompt)


FACTORY = Factory(
    summary="eRAG: a model answers from each document alone, and a metric compares with the gold outputs",
    missing=missing_for_writing,
    create=_create,
    reads=("base_url", "metric", "prompt"),
    check_prompt=erag_prompt,
    reading=lambda settings, root: {"read": partial(_read, metric_of(settings.metric, root))},
)
