"""What was dropped: a run, or generated responses, which amount to a run over passages of their own.

Answers that nuggetizer judged are responses, too; each stays whole, since as a whole it was judged. So do
answers that as a whole will be, which an extension reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
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
from converters.segment import Pool, Unit, response_passages, response_ranking, safe_name
from trecexam.bank import Bank
from trecexam.extension import extensions, named
from trecexam.files.stamps import Rejected, sniffed


@dataclass(frozen=True)
class Dropped:
    """One file of the drop folder.

    Attributes:
        run: what it ranks.
        texts: doc_id -> text of the passages that come with it.
        by_prompt: whether some of its queries were found by their text.
        answers: where it holds whole answers, these, empty ones too.
        refused: lines of these that were rejected.
        responses: where it holds generated responses, these, with the ids of their queries.
        generated: whether a system wrote it as its responses; it is no ranked run.
        documents: doc_id -> text of the documents that come with it.
        documents_twice: those of them that come with another text before; the last one counts.
    """

    run: Run
    texts: Mapping[str, str] = field(default_factory=dict)
    by_prompt: bool = False
    answers: tuple[Answered, ...] = ()
    refused: tuple[ConversionError, ...] = ()
    responses: tuple[Response, ...] = ()
    generated: bool = True
    documents: Mapping[str, str] = field(default_factory=dict)
    documents_twice: tuple[str, ...] = ()


class NothingPooledError(ConversionError):
    """Responses without citations, where only what is cited is pooled."""


def nothing_pooled(section: str) -> str:
    """Why responses have no passage in the pool; `section` of trecexam.toml says what is pooled."""
    return f'no citations in it, and `pool` in [{section}] is "citations"'


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
        """Whether a file that begins with this object is one of answers, whoever grades the track."""
        ...

    def read(self, path: Path, query_texts: Mapping[str, str]) -> Dropped:
        """Reads such a file.

        Raises:
            ConversionError: there is no answer in it, or it cannot be read.
        """
        ...

    def not_judged(self, file: str, answers: Sequence[Any], bank: Bank) -> Iterator[Rejected]:
        """The answers that are not judged, and why."""
        ...


@cache
def answers_reader() -> AnswersReader | None:
    """The one that is installed."""
    at = next((extension.answers for extension in extensions() if extension.answers is not None), None)
    return None if at is None else named(at)


def judges_answers(kinds: Iterable[str]) -> bool:
    """Whether a grader that asks about items of these kinds judges whole answers."""
    reader = answers_reader()
    return reader is not None and reader.kinds <= frozenset(kinds)


def read_dropped(
    path: Path,
    pool: Pool,
    query_texts: Mapping[str, str],
    *,
    unit: Unit = "passage",
    whole: bool = False,
    words: int | None = None,
    strict: bool = False,
    read_run: Callable[[Path], Run] | None = None,
    warn: Callable[[Path, int, str], None] | None = None,
) -> Dropped:
    """Reads a file of the drop folder.

    Args:
        unit: what of a response's own text is graded as one.
        whole: the track's grader judges whole answers; then JSON that may be answers is.
        pool: what of a response is in the pool.
        query_texts: query_id -> text; a response that names only its prompt is to one of these.
        words: of a response that count; None for all.
        strict: a file of responses with one bad line is rejected.
        read_run: reads a TREC run; None for `converters.read`.
        warn: is called with the line and the text of each warning about responses; None: they are logged.

    Raises:
        ConversionError: it is neither a run nor responses, or cannot be read.
    """
    kind = sniffed(path)
    if kind not in {"run", "responses", "grades"}:
        reader = _answers_reader(path, whole=whole)
        if reader is not None:
            return reader.read(path, query_texts)
    if kind in {"queries", None} and _is_json(path):
        # Here, a text with a query's id is an answer to it; and JSON is never a run.
        kind = "responses"
    if kind == "qrels" and is_ambiguous(head(path)):
        kind = "run"
    if kind == "responses":
        return _responses(path, pool, unit, query_texts, words, strict=strict, warn=warn)
    if kind == "grades":
        judged = _judged_answers(path)
        if judged is not None:
            return judged
    if kind not in {"run", None}:
        raise ConversionError(
            path,
            1,
            f"neither a run nor generated responses: this looks like the format '{kind}'; "
            "a run has lines `query_id Q0 doc_id rank score tag`",
        )
    run = converters.read(path, "run") if read_run is None else read_run(path)
    with_texts = kind == "run" and has_texts(head(path))
    documents, twice = _documents(converters.read(path, "passages") if with_texts else ())
    return Dropped(run, generated=False, documents=documents, documents_twice=twice)


def _documents(passages: Iterable[Passage]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the texts by id, the last one of each, and the ids that have several."""
    documents: dict[str, str] = {}
    twice: dict[str, None] = {}
    for doc_id, text in passages:
        if documents.get(doc_id, text) != text:
            twice[doc_id] = None
        documents[doc_id] = text
    return documents, tuple(twice)


