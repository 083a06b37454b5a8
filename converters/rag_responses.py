"""Generated responses: TREC RAG 2024 to 2026, RAGTIME, NeuCLIR, DRAGUN, BioGen, LongEval, plain JSON Lines.

One line is one system's answer to one query. They differ in names and in how they cite:

| | query | answer | citations |
|---|---|---|---|
| TREC RAG 2024 | `topic_id` | `answer: [{text, citations}]` | places in `references`, from 0 |
| TREC RAG 2025, 2026 | `metadata.narrative_id` | `answer: [{text, citations}]` | places, or ids |
| RAGTIME, NeuCLIR, DRAGUN | `topic_id`, `request_id`, `metadata` | `responses` | `{id: confidence}`, ids |
| BioGen | `topic_id` of each of the `results` of one JSON document | `answer`, `responses` | ids |
| iKAT | `turn_id` of each of the `turns` of one JSON document | `responses` | passages that are `used` |
| ragas samples | `user_input`, the query's text | `response` | all `retrieved_contexts` |
| plain | `query_id`; or `prompt`, the query's text | `text`, `response` or `answer` | none |

Each of these keys is read at the top and under `metadata`. Citations with confidences are put in order, the
surest first. `documents` has texts of what is cited: `{doc_id: {text}}`, `{doc_id: text}` or a list of
`{id, text}`.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.fields import TEXT_KEYS, an_id
from converters.lines import (
    Head,
    first_object,
    head,
    head_object,
    is_json_document,
    iter_lines,
    iter_objects,
    parse_object,
)
from converters.passages import ID_KEYS
from converters.records import Citation, Passage, Response, Sentence
from converters.registry import Format, never
from converters.response_forms import as_report, as_report_of_turn, is_sample, is_turn
from converters.unpacking import without_ending

EXAMPLE = (
    '{"run_id": "mysys", "topic_id": "q1", "references": ["doc42"], "answer": [{"text": "Heat pumps ...", '
    '"citations": [0]}]}'
)
QUERY_KEYS = ("topic_id", "query_id", "request_id", "narrative_id", "qid", "id")
QUERY_TEXT_KEYS = ("topic", "narrative", "query", "prompt", "question", "problem_statement")
RUN_KEYS = ("run_id", "run", "team_run_id", "run_name")
#: What BioGen's one JSON document has its responses under.
_DOCUMENT = "results"
#: The same in runs of iKAT.
_TURNS = "turns"
#: Words that TREC RAG takes in a response.
WORDS = 400
_LISTS = ("answer", "responses", "sentences")
_TEXTS = ("response", "text", "answer")


def read_responses(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[Response]:
    """Reads responses in file order, see `numbered_responses`."""
    return (response for _, response in numbered_responses(path, on_error))


def numbered_responses(
    path: str | os.PathLike[str],
    on_error: Callable[[ConversionError], None] | None = None,
    warn: Callable[[int, str], None] | None = None,
) -> Iterator[tuple[int, Response]]:
    """Yields (line number, response) in file order. A missing run name is that of the file.

    A response that names only its prompt has "" as its query id. Those over TREC RAG's limits (20 or 100
    references, 400 words) are taken, and so are those that cite a place at which there is no reference; the
    first of each is logged.

    Args:
        on_error: is called with the error of each bad line, which is skipped. None: the first one is raised.
        warn: is called with the line and the text of each warning. None: they are logged.

    Raises:
        ConversionError: the file cannot be read to its end, or no line of it is good; or, without `on_error`,
            with the line: bad JSON, no query, no text, a second response of the run to the same query.
    """
    stem = without_ending(Path(path).name).rsplit(".", 1)[0]
    first_lines: dict[tuple[str, str], int] = {}
    failed: list[ConversionError] = []
    over: list[tuple[int, str]] = []
    out_of_range: list[tuple[int, str]] = []
    for number, line in _lines(path, nul=on_error is not None):
        try:
            row = line if isinstance(line, dict) else parse_object(path, number, line)
            if is_sample(row):
                row = as_report(path, number, row)
            elif is_turn(row):
                row = {**row, **as_report_of_turn(path, number, row)}
            response = _response(path, number, row, stem)
            key = response.run, response.query_id or response.query_text.strip()
            if key in first_lines:
                raise second_response(path, number, *key, first_lines[key])
            first_lines[key] = number
        except ConversionError as error:
            if on_error is None:
                raise
            failed.append(error)
            on_error(error)
            continue
        if reason := _over(row, response):
            over.append((number, reason))
            response = response._replace(over=reason)
        if outside := sum(sentence.out_of_range for sentence in response.sentences):
            reason = f"citations that name none of the {len(response.references)} references: {outside}"
            out_of_range.append((number, reason))
        yield number, response
    if not first_lines:
        raise failed[0] if failed else ConversionError(path, None, "the file is empty")
    for lines in filter(None, (over, out_of_range)):
        first, reason = lines[0]
        reason = f"{reason} ({len(lines)} such lines)"
        if warn is not None:
            warn(first, reason)
        else:
            logging.getLogger("converters").warning("%s:%d: %s", os.fspath(path), first, reason)


def _lines(path: str | os.PathLike[str], *, nul: bool) -> Iterator[tuple[int, bytes | dict[str, Any]]]:
    """Yields (line number, line), or the responses of one JSON document with its common fields."""
    try:
        start = head(path, nul=True)
        document = is_json_document(start) or bool({_DOCUMENT, _TURNS} & (first_object(start) or {}).keys())
    except ConversionError:
        document = False
    if not document:
        yield from ((number, line) for number, line in iter_lines(path, nul=nul) if line.strip())
        return
    for number, row in iter_objects(path):
        yield from ((number, response) for response in _of_document(path, number, row))


def _of_document(path: str | os.PathLike[str], number: int, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the responses of a JSON document with its common fields: BioGen's `results`, iKAT's `turns`."""
    key = next((key for key in (_DOCUMENT, _TURNS) if key in row), None)
    if key is None:
        yield row
        return
    listed = row.pop(key)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ConversionError(path, number, f'"{key}" is not a list of responses', "file")
    yield from ({**row, **each} for each in listed)


