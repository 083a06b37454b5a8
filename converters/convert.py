"""Conversion between formats, including those with different records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from converters.bank import read_bank, read_bank_queries
from converters.errors import ConversionError
from converters.lines import head
from converters.nugget_banks import with_queries
from converters.rag_responses import read_responses
from converters.records import Passage, Query, Response, Sentence
from converters.registry import Format, formats, read, sniff
from converters.response_forms import prompt_id
from converters.run import Run
from converters.scored_rows import has_texts
from converters.segment import Pool, response_passages, run_lines, safe_name

#: Formats whose records can become those of others; further ones declare it themselves.
_WRITTEN = ("rag24", "rag25", "ragtime")
TARGETS = {
    "responses": ("passages", "run", "queries", *_WRITTEN),
    "rubric": ("grades",),
    "run": ("queries", "passages"),
    "bank": ("queries", "nuggets-v3", "nuggets-ragtime"),
}


def targets(source: str) -> tuple[str, ...]:
    """The formats to which this format can be converted."""
    declared = (name for file_format in _readers(source) for name in (file_format.name, *file_format.becomes))
    return tuple(name for name in dict.fromkeys((*TARGETS.get(source, ()), *declared)) if name != source)


def _readers(source: str) -> list[Format]:
    """The formats that can read the records of this one."""
    return [file_format for file_format in formats() if source in (file_format.name, *file_format.of)]


def converted(
    path: Path,
    source: str | None,
    target: str,
    pool: Pool = "text",
    run: str | None = None,
    on_error: Callable[[ConversionError], None] | None = None,
) -> Iterable[Any]:
    """The records of a file, converted to those of the format `target`.

    Args:
        source: the file's format; None to tell from its content.
        target: a format's name.
        pool: of generated responses, what ranks in the run, and which passages there are: their own, those
            that come with them and are cited, or both.
        run: which run, where the file has several.
        on_error: is called with the error of each bad line of responses, which is skipped. None: the first
            one is raised.

    Raises:
        ConversionError: the file cannot be read, or its records are nothing that `target` holds; in part
            while iterating.
    """
    if path.is_dir():
        source, records = "responses", iter(read_folder(path))
    else:
        source = source or sniff(path)
        records = read_responses(path, on_error) if source == "responses" else read(path, source)
    if source == target:
        return records
    if target not in targets(source):
        becomes = ", ".join((source, *targets(source)))
        if target not in {each.name for each in formats()}:
            raise ConversionError(path, None, f"no format '{target}'; see `trecexam formats`")
        hint = ""
        if source == "queries" and target in TARGETS["responses"]:
            hint = " (if these are generated responses, say so: --from responses)"
        raise ConversionError(
            path, None, f"'{source}' cannot be converted to '{target}', only to {becomes}{hint}"
        )
    if source == "bank" and target == "queries":
        return read_bank_queries(path)
    if source == "bank":
        return with_queries(read_bank(path), read_bank_queries(path))
    if source == "responses":
        return _of_responses(path, records, target, pool)
    if source == "run" and target in TARGETS["run"]:
        if not has_texts(head(path)):
            reason = f"is a run without texts, and holds no {target}; files of castorini and TIREx do"
            raise ConversionError(path, None, reason)
        texts: Iterable[Any] = read(path, target)
        return texts
    for reader in _readers(source):
        if target == reader.name:
            return reader.read(path)
        if target in reader.becomes:
            return reader.becomes[target](path, run)
    return records


def _of_responses(path: Path, responses: Iterable[Response], target: str, pool: Pool) -> Iterable[Any]:
    if target in _WRITTEN:
        return responses
    if target == "queries":
        texts = {
            r.query_id or prompt_id(r.query_text): r.query_text for r in responses if r.query_text.strip()
        }
        return [Query(query_id, text) for query_id, text in texts.items()]
    identified = (each._replace(query_id=each.query_id or prompt_id(each.query_text)) for each in responses)
    if target == "passages":
        return _passages(identified, pool)
    first = next(identified, None)
    if first is None:
        return ()
    rest = [first, *identified]
    if len({response.run for response in rest}) > 1:
        raise ConversionError(path, None, "the file has responses of several runs: make a file for each")
    return Run.from_entries(safe_name(first.run), run_lines(rest, pool))


def _passages(responses: Iterable[Response], pool: Pool) -> Iterator[Passage]:
    """The passages of responses; the first one for each id."""
    seen: set[str] = set()
    for response in responses:
        if pool != "citations":
            yield from response_passages(response)
        for document in () if pool == "text" else response.documents:
            if document.doc_id not in seen:
                seen.add(document.doc_id)
                yield document


def read_folder(folder: Path) -> Iterator[Response]:
    """The responses in a folder of QUERY_ID.txt files; the run is named as the folder.

    Raises:
        ConversionError: there are no files, or one is empty or not UTF-8.
    """
    paths = sorted(path for path in folder.glob("*.txt") if path.is_file())
    if not paths:
        raise ConversionError(folder, None, "no QUERY_ID.txt files in this folder")
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConversionError(path, None, f"cannot be read as UTF-8 text: {error}") from None
        if not text.strip():
            raise ConversionError(path, None, "the response is empty")
        if not path.stem.isprintable():
            raise ConversionError(folder, None, f"the file name {path.name!r} is not a query id; rename it")
        yield Response(path.stem, folder.resolve().name, (Sentence(text.strip()),))
