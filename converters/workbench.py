"""The Rubric workbench's pool and graded pool as a whole, read and written: `PooledPassage`s.

`converters.rubric_jsonl` reads the same files as grades. Two formats, because what is read of a file must be
what can be written to it.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.fields import an_id
from converters.records import Passage
from converters.registry import Format, never
from converters.rubric_jsonl import a_rating, objects, query_lines, read_graded_pool
from converters.workbench_records import (
    DirectGrade,
    Judgment,
    PooledGrading,
    PooledPassage,
    Ranking,
    SelfRating,
    prompt_class,
    qrels_of,
    runs_of,
)

EXAMPLE = (
    '["q1", [{"paragraph_id": "doc42", "text": "...", "paragraph": {}, '
    '"paragraph_data": {"judgments": [], "rankings": []}, "exam_grades": [...]}]]'
)
Path = str | os.PathLike[str]
_PASSAGE = {"paragraph_id", "text", "paragraph", "paragraph_data", "exam_grades", "grades"}
_JUDGMENT = {"paragraphId", "query", "relevance", "titleQuery"}
_RANKING = {"method", "paragraphId", "queryId", "rank", "score"}
_SHARED = {"llm", "llm_options", "prompt_info", "prompt_type", "relevance_label", "self_ratings"}
_GRADING = _SHARED | {"correctAnswered", "wrongAnswered", "answers", "llm_response_errors", "exam_ratio"}
_DIRECT = _SHARED | {"correctAnswered", "answer", "llm_response_error"}

_NOTHING: Mapping[str, Any] = MappingProxyType({})
#: What the workbench requires, and its value where there is nothing.
_NEEDED_GRADING: dict[str, Any] = {
    "correctAnswered": [],
    "wrongAnswered": [],
    "answers": [],
    "llm": "",
    "llm_options": {},
    "exam_ratio": 0.0,
}
_NEEDED_RATING: dict[str, Any] = {"self_rating": None}
_NEEDED_DIRECT: dict[str, Any] = {"correctAnswered": False, "answer": "", "llm": "", "llm_options": {}}


def read_pool(path: Path) -> Iterator[PooledPassage]:
    """Reads the passages of a pool or graded pool, in file order, with all fields.

    What other programs stumble over is kept and named: a passage without a text, a passage twice in a query,
    two gradings of a passage on an item by the same model and prompt (the first counts, in the workbench
    too), a query without passages (which is left out). The first of each kind is logged, as a warning. Of a
    truncated archive, all lines before its end are given first.

    Raises:
        ConversionError: with the line: not a pool, an id or a rank missing, a rating that is not 0..5, a
            damaged or truncated file.
    """
    oddities = _Oddities(path)
    seen: set[tuple[str, str]] = set()
    try:
        for number, query_id, rows in query_lines(path):
            if not rows:
                oddities.add(number, "empty", f"query '{query_id}' left out: it has no passages")
            for row in rows:
                passage = _WorkbenchLine(path, number).passage(query_id, row)
                what = f"passage '{passage.doc_id}' of query '{query_id}'"
                if (query_id, passage.doc_id) in seen:
                    oddities.add(number, "twice", f"{what} occurs twice: both are kept")
                seen.add((query_id, passage.doc_id))
                if not (passage.text or "").strip():
                    oddities.add(number, "textless", f"{what} has no text")
                for llm, prompt in _graded_twice(passage):
                    oddities.add(
                        number,
                        "graded",
                        f"{what} is graded twice by model '{llm}' with prompt '{prompt}': "
                        "both are kept, the first one counts",
                    )
                yield passage
    finally:
        oddities.log()


def write_pool(passages: Iterable[PooledPassage], file: BinaryIO) -> None:
    """Writes a pool; consecutive passages of a query are on one line.

    Raises:
        ValueError: a score is not finite, or `rest` holds what is no JSON.
    """
    import orjson

    for query_id, group in groupby(passages, key=lambda passage: passage.query_id):
        try:
            line = orjson.dumps([query_id, [_passage(passage) for passage in group]])
        except orjson.JSONEncodeError as error:
            raise ValueError(f"query '{query_id}' cannot be written as JSON: {error}") from None
        file.write(line + b"\n")


class _Oddities:
    """Collects warnings."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._errors: dict[str, tuple[ConversionError, int]] = {}

    def add(self, number: int, kind: str, reason: str) -> None:
        first, count = self._errors.get(kind, (ConversionError(self._path, number, reason), 0))
        self._errors[kind] = first, count + 1

    def log(self) -> None:
        for first, count in self._errors.values():
            logging.getLogger("converters").warning("%s (%d such cases)", first, count)