def second_response(
    path: str | os.PathLike[str], number: int, run: str, query: str, first: int
) -> ConversionError:
    """The error for a second response to a query; `first` is the line of the first one."""
    reason = f"run '{run}' answers query '{query}' twice (first on line {first})"
    return ConversionError(path, number, reason, "response")


def _over(row: Mapping[str, Any], response: Response) -> str:
    """The limit that a response exceeds, or ""; the response is still accepted."""
    if "answer" not in row or "references" not in row:
        return ""
    metadata = row.get("metadata")
    if not isinstance(metadata, dict):
        year, references, most = "2024", 20, WORDS
    elif "run_desc" in metadata:
        # It has no limit of references.
        year, references, most = "2026", len(response.references), 1024
    else:
        year, references, most = "2025", 100, WORDS
    words = response.n_words
    if len(response.references) > references:
        return f"{len(response.references)} references, TREC RAG {year} takes {references}"
    return f"{words} words, TREC RAG takes {most}" if words > most else ""


def _write(row: Callable[[Response], dict[str, Any]], responses: Iterable[Response], file: BinaryIO) -> None:
    """Write a line for each response; ValueError for one without a query id."""
    import orjson

    for response in responses:
        if not response.query_id:
            raise ValueError(f"a response of run '{response.run}' has no query id")
        texts = {each.doc_id: {"id": each.doc_id, "text": each.text} for each in response.documents}
        documents = {"documents": texts} if texts else {}
        file.write(orjson.dumps({**row(response), **documents}) + b"\n")


