"""The `recorded` grader: grades that exist: a Rubric pool, an export, nuggetizer's, umbrela's, qrels."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.errors import ConversionError
from converters.lines import open_input
from converters.records import RecordedGrade, judgment
from converters.support_labels import LABELS as SUPPORT_LABELS
from converters.support_labels import read_support_labels
from converters.umbrela import HIGHEST
from converters.unpacking import without_ending
from trecexam.bank.model import STATEMENT
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.files.stamps import sniffed
from trecexam.graders.base import Answer, Cell, Factory, Grader, Scale

BATCH = 5000
#: Formats of labels of passages for queries.
LABELS = ("qrels", "umbrela")
#: The best label that qrels may have where they are grades.
MAX_RATING = Scale().max_rating


class Recording(NamedTuple):
    """Answers by (document, item) and by (text's digest, item), and the (model, prompt) they are of."""

    by_doc: dict[tuple[str, str], Answer]
    by_text: dict[tuple[bytes, str], Answer]
    source: tuple[str, str] | None


class RecordedGrader(Grader):
    """Looks cells up in a recording: by (document, item), else by (equal passage text, item).

    Of qrels a label is the grade of the passage for the query itself, on the scale from 0 to the highest
    label there is: the best of several subtopics; a negative one is no grade, as trec_eval has it. umbrela's
    judgments are labels of 0..3, looked up by both texts. Labels of support, as in out/support.tsv, are of
    run, query, sentence and passage, which is known by its id.
    """

    def __init__(
        self, path: Path, model: str | None = None, prompt: str | None = None, *, of_support: bool = False
    ) -> None:
        self.path = path
        self.model = model
        self.prompt_name = prompt
        # What cannot be read is said when something is to be graded: its grades are stored.
        self._format = "support" if of_support else sniffed(path) or ""
        if self._format in LABELS:
            self.item_kinds = frozenset({"query"})
        elif of_support:
            self.item_kinds = frozenset({STATEMENT})

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        try:
            with open_input(self.path) as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise GraderError(f"cannot be read: {error.strerror}", path=self.path) from None
        if self._format == "support":
            return {"grader": "recorded-support", "sha256": sha256}
        return {"grader": "recorded", "sha256": sha256, "model": self.model, "prompt": self.prompt_name}

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
        """Of labels by doc_id query_id -> the doc_ids with a grade; None of other recordings."""
        if self._format not in {"qrels", "support"}:
            return None
        doc_ids: dict[str, set[str]] = {}
        for doc_id, name in self.recording.by_doc:
            query_id = name if self._format == "qrels" else name.split("/")[-2]
            doc_ids.setdefault(query_id, set()).add(doc_id)
        return doc_ids

    @cached_property
    def scale(self) -> Scale:  # type: ignore[override]
        """Of qrels the one that their labels use."""
        if self._format == "qrels":
            return Scale.up_to(max(1, *(answer.rating or 0 for answer in self.recording.by_doc.values())))
        return {"umbrela": Scale.up_to(HIGHEST), "support": Scale(2, 1)}.get(self._format, Scale())

    @cached_property
    def recording(self) -> Recording:
        if self._format == "qrels":
            return Recording(_labels(self.path), {}, (self.model or _stem(self.path), self.prompt_name or ""))
        if self._format == "support":
            return Recording(_support_labels(self.path), {}, None)
        by_doc: dict[tuple[str, str], Answer] = {}
        by_text: dict[tuple[bytes, str], Answer] = {}
        sources: set[tuple[str, str]] = set()
        digests: dict[str, bytes] = {}
        for grade in _grades(self.path):
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
            answer = Answer.read(grade.rating, grade.answer, grade.probabilities)
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
    if converters.sniff(path) == "qrels":
        return ((_stem(path), ""),)
    return tuple(sorted({(grade.model, grade.prompt) for grade in _grades(path)}))


def _grades(path: Path) -> Iterator[RecordedGrade]:
    kind = converters.sniff(path)
    if kind == "umbrela":
        for each in converters.read(path, kind):
            what = each.label, each.answer, each.model, ""
            if each.doc_id:
                yield RecordedGrade(each.query_id, each.doc_id, each.query_id, *what, "")
            # Texts say which query and which passage.
            yield RecordedGrade("", each.passage, each.query.strip(), *what, each.passage)
        return
    if kind not in {"rubric", "grades"}:
        raise GraderError(
            "not a recording: give a Rubric graded pool, a `trecexam export grades` file, nuggetizer's "
            "assignments, umbrela's judgments, or qrels",
            path=path,
        )
    yield from converters.read(path)


def _labels(path: Path) -> dict[tuple[str, str], Answer]:
    """Return (doc_id, query_id) -> the label of qrels as an answer."""
    best: dict[tuple[str, str], int] = {}
    for qrel in converters.read(path, "qrels"):
        if qrel.relevance > MAX_RATING:
            raise GraderError(
                f"label {qrel.relevance} of passage '{qrel.doc_id}' for query '{qrel.query_id}': qrels that "
                f"are grades have labels of 0..{MAX_RATING}",
                path=path,
            )
        label = judgment(qrel.relevance)
        if label is not None:
            key = qrel.doc_id, qrel.query_id
            best[key] = max(label, best.get(key, 0))
    if not best:
        raise GraderError("holds no judgments: all labels are -1: pooled, not judged", path=path)
    return {key: Answer(label, "ok", str(label)) for key, label in best.items()}


def _support_labels(path: Path) -> dict[tuple[str, str], Answer]:
    """Return (doc_id, statement) -> the label of support as an answer; the first of several counts."""
    errors: list[ConversionError] = []
    answers: dict[tuple[str, str], Answer] = {}
    for row in read_support_labels(path, errors.append):
        key = row.doc_id, f"{row.run}/{row.query_id}/{row.place}"
        answers.setdefault(key, Answer(row.rating, "ok", SUPPORT_LABELS[row.rating]))
    if errors:
        # What is wrong with a recording is not stored as if it were no grade.
        raise GraderError(errors[0].reason, path=path, line=errors[0].line)
    return answers


def _stem(path: Path) -> str:
    """Return the file's name without the endings of qrels."""
    name = without_ending(path.name)
    return name.removesuffix(".txt").removesuffix(".qrels") or name


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _create(settings: GraderSection, root: Path, *, of_support: bool = False) -> RecordedGrader:
    if settings.recorded is None:
        raise GraderError('the `recorded` grader needs `recorded = "FILE"` in [grader] of trecexam.toml')
    path = root / settings.recorded
    if not path.is_file():
        raise GraderError("no such recording; see `recorded` in [grader] of trecexam.toml", path=path)
    return RecordedGrader(path, settings.model, settings.prompt, of_support=of_support)


create_support = partial(_create, of_support=True)
FACTORY = Factory(
    summary="grades that exist already: a Rubric graded pool, an export, nuggetizer's, umbrela's, or qrels",
    missing=lambda: "",
    create=_create,
    standard=True,
    runs_model=False,
    reads=("prompt",),
)