def _judged_answers(path: Path) -> Dropped | None:
    """Answers with nuggetizer's assignments; None where these grades are of other passages.

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
    return Dropped(run_of(path, list(runs), rows), texts)


def _answers_reader(path: Path, *, whole: bool) -> AnswersReader | None:
    """Who reads this file, where it is one of whole answers."""
    reader = answers_reader()
    if reader is None or not _is_json(path):
        return None
    return reader if whole or reader.claims(first_object(head(path, nul=True)) or {}) else None


def _is_json(path: Path) -> bool:
    # A run has no such line, and the first one may be broken.
    try:
        return any(line.lstrip().startswith(b"{") for line in head(path, nul=True).lines)
    except ConversionError:
        return False


def _responses(
    path: Path,
    pool: Pool,
    unit: Unit,
    query_texts: Mapping[str, str],
    words: int | None,
    *,
    strict: bool,
    warn: Callable[[Path, int, str], None] | None,
) -> Dropped:
    by_text: dict[str, str] = {}
    for track_query, text in query_texts.items():
        by_text.setdefault(text.strip(), track_query)
    refused: list[ConversionError] = []

    def refuse(error: ConversionError) -> None:
        if strict:
            raise error
        refused.append(error)

    responses = list(numbered_responses(path, refuse, warn and partial(warn, path)))
    names = list(dict.fromkeys(response.run for _, response in responses))
    one_run(path, names)
    by_prompt = any(not response.query_id for _, response in responses)
    first_lines: dict[str, int] = {}
    rows: list[tuple[str, str, float]] = []
    texts: dict[str, str] = {}
    accepted: list[Response] = []
    inline: list[Passage] = []
    for number, response in responses:
        query_id = response.query_id or by_text.get(response.query_text.strip())
        if query_id is None:
            reason = f"no query of this track has the text '{response.query_text[:60]}'; add query ids"
            refuse(ConversionError(path, number, reason, "response"))
            continue
        first = first_lines.setdefault(query_id, number)
        if first != number:
            refuse(second_response(path, number, response.run, query_id, first))
            continue
        inline += response.documents
        response = response._replace(query_id=query_id, documents=())
        if words is not None:
            response = response.truncated(words)
        accepted.append(response)
        passages = [] if pool == "citations" else response_passages(response, unit=unit)
        texts.update(passages)
        rows += response_ranking(response, pool, unit=unit, passages=passages)
    if not accepted:
        raise refused[0] if refused else ConversionError(path, None, "no responses in it")
    if not rows:
        raise NothingPooledError(path, None, nothing_pooled("track"))
    documents, twice = _documents(inline)
    return Dropped(
        run_of(path, names, rows),
        texts,
        by_prompt,
        refused=tuple(refused),
        responses=tuple(accepted),
        documents=documents,
        documents_twice=twice,
    )


def one_run(path: Path, names: Sequence[str]) -> None:
    """Refuses a file with responses of several runs.

    Raises:
        ConversionError: it has.
    """
    if len(names) > 1:
        raise ConversionError(
            path,
            None,
            f"responses of {len(names)} runs ('{names[0]}', '{names[1]}', ...): make a file for each",
        )


def run_of(path: Path, names: Sequence[str], rows: Sequence[tuple[str, str, float]]) -> Run:
    """The run that a file of responses amounts to; rows are query_id, doc_id, score.

    Raises:
        ConversionError: it has several runs, or ids that are none.
    """
    one_run(path, names)
    try:
        return Run.from_entries(safe_name(names[0]), rows)
    except ValueError as error:
        raise ConversionError(path, None, str(error)) from None