def _rag24_row(response: Response) -> dict[str, Any]:
    """TREC RAG 2024's line, which keeps the order of citations but not their confidences."""
    return {
        "run_id": response.run,
        "topic_id": response.query_id,
        "topic": response.query_text,
        **_with_places(response),
    }


def _rag25_row(response: Response) -> dict[str, Any]:
    """Return a line of TREC RAG 2025 or 2026: the 2024 format with ids and other fields in `metadata`."""
    of_query = {"narrative_id": response.query_id, "narrative": response.query_text}
    metadata = {"team_id": "", **_metadata(response), "run_id": response.run, **of_query}
    return {"metadata": metadata, **_with_places(response)}


def _ragtime_row(response: Response) -> dict[str, Any]:
    """RAGTIME's line, with `{doc_id: confidence}`, or a list of ids without confidences."""
    metadata = {"team_id": "", **_metadata(response), "run_id": response.run, "topic_id": response.query_id}
    sentences = []
    for sentence in response.sentences:
        cited: Any = [*(citation.doc_id for citation in sentence.citations), *[-1] * sentence.out_of_range]
        if any(citation.confidence is not None for citation in sentence.citations):
            cited = {citation.doc_id: citation.confidence for citation in sentence.citations}
        sentences.append({"text": sentence.text, "citations": cited})
    return {"metadata": metadata, "responses": sentences, "references": list(response.references)}


def _metadata(response: Response) -> dict[str, Any]:
    """The metadata of a response besides its query."""
    of_query = (*QUERY_KEYS, *QUERY_TEXT_KEYS)
    return {key: value for key, value in response.metadata if key not in of_query}


def _with_places(response: Response) -> dict[str, Any]:
    """Return references and sentences of a response, with citations as indices."""
    references = list(response.references)
    reference_index = {doc_id: index for index, doc_id in enumerate(references)}
    answer = []
    for sentence in response.sentences:
        cited_indices = []
        for citation in sentence.citations:
            if citation.doc_id not in reference_index:
                reference_index[citation.doc_id] = len(references)
                references.append(citation.doc_id)
            cited_indices.append(reference_index[citation.doc_id])
        # No list of references has such a place.
        cited_indices += [-1] * sentence.out_of_range
        answer.append({"text": sentence.text, "citations": cited_indices})
    return {"references": references, "response_length": response.n_words, "answer": answer}


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
    references, documents = _references(path, number, row), tuple(_documents(row.get("documents")))
    document_ids = frozenset(document.doc_id for document in documents)
    sentences = tuple(_sentences(path, number, row, references, document_ids))
    metadata_items = metadata.items() if isinstance(metadata, dict) else ()
    plain = tuple((key, value) for key, value in metadata_items if isinstance(value, str | int | float))
    response = Response(query_id, run, sentences, query_text, references, "", documents, plain)
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
        raise ConversionError(path, number, '"references" is not a list of document ids')
    return tuple(listed)


def _documents(listed: Any) -> Iterator[Passage]:
    """The documents in a response that have an id and a text."""
    if isinstance(listed, dict):
        pairs = list(listed.items())
    elif isinstance(listed, list):
        entries = [entry for entry in listed if isinstance(entry, dict)]
        pairs = [(next((e[key] for key in ID_KEYS if key in e), None), e) for e in entries]
    else:
        return
    for doc_id, entry in pairs:
        fields = entry if isinstance(entry, dict) else {TEXT_KEYS[0]: entry}
        text = next((fields[key] for key in TEXT_KEYS if isinstance(fields.get(key), str)), "")
        if isinstance(doc_id, str) and doc_id.strip() and text.strip():
            yield Passage(doc_id, text)


