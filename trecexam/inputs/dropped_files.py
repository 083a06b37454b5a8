"""Readers of dropped files: runs, and generated responses, which are runs over their own passages.

Answers that nuggetizer judged, or that an extension has judged, are responses, too; each stays whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import converters
from converters.errors import ConversionError
from converters.lines import first_object, head, iter_objects
from converters.nuggets import assigned_answer, has_nuggets
from converters.rag_responses import numbered_responses, second_response
from converters.records import Passage, Response
from converters.run import Run
from converters.scored_rows import has_texts, is_ambiguous
from converters.segment import response_passages, response_ranking, safe_name
from trecexam.bank import Bank
from trecexam.config import TrackSection
from trecexam.extension import provided
from trecexam.files.stamps import Rejected, located, sniffed

#: A line of a run.
RUN_LINE = "query_id Q0 doc_id rank score tag"


@dataclass(frozen=True)
class Dropped:
    """A dropped file.

    Attributes:
        run: its ranking; without entries where nothing of its responses is pooled.
        texts: doc_id -> text of the passages that come with it.
        by_prompt: whether some of its queries were found by their text.
        answers: whole answers, empty ones too.
        refused: lines that were rejected.
        responses: generated responses, with the ids of their queries.
        generated: whether a system wrote it as its responses; it is no ranked run.
        documents: documents that come with it, in the order of the file.
    """

    run: Run
    texts: Mapping[str, str] = field(default_factory=dict)
    by_prompt: bool = False
    answers: tuple[Answered, ...] = ()
    refused: tuple[ConversionError, ...] = ()
    responses: tuple[Response, ...] = ()
    generated: bool = True
    documents: tuple[Passage, ...] = ()


class Answered(Protocol):
    """An answer that is judged as a whole."""

    @property
    def question_id(self) -> str:
        """The question's, which is a query of the bank."""
        ...


class AnswersReader(Protocol):
    """Reads files of answers that are judged as a whole; an extension declares one as `answers`."""

    #: Of the items that a grader asks about which judges whole answers.
    kinds: frozenset[str]

    def claims(self, row: Mapping[str, Any]) -> bool:
        """Return True for the first object of a file of answers, whoever grades the track."""
        ...

    def read(self, path: Path, query_texts: Mapping[str, str]) -> Dropped:
        """Read such a file.

        Raises:
            ConversionError: there is no answer in it, or it cannot be read.
        """
        ...

    def not_judged(self, file: str, answers: Sequence[Any], bank: Bank) -> Iterator[Rejected]:
        """Yield the answers that are not judged, and why."""
        ...


@cache
def answers_reader() -> AnswersReader | None:
    """Return the installed reader of whole answers."""
    reader: AnswersReader | None = provided("answers")
    return reader


def judges_answers(kinds: Iterable[str]) -> bool:
    """Return True for a grader of whole answers, by the kinds of its items."""
    reader = answers_reader()
    return reader is not None and reader.kinds <= frozenset(kinds)


#: Line and response of each good line of a file, and the errors of the others.
Parsed = tuple[Sequence[tuple[int, Response]], Sequence[ConversionError]]


def parse_responses(path: Path, file_name: str) -> Parsed:
    """Parse a file of responses and log its warnings under a name."""
    refused: list[ConversionError] = []

    def warn(line: int, reason: str) -> None:
        logging.getLogger("converters").warning("%s", located(file_name, line, reason))

    return list(numbered_responses(path, refused.append, warn)), refused


