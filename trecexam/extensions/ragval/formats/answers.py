"""Answers and judged answers: RAGVAL's JSON Lines, an answer per line.

An answer is `{"question_id", "answer", "run_id"?, "question"?, "n_input_tokens"?, "n_output_tokens"?}`; a
judged one has `"truthfulness"` and `"relevance"` as well, 1 to 5, and a `"status"`. Other fields are ignored.

The published files have neither ids nor names. A line without `run_id` belongs to the system named by its
file. A question without `question_id` is identified by its text; if a run repeats the text, the second line's
id is the text with ` (2)`, so no answer is lost.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import iter_filled, parse_object

#: Callback for the error of a rejected line or part of a line.
OnError = Callable[[ConversionError], None]

#: The scores that a judge gives.
LOWEST, HIGHEST = 1, 5
#: Values of `status` without scores.
FAILED = ("unparsed", "refused", "error")
TOKENS = ("n_input_tokens", "n_output_tokens")
#: Largest whole number that all JSON parsers read exactly.
_MOST_TOKENS = 2**53
#: Fields of an answer that depend on the source file.
_NOT_WRITTEN = ("by_text", "line")
_ENDING = re.compile(r"(?<=.)(\.(jsonl|ndjson|json))?(\.gz)?\Z", re.IGNORECASE)


@dataclass(frozen=True)
class AnswerRow:
    """A system's answer to a question, with its judgment where there is one.

    Attributes:
        question_id: "" if the line has neither an id nor the question's text.
        answer: the answer, or "".
        run_id: name of the system.
        question: text of the question, or "".
        n_input_tokens, n_output_tokens: token counts, or None.
        truthfulness, relevance: 1..5, 5 is best; both None unless `status` is "ok".
        status: "ok", or without scores "unparsed", "refused" or "error".
        by_text: True if the line has no id, so that the text identifies the question.
        line: line number in the file; 0 without a file.
    """

    question_id: str
    answer: str
    run_id: str
    question: str = ""
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    truthfulness: float | None = None
    relevance: float | None = None
    status: str = "unparsed"
    by_text: bool = field(default=False, compare=False, kw_only=True)
    line: int = field(default=0, compare=False, kw_only=True)


def read_answers(path: str | os.PathLike[str], on_error: OnError) -> Iterator[AnswerRow]:
    """Read the answers of a file, in their order."""

    def answered(path: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
        if row.get("question_id") is None and not row.get("question"):
            raise ConversionError(path, number, 'it has no "question_id"')
        if "answer" in row and row["answer"] is None:
            # The system gave no answer.
            return {"answer": ""}
        return {"answer": a_text(path, number, row, ("answer",), "an answer", blank=True)}

    return _read([path], answered, on_error)


def read_judged(paths: Sequence[str | os.PathLike[str]], on_error: OnError) -> Iterator[AnswerRow]:
    """Read the judged answers of these files, in their order.

    A line without scores, with only one score, or with a status other than "ok" counts as an unjudged answer,
    without an error. A score that is no number from 1 to 5 is reported, and the answer counts as unjudged.
    """

    def judged(path: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
        answer = {"answer": _optional_text(path, number, row, "answer")}
        if row.get("status") in FAILED:
            return {**answer, "status": row["status"]}
        scores = {key: _score(path, number, row, key, on_error) for key in ("truthfulness", "relevance")}
        return answer if None in scores.values() else {**answer, **scores, "status": "ok"}

    return _read(paths, judged, on_error)


def judged_lines(rows: Iterable[AnswerRow]) -> bytes:
    """Return a line for each answer, for `read_judged`."""
    import orjson

    written = ({key: value for key, value in asdict(row).items() if key not in _NOT_WRITTEN} for row in rows)
    return b"".join(orjson.dumps(row) + b"\n" for row in written)


def _read(
    paths: Sequence[str | os.PathLike[str]],
    own_fields: Callable[[str, int, dict[str, Any]], dict[str, Any]],
    on_error: OnError,
) -> Iterator[AnswerRow]:
    names = [_ENDING.sub("", Path(path).name, count=1) for path in paths]
    first_places: dict[tuple[str, str], str] = {}
    times = Counter[tuple[str, str]]()
    for path, name in zip([os.fspath(path) for path in paths], names, strict=True):
        try:
            for number, line in iter_filled(path):
                try:
                    row = parse_object(path, number, line)
                    if row.get("run_id") is None and names.count(name) > 1:
                        reason = f"no run_id, and {names.count(name)} files are called {name}: rename them"
                        raise ConversionError(path, number, reason)
                    run_id = name if row.get("run_id") is None else an_id(path, number, row, ("run_id",))
                    by_text = row.get("question_id") is None
                    question = _optional_text(path, number, row, "question")
                    question_id = question if by_text else an_id(path, number, row, ("question_id",))
                    values = own_fields(path, number, row)
                    location = f"{path}:{number}"
                    first = location if by_text else first_places.setdefault((run_id, question_id), location)
                    if first != location:
                        raise ConversionError(
                            path,
                            number,
                            f"question '{question_id[:80]}' has two answers of run '{run_id[:80]}'; the "
                            f"first, at {first}, counts: leave one out, or give each system its own run_id",
                        )
                except ConversionError as error:
                    on_error(error)
                    continue
                values |= {key: _tokens(path, number, row, key, on_error) for key in TOKENS}
                # Counted last, since rejected lines are no answers.
                times[run_id, question] += by_text
                if by_text and question and times[run_id, question] > 1:
                    question_id = f"{question} ({times[run_id, question]})"
                yield AnswerRow(
                    question_id, run_id=run_id, question=question, by_text=by_text, line=number, **values
                )
        except ConversionError as error:
            more = "; nothing from here on was read" if error.line else ""
            on_error(ConversionError(path, error.line, error.reason + more))


def _score(path: str, number: int, row: dict[str, Any], key: str, on_error: OnError) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not LOWEST <= value <= HIGHEST:
        reason = (
            f'"{key}" is {_shown(value)}: give a number from {LOWEST} to {HIGHEST}, or null if the '
            "judgment could not be read; the answer counts as unparsed"
        )
        on_error(ConversionError(path, number, reason))
        return None
    return float(value)


def _tokens(path: str, number: int, row: dict[str, Any], key: str, on_error: OnError) -> int | None:
    value = row.get(key)
    if value is None:
        return None
    # pandas writes whole numbers as 43.0 in a column with missing values.
    whole = not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )
    if not whole or not 0 <= value <= _MOST_TOKENS:
        reason = (
            f'"{key}" is {_shown(value)}: give a whole number, or null if it was not counted; the answer '
            "counts without it"
        )
        on_error(ConversionError(path, number, reason))
        return None
    return int(value)


def _optional_text(path: str, number: int, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConversionError(path, number, f'"{key}" is not text: {_shown(value)}')
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 60 else text[:59] + "…"