def _graded_twice(passage: PooledPassage) -> Iterator[tuple[str, str]]:
    """The model and prompt of each grading with an item that they graded before."""
    items_of = [*((grading, _items(grading)) for grading in passage.gradings)]
    for gradings in (items_of, [(grade, {"relevance"}) for grade in passage.direct]):
        seen: dict[tuple[str, str], set[str]] = {}
        for grading, items in gradings:
            key = grading.llm or "", prompt_class(grading.prompt_info)
            if not items.isdisjoint(seen.setdefault(key, set())):
                yield key
            seen[key] |= items


def _items(grading: PooledGrading) -> set[str]:
    rated = (rating.item_id for rating in grading.self_ratings)
    return {*rated, *(item_id for item_id, _ in grading.answers), *grading.correct, *grading.wrong}


class _WorkbenchLine:
    """Makes records of the objects on one line."""

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.number = number

    def passage(self, query_id: str, row: dict[str, Any]) -> PooledPassage:
        doc_id = an_id(self.path, self.number, row, ("paragraph_id",))
        data = self._typed(row, "paragraph_data", dict, "JSON object") or {}
        kept_keys = {"paragraph", "paragraph_data"}
        rest = {key: value for key, value in _rest(row, _PASSAGE).items() if key not in kept_keys}
        if more := {key: value for key, value in data.items() if key not in {"judgments", "rankings"}}:
            rest["paragraph_data"] = more
        return PooledPassage(
            query_id,
            doc_id,
            self._typed(row, "text", str, "text"),
            tuple(self._judgment(query_id, entry) for entry in self._objects(data, "judgments")),
            tuple(self._ranking(query_id, entry) for entry in self._objects(data, "rankings")),
            tuple(self._grading(doc_id, entry) for entry in self._objects(row, "exam_grades")),
            tuple(self._direct(doc_id, entry) for entry in self._objects(row, "grades")),
            row.get("paragraph"),
            rest,
        )

    def _judgment(self, title_id: str, row: dict[str, Any]) -> Judgment:
        return Judgment(
            an_id(self.path, self.number, row, ("query",)),
            an_id(self.path, self.number, row, ("paragraphId",)),
            self._needed(row, "relevance", int, "whole number"),
            title_id
            if row.get("titleQuery") is None
            else an_id(self.path, self.number, row, ("titleQuery",)),
            _rest(row, _JUDGMENT),
        )

    def _ranking(self, title_id: str, row: dict[str, Any]) -> Ranking:
        rank = self._needed(row, "rank", int, "whole number")
        if rank < 0:
            raise ConversionError(self.path, self.number, f"the rank is below 0: {rank}")
        return Ranking(
            an_id(self.path, self.number, row, ("method",)),
            an_id(self.path, self.number, row, ("queryId",)),
            an_id(self.path, self.number, row, ("paragraphId",)),
            rank,
            self._needed(row, "score", (int, float), "number"),
            title_id,
            _rest(row, _RANKING),
        )

    def _grading(self, doc_id: str, row: dict[str, Any]) -> PooledGrading:
        return PooledGrading(
            self._typed(row, "llm", str, "text"),
            self._typed(row, "prompt_info", dict, "JSON object"),
            self._answers(row),
            tuple(self._self_rating(doc_id, entry) for entry in self._objects(row, "self_ratings")),
            self._ids(row, "correctAnswered"),
            self._ids(row, "wrongAnswered"),
            self._typed(row, "exam_ratio", (int, float), "number"),
            self._typed(row, "llm_options", dict, "JSON object") or {},
            self._typed(row, "llm_response_errors", dict, "JSON object") or {},
            self._typed(row, "prompt_type", str, "text"),
            self._typed(row, "relevance_label", int, "whole number"),
            _rest(row, _GRADING, _NEEDED_GRADING),
        )

    def _direct(self, doc_id: str, row: dict[str, Any]) -> DirectGrade:
        return DirectGrade(
            self._typed(row, "llm", str, "text"),
            self._typed(row, "prompt_info", dict, "JSON object"),
            self._typed(row, "answer", str, "text"),
            a_rating(self.path, self.number, row.get("self_ratings"), f"passage '{doc_id}'"),
            self._typed(row, "correctAnswered", bool, "true or false"),
            self._typed(row, "llm_response_error", str, "text"),
            self._typed(row, "llm_options", dict, "JSON object") or {},
            self._typed(row, "prompt_type", str, "text"),
            self._typed(row, "relevance_label", int, "whole number"),
            _rest(row, _DIRECT, _NEEDED_DIRECT),
        )

    def _self_rating(self, doc_id: str, row: dict[str, Any]) -> SelfRating:
        item_id = an_id(self.path, self.number, row, ("question_id", "nugget_id"))
        kind = "nugget" if row.get("question_id") is None else "question"
        what = f"passage '{doc_id}', item '{item_id}'"
        rating = a_rating(self.path, self.number, row.get("self_rating"), what)
        return SelfRating(item_id, rating, kind, _rest(row, {f"{kind}_id", "self_rating"}, _NEEDED_RATING))

    def _answers(self, row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        pairs = self._typed(row, "answers", list, "list") or []
        for pair in pairs:
            if not (
                isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
            ):
                raise ConversionError(self.path, self.number, '"answers" is not a list of [item id, answer]')
        return tuple(map(tuple, pairs))

    def _ids(self, row: dict[str, Any], key: str) -> tuple[str, ...]:
        ids = self._typed(row, key, list, "list") or []
        if not all(isinstance(item_id, str) for item_id in ids):
            raise ConversionError(self.path, self.number, f'"{key}" is not a list of item ids')
        return tuple(ids)

    def _objects(self, row: dict[str, Any], key: str) -> list[dict[str, Any]]:
        return objects(self.path, self.number, row.get(key), f'"{key}"')

    def _needed(self, row: dict[str, Any], key: str, kind: Any, what: str) -> Any:
        if row.get(key) is None:
            raise ConversionError(self.path, self.number, f'no "{key}" in it')
        return self._typed(row, key, kind, what)

    def _typed(self, row: dict[str, Any], key: str, kind: Any, what: str) -> Any:
        value = row.get(key)
        if value is None:
            return None
        # To Python, true and false are whole numbers.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            article = "" if what.startswith(("text", "true")) else "a "
            reason = f'"{key}" is not {article}{what}: {value!r}'
            raise ConversionError(self.path, self.number, reason[:200])
        return value


def _rest(
    row: Mapping[str, Any], known_keys: set[str], needed: Mapping[str, Any] = _NOTHING
) -> dict[str, Any]:
    """Values without a field: unknown keys, and nulls and empty values to be written again."""
    rest = {}
    for key, value in row.items():
        empty = value is None or value == [] or value == {}
        if key not in known_keys or (empty and not (key in needed and needed[key] == value)):
            rest[key] = value
    return rest


def _object(rest: Mapping[str, Any], needed: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """A JSON object of the present values, in this order, then of the rest.

    Args:
        needed: the value where there is neither.
    """
    row = {}
    for key, value in values.items():
        if value is not None and value != () and value != {}:
            row[key] = value
        elif key in rest:
            row[key] = rest[key]
        elif key in needed:
            row[key] = needed[key]
    for key, value in rest.items():
        row.setdefault(key, value)
    return row


def _passage(passage: PooledPassage) -> dict[str, Any]:
    data = {
        "judgments": [_judgment(judgment) for judgment in passage.judgments],
        "rankings": [_ranking(ranking) for ranking in passage.rankings],
    }
    return _object(
        passage.rest,
        {"text": "", "paragraph": passage.paragraph},
        paragraph_id=passage.doc_id,
        text=passage.text,
        paragraph=passage.paragraph,
        paragraph_data={**(passage.rest.get("paragraph_data") or {}), **data},
        exam_grades=tuple(map(_grading, passage.gradings)),
        grades=tuple(map(_direct, passage.direct)),
    )


def _judgment(judgment: Judgment) -> dict[str, Any]:
    return _object(
        judgment.rest,
        _NOTHING,
        paragraphId=judgment.doc_id,
        query=judgment.query_id,
        relevance=judgment.relevance,
        titleQuery=judgment.title_id,
    )


def _ranking(ranking: Ranking) -> dict[str, Any]:
    return _object(
        ranking.rest,
        _NOTHING,
        method=ranking.run,
        paragraphId=ranking.doc_id,
        queryId=ranking.query_id,
        rank=ranking.rank,
        score=_finite(ranking.score),
    )


def _grading(grading: PooledGrading) -> dict[str, Any]:
    return _object(
        grading.rest,
        _NEEDED_GRADING,
        correctAnswered=grading.correct,
        wrongAnswered=grading.wrong,
        answers=grading.answers,
        llm_response_errors=grading.errors,
        llm=grading.llm,
        llm_options=grading.options,
        exam_ratio=_finite(grading.exam_ratio),
        prompt_info=grading.prompt_info,
        self_ratings=tuple(map(_self_rating, grading.self_ratings)),
        prompt_type=grading.prompt_type,
        relevance_label=grading.relevance_label,
    )


def _direct(grade: DirectGrade) -> dict[str, Any]:
    return _object(
        grade.rest,
        _NEEDED_DIRECT,
        correctAnswered=grade.correct,
        answer=grade.answer,
        llm_response_error=grade.error,
        llm=grade.llm,
        llm_options=grade.options,
        prompt_info=grade.prompt_info,
        self_ratings=grade.self_rating,
        prompt_type=grade.prompt_type,
        relevance_label=grade.relevance_label,
    )


def _self_rating(rating: SelfRating) -> dict[str, Any]:
    values = {f"{rating.kind}_id": rating.item_id, "self_rating": rating.rating}
    return _object(rating.rest, _NEEDED_RATING, **values)


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number: this format cannot hold it")
    return value


def _grades(path: Path, run: str | None) -> Iterable[Any]:
    return read_graded_pool(path)


def _passages(path: Path, run: str | None) -> Iterable[Any]:
    texts = {passage.doc_id: passage.text for passage in read_pool(path) if passage.text}
    return [Passage(doc_id, text) for doc_id, text in texts.items()]


def _qrels(path: Path, run: str | None) -> Iterable[Any]:
    try:
        return qrels_of(read_pool(path))
    except ValueError as error:
        raise ConversionError(path, None, str(error)) from None


def _run(path: Path, run: str | None) -> Iterable[Any]:
    try:
        runs = runs_of(read_pool(path))
    except ValueError as error:
        raise ConversionError(path, None, str(error)) from None
    if run is None and len(runs) > 1:
        raise ConversionError(path, None, f"holds {len(runs)} runs: name one of {', '.join(runs)} with --run")
    if run is not None and run not in runs:
        raise ConversionError(path, None, f"has no run '{run}'; it has {', '.join(runs) or 'none'}")
    return runs[run] if run is not None else next(iter(runs.values()), [])


FORMAT = Format(
    "workbench",
    (".jsonl", ".jsonl.gz"),
    "Rubric workbench pool, whole",
    EXAMPLE,
    never,
    read_pool,
    write_pool,
    told_by="accepted where it is named: by its content it is `rubric`",
    of=("rubric",),
    becomes={"grades": _grades, "passages": _passages, "qrels": _qrels, "run": _run},
)
