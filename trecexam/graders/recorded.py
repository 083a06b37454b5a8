"""The `recorded` grader: grades that exist already, of a Rubric pool, a grades export, or nuggetizer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.lines import open_input
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Factory, Grader

BATCH = 5000


class _Recording(NamedTuple):
    """Answers by (document, item) and by (text's digest, item), and the (model, prompt) they are of."""

    by_doc: dict[tuple[str, str], Answer]
    by_text: dict[tuple[bytes, str], Answer]
    source: tuple[str, str]


class RecordedGrader:
    """Looks cells up in a recording: by (document, item), else by (equal passage text, item)."""

    def __init__(self, path: Path, model: str | None = None, prompt: str | None = None) -> None:
        self.path = path
        self.model = model
        self.prompt = prompt

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        try:
            with open_input(self.path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise GraderError(f"cannot be read: {error.strerror}", path=self.path) from None
        return {"grader": "recorded", "sha256": digest, "model": self.model, "prompt": self.prompt}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        by_doc, by_text, _ = self._recording
        remaining = iter(cells)
        while chunk := list(islice(remaining, BATCH)):
            batch = []
            for cell in chunk:
                answer = by_doc.get((cell.doc_id, cell.item.item_id))
                if answer is None and by_text:
                    answer = by_text.get((_digest(cell.text), cell.item.item_id))
                if answer is not None:
                    batch.append((cell, answer))
            if batch:
                yield batch

    @property
    def model_and_prompt(self) -> tuple[str, str]:
        """The model and the prompt that the recording names."""
        return self._recording.source

    @cached_property
    def _recording(self) -> _Recording:
        by_doc: dict[tuple[str, str], Answer] = {}
        by_text: dict[tuple[bytes, str], Answer] = {}
        sources: set[tuple[str, str]] = set()
        digests: dict[str, bytes] = {}
        if converters.sniff(self.path) not in {"rubric", "grades"}:
            raise GraderError(
                "not a recording: give a Rubric graded pool, a `trecexam export grades` file, or "
                "nuggetizer's assignments",
                path=self.path,
            )
        for grade in converters.read(self.path):
            if (self.model is not None and grade.model != self.model) or (
                self.prompt is not None and grade.prompt != self.prompt
            ):
                continue
            sources.add((grade.model, grade.prompt))
            if len(sources) > 1:
                several = " and ".join(
                    f"model '{model}' with prompt '{prompt}'" for model, prompt in sorted(sources)
                )
                raise GraderError(
                    f"holds grades of {several}, perhaps more; "
                    "name one with `model` and `prompt` in [grader] of trecexam.toml",
                    path=self.path,
                )
            answer = Answer(grade.rating, "unparsed" if grade.rating is None else "ok", grade.answer)
            # The first of duplicated grades counts, as it does in the workbench.
            by_doc.setdefault((grade.doc_id, grade.item_id), answer)
            if grade.text:
                if grade.doc_id not in digests:
                    digests[grade.doc_id] = _digest(grade.text)
                by_text.setdefault((digests[grade.doc_id], grade.item_id), answer)
        if not by_doc:
            asked_for = " and ".join(
                f"{key} '{value}'" for key, value in (("model", self.model), ("prompt", self.prompt)) if value
            )
            raise GraderError(f"holds no grades{' of ' + asked_for if asked_for else ''}", path=self.path)
        return _Recording(by_doc, by_text, sources.pop())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _create(settings: GraderSection, root: Path) -> Grader:
    if settings.recorded is None:
        raise GraderError('the `recorded` grader needs `recorded = "FILE"` in [grader] of trecexam.toml')
    path = root / settings.recorded
    if not path.is_file():
        raise GraderError("no such recording; see `recorded` in [grader] of trecexam.toml", path=path)
    return RecordedGrader(path, settings.model, settings.prompt)


FACTORY = Factory(
    summary="grades that exist already: a Rubric graded pool, a grades export, nuggetizer's assignments",
    missing=lambda: "",
    create=_create,
    runs_model=False,
)
