"""Generated responses: TREC RAG 2024 and 2025, RAGTIME, NeuCLIR and DRAGUN style, and plain JSON Lines.

One line is one system's answer to one query. They differ in names and in how they cite:

| | query | answer | citations |
|---|---|---|---|
| TREC RAG 2024 | `topic_id` | `answer: [{text, citations}]` | places in `references`, from 0 |
| TREC RAG 2025 | `metadata.narrative_id` | `answer: [{text, citations}]` | places, or ids |
| RAGTIME, NeuCLIR | `topic_id`, `request_id`, `metadata` | `responses` | `{id: confidence}`, ids, places |
| ragas samples | `user_input`, the query's text | `response` | all `retrieved_contexts` |
| plain | `query_id`; or `prompt`, the query's text | `text`, `response` or `answer` | none |
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.fields import an_id
from converters.lines import Head, first_object, iter_lines, parse_object
from converters.ragas import as_report, is_sample
from converters.records import Citation, Response, Sentence
from converters.registry import Format

EXAMPLE = (
    '{"run_id": "mysys", "topic_id": "q1", "references": ["doc42"], "answer": [{"text": "Heat pumps ...", '
    '"citations": [0]}]}'
)
QUERY_KEYS = ("topic_id", "query_id", "request_id", "narrative_id", "qid", "id")
QUERY_TEXT_KEYS = ("topic", "narrative", "query", "prompt", "question", "problem_statement")
RUN_KEYS = ("run_id", "run", "team_run_id")
#: Words that TREC RAG takes in a response.
WORDS = 400
_LISTS = ("answer", "responses", "sentences")
_TEXTS = ("response", "text", "answer")


def read_responses(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[Response]:
    """The responses of a file, in its order: see `numbered_responses`."""
    return (response for _, response in numbered_responses(path, on_error))


def numbered_responses(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[tuple[int, Response]]:
    """(line number, response), in the file's order. Where no run is named, the file's name is the run's.

    A response that names only its prompt has "" as its query id. Those over TREC RAG's limits (20 or 100
    references, 400 words) are taken, and so are those that cite a place at which there is no reference; the
    first of each is logged.

    Args:
        on_error: is called with the error of each bad line, which is skipped. None: the first one is raised.

    Raises:
        ConversionError: the file cannot be read to its end, or no line of it is good; or, without `on_error`,
            with the line: bad JSON, no query, no text, a second response of the run to the same query.
    """
    stem = Path(path).name.removesuffix(".gz").rsplit(".", 1)[0]
    first_lines: dict[tuple[str, str], int] = {}
    failed: list[ConversionError] = []
    over: list[str] = []
    out_of_range: list[str] = []
    for number, line in iter_lines(path, nul=on_error is not None):
        if not line.strip():
            continue
        try:
            row = parse_object(path, number, line)
            if is_sample(row):
                row = as_report(path, number, row)
            response = _response(path, number, row, stem)
            key = response.run, response.query_id or response.query_text.strip()
            first = first_lines.setdefault(key, number)
            if first != number:
                raise second_response(path, number, *key, first)
        except ConversionError as error:
            if on_error is None:
                raise
            failed.append(error)
            on_error(error)
            continue
        if reason := _over(row, response):
            over.append(f"{os.fspath(path)}:{number}: {reason}")
            response = response._replace(over=reason)
        if outside := sum(sentence.out_of_range for sentence in response.sentences):
            reason = f"citations that name none of the {len(response.references)} references: {outside}"
            out_of_range.append(f"{os.fspath(path)}:{number}: {reason}")
        yield number, response
    if not first_lines:
        raise failed[0] if failed else ConversionError(path, None, "the file is empty")
    for lines in filter(None, (over, out_of_range)):
        logging.getLogger("converters").warning("%s (%d such lines)", lines[0], len(lines))


def second_response(
    path: str | os.PathLike[str], number: int, run: str, query: str, first: int
) -> ConversionError:
    """The error of a line that answers a query again; `first` is the line of the first response to it."""
    reason = f"run '{run}' answers query '{query}' twice (first on line {first})"
    return ConversionError(path, number, reason, "response")


def _over(row: Mapping[str, Any], response: Response) -> str:
    """The limit of its track that a response is over; it is taken all the same."""
    if "answer" not in row or "references" not in row:
        return ""
    year, references = ("2025", 100) if isinstance(row.get("metadata"), dict) else ("2024", 20)
    words = response.n_words
    if len(response.references) > references:
        return f"{len(response.references)} references, TREC RAG {year} takes {references}"
    return f"{words} words, TREC RAG takes {WORDS}" if words > WORDS else ""


def write_responses(responses: Iterable[Response], file: BinaryIO) -> None:
    """Writes TREC RAG 2024's form; confidences are left out, since it has no place for them.

    Raises:
        ValueError: a response has no query id.
    """
    import orjson

    for response in responses:
        if not response.query_id:
            raise ValueError(f"a response of run '{response.run}' has no query id")
        references = list(response.references)
        known = {doc_id: place for place, doc_id in enumerate(references)}
        answer = []
        for sentence in response.sentences:
            places = []
            for citation in sentence.citations:
                if citation.doc_id not in known:
                    known[citation.doc_id] = len(references)
                    references.append(citation.doc_id)
                places.append(known[citation.doc_id])
            # No list of references has such a place.
            places += [-1] * sentence.out_of_range
            answer.append({"text": sentence.text, "citations": places})
        row = {
            "run_id": response.run,
            "topic_id": response.query_id,
            "topic": response.query_text,
            "references": references,
            "response_length": response.n_words,
            "answer": answer,
        }
        file.write(orjson.dumps(row) + b"\n")


def _response(path: str | os.PathLike[str], number: int, row: Mapping[str, Any], stem: str) -> Response:
    metadata = row.get("metadata")
    fields = {**metadata, **row} if isinstance(metadata, dict) else dict(row)
    query_text = next((fields[key] for key in QUERY_TEXT_KEYS if isinstance(fields.get(key), str)), "")
    has_id = any(fields.get(key) is not None for key in QUERY_KEYS)
    if not has_id and not query_text.strip():
        raise ConversionError(path, number, 'no query: a response has a "topic_id", "query_id" or "prompt"')
    query_id = an_id(path, number, fields, QUERY_KEYS) if has_id else ""
    named = any(fields.get(key) is not None for key in RUN_KEYS)
    run = an_id(path, number, fields, RUN_KEYS) if named else stem
    references = _references(path, number, row)
    response = Response(
        query_id, run, tuple(_sentences(path, number, row, references)), query_text, references
    )
    if not response.text:
        reason = f"the response to query '{query_id or query_text[:40]}' has no text"
        raise ConversionError(path, number, reason, "response")
    return response


def _references(path: str | os.PathLike[str], number: int, row: Mapping[str, Any]) -> tuple[str, ...]:
    listed = row.get("references")
    if listed is None:
        return ()
    if isinstance(listed, dict):
        listed = list(listed)
    if not isinstance(listed, list) or not all(isinstance(entry, str) and entry for entry in listed):
        raise ConversionError(path, number, '"references" is no list of document ids')
    return tuple(listed)


def _sentences(
    path: str | os.PathLike[str], number: int, row: Mapping[str, Any], references: tuple[str, ...]
) -> Iterator[Sentence]:
    key = next((key for key in _LISTS if isinstance(row.get(key), list)), None)
    if key is None:
        text = next((row[key] for key in _TEXTS if isinstance(row.get(key), str)), None)
        if text is None:
            raise ConversionError(
                path, number, 'no "answer" or "responses" list, and no "response" or "text" in it'
            )
        yield Sentence(text)
        return
    for place, entry in enumerate(row[key]):
        if isinstance(entry, str):
            yield Sentence(entry)
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
            raise ConversionError(path, number, f'entry {place} of "{key}" has no text')
        cited = list(_citations(path, number, entry.get("citations"), references))
        known = tuple(citation for citation in cited if citation is not None)
        yield Sentence(entry["text"], known, len(cited) - len(known))


def _citations(
    path: str | os.PathLike[str], number: int, listed: Any, references: tuple[str, ...]
) -> Iterator[Citation | None]:
    """The citations of a sentence; None for one by a place at which there is no reference."""
    if listed is None:
        return
    if isinstance(listed, dict):
        for doc_id, confidence in listed.items():
            plain = isinstance(confidence, int | float) and not isinstance(confidence, bool)
            yield Citation(doc_id, float(confidence) if plain else None)
        return
    if not isinstance(listed, list):
        raise ConversionError(path, number, '"citations" is neither a list nor an object')
    for entry in listed:
        if isinstance(entry, str) and entry:
            yield Citation(entry)
        elif isinstance(entry, int) and not isinstance(entry, bool):
            yield Citation(references[entry]) if 0 <= entry < len(references) else None
        else:
            raise ConversionError(path, number, f"a citation is neither a place nor an id: {str(entry)[:40]}")


def _sniff(start: Head) -> bool:
    row = first_object(start)
    if row is None:
        return False
    if is_sample(row):
        return True
    named_run = any(key in row for key in RUN_KEYS)
    # Of a long line only the first keys are seen, each with None.
    cut = bool(row) and all(value is None for value in row.values())
    if cut and (("metadata" in row and "_id" not in row) or ("references" in row and named_run)):
        return True
    known = named_run or any(key in row for key in (*QUERY_KEYS, "metadata", "prompt"))
    lists = any(key in row and isinstance(row[key], list | None) for key in ("answer", "responses"))
    return known and (lists or "response" in row or ("text" in row and named_run))


FORMAT = Format(
    "responses",
    (".jsonl",),
    "generated responses, JSONL: TREC RAG, RAGTIME, NeuCLIR, DRAGUN, plain; ragas samples",
    EXAMPLE,
    _sniff,
    read_responses,
    write_responses,
    told_by='an answer beside the id of a run or query; ragas by "user_input" and "response"',
    written_as="TREC RAG 2024's",
)
