"""What was dropped: a TREC run, or generated responses, which amount to a run over passages of their own.

Answers that nuggetizer judged are responses, too; each stays whole, since as a whole it was judged. So do
answers to questions about knowledge blocks (RAGVAL), which as a whole will be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import converters
from converters.errors import ConversionError
from converters.lines import first_object, head, iter_objects
from converters.nuggets import assigned_answer, has_nuggets
from converters.rag_responses import numbered_responses, second_response
from converters.ragval import AnswerRow, read_answers
from converters.records import Response
from converters.run import Run
from converters.segment import Pool, Unit, response_id, response_passages, response_ranking, safe_name
from trecexam.files.stamps import sniffed


@dataclass(frozen=True)
class Dropped:
    """One file of the drop folder.

    Attributes:
        run: what it ranks.
        texts: doc_id -> text of the passages that come with it.
        by_prompt: whether some of its queries were found by their text.
        answers: where it holds whole answers, these, empty ones too.
        refused: lines of these that were not taken.
        responses: where it holds generated responses, these, with the ids of their queries.
        generated: whether a system wrote it as its responses; it is no ranked run.
    """

    run: Run
    texts: Mapping[str, str] = field(default_factory=dict)
    by_prompt: bool = False
    answers: tuple[AnswerRow, ...] = ()
    refused: tuple[ConversionError, ...] = ()
    responses: tuple[Response, ...] = ()
    generated: bool = True


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
) -> Dropped:
    """Reads a file of the drop folder.

    Args:
        unit: what of a response's own text is graded as one.
        whole: the track's grader judges whole answers; then JSON that may be answers is.
        pool: what of a response stands in the pool.
        query_texts: query_id -> text; a response that names only its prompt is to one of these.
        words: of a response that count; None for all.
        strict: a file of responses with one bad line is rejected.
        read_run: reads a TREC run; None for `converters.read`.

    Raises:
        ConversionError: it is neither a run nor responses, or cannot be read.
    """
    kind = sniffed(path)
    if kind not in {"run", "responses", "grades"} and _has_answers(path, whole=whole):
        return _answers(path, query_texts)
    if kind in {"queries", None} and _is_json(path):
        # Here, a text with a query's id is an answer to it; and JSON is never a run.
        kind = "responses"
    if kind == "responses":
        return _responses(path, pool, unit, query_texts, words, strict=strict)
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
    return Dropped(converters.read(path, "run") if read_run is None else read_run(path), generated=False)


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
    return Dropped(_run_of(path, list(runs), rows), texts)


def _has_answers(path: Path, *, whole: bool) -> bool:
    if not _is_json(path):
        return False
    row = first_object(head(path, nul=True)) or {}
    return whole or ("question_id" in row and "answer" in row)


def _answers(path: Path, query_texts: Mapping[str, str]) -> Dropped:
    refused: list[ConversionError] = []
    by_text: dict[str, list[str]] = {}
    for query_id, text in query_texts.items():
        by_text.setdefault(text.strip(), []).append(query_id)
    first_answers: dict[str, AnswerRow] = {}
    rows = list(read_answers([path], refused.append))
    _one_run(path, list(dict.fromkeys(row.run_id for row in rows)))
    for row in rows:
        # Without an id it is known by its text; the n-th answer goes to the n-th question of that text.
        if row.by_text:
            ids = by_text.get(row.question.strip(), [])[row.occurrence - 1 :]
            if not ids:
                often = " that often" if row.occurrence > 1 else ""
                reason = f"no question of this track has the text '{row.question[:60]}'{often}: left out"
                refused.append(ConversionError(path, row.line, reason, "response"))
                continue
            row = replace(row, question_id=ids[0])
        first = first_answers.setdefault(row.question_id, row)
        if first is not row:
            reason = (
                f"question '{row.question_id[:80]}' was answered before, on line {first.line}, which counts"
            )
            refused.append(ConversionError(path, row.line, reason, "response"))
    if not first_answers:
        raise refused[0] if refused else ConversionError(path, None, "no answers in it")
    names = list(dict.fromkeys(row.run_id for row in first_answers.values()))
    given = [row for row in first_answers.values() if row.answer.strip()]
    run = _run_of(path, names, [(row.question_id, _answer_id(row), 1.0) for row in given])
    texts = {_answer_id(row): row.answer for row in given}
    by_prompt = any(row.by_text for row in rows)
    return Dropped(run, texts, by_prompt, tuple(first_answers.values()), tuple(refused))


def _answer_id(row: AnswerRow) -> str:
    """The document id of a whole answer."""
    return response_id(row.run_id, row.question_id)


def _is_json(path: Path) -> bool:
    # A run has no such line, and the first one may be broken.
    try:
        return any(line.lstrip().startswith(b"{") for line in head(path, nul=True).lines)
    except ConversionError:
        return False


def _responses(
    path: Path, pool: Pool, unit: Unit, query_texts: Mapping[str, str], words: int | None, *, strict: bool
) -> Dropped:
    by_text: dict[str, str] = {}
    for track_query, text in query_texts.items():
        by_text.setdefault(text.strip(), track_query)
    refused: list[ConversionError] = []

    def refuse(error: ConversionError) -> None:
        if strict:
            raise error
        refused.append(error)

    responses = list(numbered_responses(path, refuse))
    names = list(dict.fromkeys(response.run for _, response in responses))
    _one_run(path, names)
    by_prompt = any(not response.query_id for _, response in responses)
    first_lines: dict[str, int] = {}
    rows: list[tuple[str, str, float]] = []
    texts: dict[str, str] = {}
    known: list[Response] = []
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
        response = response._replace(query_id=query_id)
        if words is not None:
            response = response.truncated(words)
        known.append(response)
        passages = [] if pool == "citations" else response_passages(response, unit=unit)
        texts.update(passages)
        rows += response_ranking(response, pool, unit=unit, passages=passages)
    if not known:
        raise refused[0] if refused else ConversionError(path, None, "no responses in it")
    if not rows:
        raise ConversionError(path, None, 'no citations in it, and `pool` in [track] is "citations"')
    return Dropped(_run_of(path, names, rows), texts, by_prompt, (), tuple(refused), tuple(known))


def _one_run(path: Path, names: Sequence[str]) -> None:
    if len(names) > 1:
        raise ConversionError(
            path,
            None,
            f"responses of {len(names)} runs ('{names[0]}', '{names[1]}', ...): make a file for each",
        )


def _run_of(path: Path, names: Sequence[str], rows: Sequence[tuple[str, str, float]]) -> Run:
    _one_run(path, names)
    try:
        return Run.from_entries(safe_name(names[0]), rows)
    except ValueError as error:
        raise ConversionError(path, None, str(error)) from None
