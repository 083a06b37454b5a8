"""What was dropped: a TREC run, or generated responses, which amount to a run over passages of their own.

Answers that nuggetizer judged are responses, too; each stays whole, since as a whole it was judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import converters
from converters.errors import ConversionError
from converters.lines import head, iter_objects
from converters.nuggets import assigned_answer, has_nuggets
from converters.records import Response
from converters.run import Run
from converters.segment import Pool, response_passages, response_ranking, safe_name
from trecexam.stages.files import sniffed


@dataclass(frozen=True)
class Dropped:
    """One file of the drop folder.

    Attributes:
        run: what it ranks.
        texts: doc_id -> text of the passages that come with it.
        by_prompt: whether some of its queries were found by their text.
    """

    run: Run
    texts: Mapping[str, str] = field(default_factory=dict)
    by_prompt: bool = False


def read_dropped(path: Path, pool: Pool, query_texts: Mapping[str, str]) -> Dropped:
    """Reads a file of the drop folder.

    Args:
        pool: what of a response stands in the pool.
        query_texts: query_id -> text; a response that names only its prompt is to one of these.

    Raises:
        ConversionError: it is neither a run nor responses, or cannot be read.
    """
    kind = sniffed(path)
    if kind in {"queries", None} and _is_json(path):
        # Here, a text with a query's id is an answer to it; and JSON is never a run.
        kind = "responses"
    if kind == "responses":
        return _responses(path, pool, query_texts)
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
    run = converters.read(path, "run")
    return Dropped(run)


def _judged_answers(path: Path) -> Dropped | None:
    """Answers with nuggetizer's assignments; None where these grades are of other passages.

    An answer without a text was not given: the run skips the query.
    """
    rows: list[tuple[str, str, float]] = []
    texts: dict[str, str] = {}
    runs: dict[str, None] = {}
    for number, row in iter_objects(path):
        found = assigned_answer(path, number, row) if has_nuggets(row) else None
        if found is None:
            return None
        doc_id, response = found
        runs[response.run] = None
        if response.text:
            rows.append((response.query_id, doc_id, 1.0))
            texts[doc_id] = response.text
    return Dropped(_run_of(path, list(runs), rows), texts)


def _is_json(path: Path) -> bool:
    try:
        return head(path).lines[0].lstrip().startswith(b"{")
    except ConversionError:
        return False


def _responses(path: Path, pool: Pool, query_texts: Mapping[str, str]) -> Dropped:
    by_text: dict[str, str] = {}
    for query_id, text in query_texts.items():
        by_text.setdefault(text.strip(), query_id)
    responses: list[Response] = list(converters.read(path, "responses"))
    names = list(dict.fromkeys(response.run for response in responses))
    _one_run(path, names)
    by_prompt = any(not response.query_id for response in responses)
    rows: list[tuple[str, str, float]] = []
    texts: dict[str, str] = {}
    for response in responses:
        if not response.query_id:
            found = by_text.get(response.query_text.strip())
            if found is None:
                raise ConversionError(
                    path,
                    None,
                    f"no query of this track has the text '{response.query_text[:60]}'; add query ids",
                )
            response = response._replace(query_id=found)
        if pool != "citations":
            texts.update((passage.doc_id, passage.text) for passage in response_passages(response))
        rows += response_ranking(response, pool)
    if not rows:
        raise ConversionError(path, None, 'no citations in it, and `pool` in [track] is "citations"')
    return Dropped(_run_of(path, names, rows), texts, by_prompt)


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