def read_dropped(
    path: Path,
    track: TrackSection,
    query_texts: Mapping[str, str],
    *,
    whole: bool,
    read_run: Callable[[Path], Run],
    read_responses: Callable[[Path], Parsed],
) -> Dropped:
    """Read a file of the drop folder.

    Args:
        track: what of a response is pooled, and how much of it.
        query_texts: query_id -> text; a response that names only its prompt is to one of these.
        whole: the track's grader judges whole answers; then JSON that may be answers is.
        read_run, read_responses: read TREC runs and responses.

    Raises:
        ConversionError: it is neither a run nor responses, or cannot be read.
    """
    kind = sniffed(path)
    if kind not in {"run", "responses", "grades"} and _is_json(path):
        reader = answers_reader()
        if reader and (whole or reader.claims(first_object(head(path, nul=True)) or {})):
            return reader.read(path, query_texts)
        if kind in {"queries", None}:
            # Here, a text with a query's id is an answer to it; and JSON is never a run.
            kind = "responses"
    if kind == "responses":
        return _of_responses(path, read_responses(path), track, query_texts)
    if kind == "grades" and (judged := _judged_answers(path)):
        return judged
    start = head(path)
    if kind == "qrels" and is_ambiguous(start):
        kind = "run"
    is_list = kind is None and start.lines[0].lstrip().startswith(b"[")
    if is_list or kind not in {"run", None}:
        looks = "is a JSON list of other things" if is_list else f"looks like the format '{kind}'"
        reason = f"neither a run nor generated responses: this {looks}; a run has lines `{RUN_LINE}`"
        raise ConversionError(path, 1, reason)
    run = read_run(path)
    with_texts = kind == "run" and has_texts(start)
    documents = tuple(converters.read(path, "passages")) if with_texts else ()
    return Dropped(run, generated=False, documents=documents)


def _is_json(path: Path) -> bool:
    # The first line may be broken.
    try:
        return any(line.lstrip().startswith(b"{") for line in head(path, nul=True).lines)
    except ConversionError:
        return False


def _judged_answers(path: Path) -> Dropped | None:
    """Return answers with nuggetizer's assignments; None where these grades are of other passages.

    An answer without a text was not given: the run skips the query.
    """
    rows: list[tuple[str, str, float]] = []
    texts: dict[str, str] = {}
    runs: dict[str, None] = {}
    for number, row in iter_objects(path):
        assigned = assigned_answer(path, number, row) if has_nuggets(row) else None
        if assigned is None:
            return None
        doc_id, response = assigned
        runs[response.run] = None
        if response.text:
            rows.append((response.query_id, doc_id, 1.0))
            texts[doc_id] = response.text
    return Dropped(run_of(path, one_run(path, list(runs)), rows), texts)


def _of_responses(path: Path, parsed: Parsed, track: TrackSection, query_texts: Mapping[str, str]) -> Dropped:
    by_text = {text.strip(): query_id for query_id, text in reversed(list(query_texts.items()))}
    responses, refused = parsed[0], list(parsed[1])
    name = one_run(path, list(dict.fromkeys(response.run for _, response in responses)))
    accepted: dict[str, Response] = {}
    lines: dict[str, int] = {}
    rows: list[tuple[str, str, float]] = []
    texts: dict[str, str] = {}
    documents: list[Passage] = []
    for number, response in responses:
        query_id = response.query_id or by_text.get(response.query_text.strip())
        if query_id is None:
            reason = f"no query of this track has the text '{response.query_text[:60]}'; add query ids"
            refused.append(ConversionError(path, number, reason, "response"))
            continue
        if query_id in accepted:
            refused.append(second_response(path, number, name, query_id, lines[query_id]))
            continue
        documents += response.documents
        response = response._replace(query_id=query_id, documents=())
        if track.truncate is not None:
            response = response.truncated(track.truncate)
        accepted[query_id], lines[query_id] = response, number
        passages = [] if track.pool == "citations" else response_passages(response, unit=track.unit)
        texts.update(passages)
        rows += response_ranking(response, track.pool, unit=track.unit, passages=passages)
    if refused and (track.strict or not accepted):
        raise refused[0]
    return Dropped(
        run_of(path, name, rows),
        texts,
        any(not response.query_id for _, response in responses),
        refused=tuple(refused),
        responses=tuple(accepted.values()),
        documents=tuple(documents),
    )


def one_run(path: Path, names: Sequence[str]) -> str:
    """Return the name of the run whose responses a file has; of several runs it raises a ConversionError."""
    if len(names) > 1:
        raise ConversionError(
            path,
            None,
            f"responses of {len(names)} runs ('{names[0]}', '{names[1]}', ...): make a file for each",
        )
    return names[0]


def run_of(path: Path, name: str, rows: Sequence[tuple[str, str, float]]) -> Run:
    """Make the run of a file of responses from (query_id, doc_id, score), or raise a ConversionError."""
    try:
        return Run.from_entries(safe_name(name), rows)
    except ValueError as error:
        raise ConversionError(path, None, str(error)) from None