def _sentences(
    path: str | os.PathLike[str],
    number: int,
    row: Mapping[str, Any],
    references: tuple[str, ...],
    documents: Collection[str],
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
    for index, entry in enumerate(row[key]):
        if isinstance(entry, str):
            yield Sentence(entry)
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
            raise ConversionError(path, number, f'entry {index} of "{key}" has no text')
        cited = list(_citations(path, number, entry.get("citations"), references, documents))
        valid = tuple(citation for citation in cited if citation is not None)
        yield Sentence(entry["text"], valid, len(cited) - len(valid))


def _citations(
    path: str | os.PathLike[str],
    number: int,
    listed: Any,
    references: tuple[str, ...],
    documents: Collection[str],
) -> Iterator[Citation | None]:
    """The citations of a sentence; None for an index without a reference.

    A number that is no place may be the id of a document that comes with the response, as a PMID is.
    """
    if listed is None:
        return
    if isinstance(listed, dict):
        cited = []
        for doc_id, confidence in listed.items():
            plain = isinstance(confidence, int | float) and not isinstance(confidence, bool)
            cited.append(Citation(doc_id, float(confidence) if plain else None))
        yield from sorted(
            cited, key=lambda each: -math.inf if each.confidence is None else each.confidence, reverse=True
        )
        return
    if not isinstance(listed, list):
        raise ConversionError(path, number, '"citations" is neither a list nor an object')
    for entry in listed:
        if isinstance(entry, str) and entry:
            yield Citation(entry)
        elif isinstance(entry, int) and not isinstance(entry, bool):
            if 0 <= entry < len(references):
                yield Citation(references[entry])
            else:
                yield Citation(str(entry)) if str(entry) in documents else None
        else:
            raise ConversionError(path, number, f"a citation is neither a place nor an id: {str(entry)[:40]}")


def _sniff(start: Head) -> bool:
    row = head_object(start)
    if row is None:
        return False
    named_run = any(key in row for key in RUN_KEYS)
    if is_sample(row) or (_DOCUMENT in row and (named_run or "team_id" in row)):
        return True
    if _TURNS in row and named_run:
        return True
    # Of a long line only the first keys are seen, each with None.
    cut = bool(row) and all(value is None for value in row.values())
    if cut and (("metadata" in row and "_id" not in row) or ("references" in row and named_run)):
        return True
    named = named_run or any(key in row for key in (*QUERY_KEYS, "metadata", "prompt"))
    lists = any(key in row and isinstance(row[key], list | None) for key in ("answer", "responses"))
    return named and (lists or "response" in row or ("text" in row and named_run))


FORMAT = Format(
    "responses",
    (".jsonl",),
    "generated responses, JSON: TREC RAG, RAGTIME, NeuCLIR, DRAGUN, BioGen, LongEval, iKAT, plain, ragas",
    EXAMPLE,
    _sniff,
    read_responses,
    partial(_write, _rag24_row),
    told_by='an answer beside the id of a run or query; ragas by "user_input" or "contexts"',
    written_as="TREC RAG 2024's",
)
RAG24 = Format(
    "rag24",
    (),
    "responses as TREC RAG 2024 takes them",
    EXAMPLE,
    never,
    read_responses,
    partial(_write, _rag24_row),
    told_by="accepted where it is named: by its content it is `responses`",
)
RAG25 = Format(
    "rag25",
    (),
    "responses as TREC RAG 2025 and 2026 take them",
    '{"metadata": {"team_id": "t", "run_id": "mysys", "narrative_id": "q1"}, "references": ["doc42"], '
    '"answer": [{"text": "Heat pumps ...", "citations": [0]}]}',
    never,
    read_responses,
    partial(_write, _rag25_row),
    told_by="accepted where it is named: by its content it is `responses`",
)
RAGTIME = Format(
    "ragtime",
    (),
    "responses as RAGTIME takes them",
    '{"metadata": {"team_id": "t", "run_id": "mysys", "topic_id": "q1"}, "responses": [{"text": '
    '"Heat pumps ...", "citations": {"doc42": 0.9}}]}',
    never,
    read_responses,
    partial(_write, _ragtime_row),
    told_by="accepted where it is named: by its content it is `responses`",
)
