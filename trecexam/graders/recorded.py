"""The `recorded` grader: grades that exist: a Rubric pool, an export, nuggetizer's, umbrela's, qrels."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from converters.lines import open_input
from converters.recordings import read_recording
from converters.umbrela import HIGHEST
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.files.stamps import sniffed
from trecexam.graders.base import Answer, Cell, Factory, Grader, Scale

BATCH = 5000
#: Formats of labels of passages for queries.
LABELS = ("qrels", "umbrela")


class Recording(NamedTuple):
    """Answers by (document, item) and by (text's digest, item), and the (model, prompt) they are of."""

    by_doc: dict[tuple[str, str], Answer]
    by_text: dict[tuple[bytes, str], Answer]
    source: tuple[str, str] | None


class RecordedGrader(Grader):
    """Looks cells up in a recording: by (document, item), else by (equal passage text, item).

    Of qrels a label is the grade of the passage for the query itself, on the scale from 0 to the highest
    label there is: the best of several subtopics; -1 is no grade, and a lower one is 0. umbrela's
    judgments are labels of 0..3, looked up by both texts.
    """

    def __init__(self, path: Path, model: str | None = None, prompt: str | None = None) -> None:
        self.path = path
        self.model = model
        self.prompt_name = prompt
        # What cannot be read is said when something is to be graded: its grades are stored.
        self._format = sniffed(path) or ""
        if self._format in LABELS:
            self.item_kinds = frozenset({"query"})

    @cached_property
    def sha256(self) -> str:
        """Return the sha256 (hex) of the recording."""
        try:
            with open_input(self.path) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise GraderError(f"cannot be read: {error.strerror}", path=self.path) from None

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        return {"grader": "recorded", "sha256": self.sha256, "model": self.model, "prompt": self.prompt_name}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        by_doc, by_text, _ = self.recording
        remaining = iter(cells)
        while chunk := list(islice(remaining, BATCH)):
            batch = []
            for cell in chunk:
                answer = by_doc.get((cell.doc_id, cell.item.item_id))
                if answer is None and by_text:
                    item = cell.item.text.strip() if self._format == "umbrela" else cell.item.item_id
                    answer = by_text.get((_digest(cell.text), item))
                if answer is not None:
                    batch.append((cell, answer))
            if batch:
                yield batch

    @cached_property
    def model_and_prompt(self) -> tuple[str, str] | None:  # type: ignore[override]
        return self.recording.source

    @cached_property
    def known_passages(self) -> Mapping[str, Collection[str]] | None:  # type: ignore[override]
        """Return query_id -> the doc_ids with a grade, of qrels; None of other recordings."""
        if self._format != "qrels":
            return None
        doc_ids: dict[str, set[str]] = {}
        for doc_id, query_id in self.recording.by_doc:
            doc_ids.setdefault(query_id, set()).add(doc_id)
        return doc_ids

    @cached_property
    def scale(self) -> Scale:  # type: ignore[override]
        """Return the scale of the recording; of qrels the one that their labels use."""
        if self._format == "qrels":
            return Scale.up_to(max(1, *(answer.rating or 0 for answer in self.recording.by_doc.values())))
        return Scale.up_to(HIGHEST) if self._format == "umbrela" else Scale()

    @cached_property
    def recording(self) -> Recording:
        by_doc: dict[tuple[str, str], Answer] = {}
        by_text: dict[tuple[bytes, str], Answer] = {}
        sources: set[tuple[str, str]] = set()
        digests: dict[str, bytes] = {}
        for grade in read_recording(self.path):
            if self._format == "qrels":
                grade = grade._replace(model=self.model or grade.model, prompt=self.prompt_name or "")
            if self.model not in (None, grade.model) or self.prompt_name not in (None, grade.prompt):
                continue
            sources.add((grade.model, grade.prompt))
            if len(sources) > 1:
                several = " and ".join(
                    f"model '{name}' with prompt '{what}'" for name, what in sorted(sources)
                )
                raise GraderError(
                    f"holds grades of {several}, perhaps more; "
                    "name one with `model` and `prompt` in [grader] of trecexam.toml",
                    path=self.path,
                )
            status = "unparsed" if grade.rating is None else "ok"
            answer = Answer(grade.rating, status, grade.answer, grade.probabilities)
            # The first of duplicated grades counts, as it does in the workbench.
            by_doc.setdefault((grade.doc_id, grade.item_id), answer)
            if grade.text:
                if grade.doc_id not in digests:
                    digests[grade.doc_id] = _digest(grade.text)
                by_text.setdefault((digests[grade.doc_id], grade.item_id), answer)
        if not by_doc:
            wanted = {"model": self.model, "prompt": self.prompt_name}
            asked_for = " and ".join(f"{key} '{value}'" for key, value in wanted.items() if value)
            raise GraderError(f"holds no grades{' of ' + asked_for if asked_for else ''}", path=self.path)
        return Recording(by_doc, by_text, sources.pop())


def recorded_sources(path: Path) -> tuple[tuple[str, str], ...]:
    """Return each (model, prompt) whose grades a recording holds; of qrels the file's name."""
    return tuple(sorted({(grade.model, grade.prompt) for grade in read_recording(path)}))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def recorded_path(settings: GraderSection, root: Path) -> Path:
    """Return the file that `recorded` in [grader] names.

    Raises:
        GraderError: it names none, or one that is not there.
    """
    if settings.recorded is None:
        raise GraderError('the `recorded` grader needs `recorded = "FILE"` in [grader] of trecexam.toml')
    path = root / settings.recorded
    if not path.is_file():
        raise GraderError("no such recording; see `recorded` in [grader] of trecexam.toml", path=path)
    return path


FACTORY = Factory(
    summary="grades that exist already: a Rubric graded pool, an export, nuggetizer's, umbrela's, or qrels",
    missing=lambda: "",
    create=lambda settings, root: RecordedGrader(
        recorded_path(settings, root), settings.model, settings.prompt
    ),
    standard=True,
    runs_model=False,
    reads=("prompt",),
)
