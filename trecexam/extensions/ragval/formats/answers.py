"""Answers and judged answers: RAGVAL's JSON Lines, an answer per line.

An answer is `{"question_id", "answer", "run_id"?, "question"?, "retrieved"?, "n_input_tokens"?,
"n_output_tokens"?}`; a judged one has `"truthfulness"` and `"relevance"` as well, 1 to 5, and a `"status"`.
Other fields are ignored.

The published files have neither ids nor names. A line without `run_id` is of the system that its file is
called after. Without `question_id` a question goes by its text; where a run has that text again, the second
line's id is the text and ` (2)`: no answer is lost, and the n-th of one run goes with the n-th of another.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import iter_filled, parse_object

OnError = Callable[[ConversionError], None]

#: The scores that a judge gives.
LOWEST, HIGHEST = 1, 5
#: What a `status` may say of a judgment that gave no scores.
FAILED = ("unparsed", "refused", "error")
#: Whole numbers above this are not the same in all JSON parsers.
_MOST_TOKENS = 2**53
#: Of an answer, what depends on the file that it was read from.
_NOT_WRITTEN = ("occurrence", "by_text", "line")
_ENDINGS = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class AnswerRow:
    """A system's answer to a question, with its judgment where there is one.

    Attributes:
        question_id: "" where the line has neither an id nor the question's text.
        answer: "" where the line has none.
        run_id: the system.
        question: its text; "" where the line has none.
        retrieved: the line's text.
        n_input_tokens, n_output_tokens: None where nobody counted.
        occurrence: 2 for the run's second line with the same question's text and no id, and so on.
        truthfulness, relevance: 1..5, 5 is best; both None unless `status` is "ok".
        status: "ok", or "unparsed", "refused", "error": there are no scores.
        by_text: whether the line has no id, so that the question goes by its text.
        line: where it is in its file; 0 where it comes from none.
    """

    question_id: str
    answer: str
    run_id: str
    question: str = ""
    retrieved: Any = None
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    occurrence: int = 1
    truthfulness: float | None = None
    relevance: float | None = None
    status: str = "unparsed"
    by_text: bool = field(default=False, compare=False, kw_only=True)
    line: int = field(default=0, compare=False, kw_only=True)


def read_answers(
    paths: Sequence[str | os.PathLike[str]], on_error: OnError | None = None
) -> Iterator[AnswerRow]:
    """The answers in these files, in their order.

    Args:
        on_error: takes the error of a line that is left out; None raises it.
    """

    def answered(path: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
        if row.get("question_id") is None and not row.get("question"):
            raise ConversionError(path, number, 'it has no "question_id"')
        if "answer" in row and row["answer"] is None:
            # The system gave none.
            return {"answer": ""}
        return {"answer": a_text(path, number, row, ("answer",), "an answer", blank=True)}

    return _read(paths, answered, on_error)


def read_judged(
    paths: Sequence[str | os.PathLike[str]], on_error: OnError | None = None
) -> Iterator[AnswerRow]:
    """The judged answers in these files, in their order.

    A line without scores, with one score only, or whose status says that there are none, is of an answer that
    could not be judged; it is no error. Of one whose score is not a number from 1 to 5 the error is told, and
    it counts as one that could not be judged.

    Args:
        on_error: as in `read_answers`.
    """

    def judged(path: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
        answer = {"answer": _optional_text(path, number, row, "answer")}
        if row.get("status") in FAILED:
            return {**answer, "status": row["status"]}
        try:
            scores = {key: _score(path, number, row, key) for key in ("truthfulness", "relevance")}
        except ConversionError as error:
            if on_error is None:
                raise
            on_error(ConversionError(path, number, f"{error.reason}; the answer counts as unparsed"))
            return answer
        return answer if None in scores.values() else {**answer, **scores, "status": "ok"}

    return _read(paths, judged, on_error)


def judged_lines(rows: Iterable[AnswerRow]) -> bytes:
    """Return a line for each answer, for `read_judged`."""
    import orjson

    kept = ({key: value for key, value in asdict(row).items() if key not in _NOT_WRITTEN} for row in rows)
    return b"".join(orjson.dumps(row) + b"\n" for row in kept)


def _read(
    paths: Sequence[str | os.PathLike[str]],
    own_fields: Callable[[str, int, dict[str, Any]], dict[str, Any]],
    on_error: OnError | None,
) -> Iterator[AnswerRow]:
    names = [_bare(Path(path).name) for path in paths]
    first_places: dict[tuple[str, str], str] = {}
    times = Counter[tuple[str, str]]()

    def refused(error: ConversionError) -> None:
        if on_error is None:
            raise error
        on_error(error)

    for path, name in zip([os.fspath(path) for path in paths], names, strict=True):
        lines = iter_filled(path)
        while True:
            try:
                number, line = next(lines)
            except StopIteration:
                break
            except ConversionError as error:
                more = "; nothing from here on was read" if error.line else ""
                refused(ConversionError(path, error.line, error.reason + more))
                break
            try:
                row = _object(path, number, line)
                if row.get("run_id") is None and names.count(name) > 1:
                    reason = f"no run_id, and {names.count(name)} files are called {name}: rename them"
                    raise ConversionError(path, number, reason)
                run_id = name if row.get("run_id") is None else an_id(path, number, row, ("run_id",))
                by_text = row.get("question_id") is None
                question = _optional_text(path, number, row, "question")
                question_id = question if by_text else an_id(path, number, row, ("question_id",))
                # Counted last: a line that is refused for something else is no answer.
                made = AnswerRow(
                    question_id=question_id,
                    run_id=run_id,
                    question=question,
                    retrieved=row.get("retrieved"),
                    by_text=by_text,
                    line=number,
                    **own_fields(path, number, row),
                )
                place = f"{path}:{number}"
                if not by_text and (first := first_places.setdefault((run_id, question_id), place)) != place:
                    raise ConversionError(
                        path,
                        number,
                        f"question '{question_id[:80]}' has two answers of run '{run_id[:80]}'; the first, "
                        f"at {first}, counts: leave one out, or give each system its own run_id",
                    )
            except ConversionError as error:
                refused(error)
                continue
            changes: dict[str, Any] = {}
            for key in ("n_input_tokens", "n_output_tokens"):
                try:
                    changes[key] = _tokens(path, number, row, key)
                except ConversionError as error:
                    refused(ConversionError(path, number, f"{error.reason}; the answer counts without it"))
            times[run_id, question] += by_text
            occurrence = times[run_id, question]
            if by_text and question and occurrence > 1:
                changes |= {"question_id": f"{question} ({occurrence})", "occurrence": occurrence}
            yield replace(made, **changes)


def _object(path: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        return parse_object(path, number, line)
    except ConversionError:
        import orjson

        # Python's json writes NaN and Infinity, and reads them; it takes longer.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            row = json.loads(line)
            # It reads half characters, too, which no file can hold.
            orjson.dumps(row)
            if isinstance(row, dict):
                return row
        raise


def _score(path: str, number: int, row: dict[str, Any], key: str) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    # NaN is not within any bounds.
    if isinstance(value, bool) or not isinstance(value, int | float) or not LOWEST <= value <= HIGHEST:
        raise ConversionError(
            path,
            number,
            f'"{key}" is {_shown(value)}: give a number from {LOWEST} to {HIGHEST}, or null if the '
            "judgment could not be read",
        )
    return float(value)


def _tokens(path: str, number: int, row: dict[str, Any], key: str) -> int | None:
    value = row.get(key)
    if value is None:
        return None
    # pandas writes a column of whole numbers as 43.0 where one is missing.
    whole = not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )
    if not whole or not 0 <= value <= _MOST_TOKENS:
        raise ConversionError(
            path, number, f'"{key}" is {_shown(value)}: give a whole number, or null if it was not counted'
        )
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


def _bare(name: str) -> str:
    short = name[:-3] if name.lower().endswith(".gz") else name
    for ending in _ENDINGS:
        if short.lower().endswith(ending):
            return short[: -len(ending)] or name
    return short or name
