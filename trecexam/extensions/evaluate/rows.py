"""Reading of rows from data frames of any library, records, or dicts by query and passage."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    FailFast,
    Field,
    TypeAdapter,
    ValidationError,
)

from trecexam.errors import TrecexamError

Row = TypeVar("Row")
#: Attribute of data frames of every library: the Arrow PyCapsule interface.
FRAME = "__arrow_c_stream__"


def _id(value: object) -> str:
    """Return an id as text; whole numbers are converted."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    text = str(value) if is_number else value
    if not isinstance(text, str) or not text:
        raise ValueError("an id is a text; read ids as text (in pandas, dtype=str)")
    return text


def _score(value: float) -> float:
    if math.isnan(value):
        raise ValueError("Input should be a number")
    return value


def _names(*names: str) -> Any:
    """Return the accepted names of a field, including those of PyTerrier and ir_datasets."""
    return Field(validation_alias=AliasChoices(*names))


#: Nearly all ids are texts, which skip the conversion.
_Text = Annotated[str, Field(strict=True, min_length=1)]
_Id = Annotated[_Text | Annotated[str, BeforeValidator(_id)], Field(union_mode="left_to_right")]
_QueryId = Annotated[_Id, _names("query_id", "qid")]
_DocId = Annotated[_Id, _names("doc_id", "docno", "docid")]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query."""

    query_id: Annotated[_Id, _names("query_id", "qid", "id")]
    text: Annotated[str, _names("text", "query", "title")]


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage."""

    docid: Annotated[_Id, _names("doc_id", "docno", "docid", "id")]
    text: Annotated[str, _names("text", "contents", "segment")]


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A judgment of a passage."""

    query_id: _QueryId
    doc_id: _DocId
    label: Annotated[int, _names("relevance", "label")]
    iteration: _Id = "0"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A passage of a run."""

    query_id: _QueryId
    doc_id: _DocId
    score: Annotated[float, AfterValidator(_score)]


def is_path(data: Any) -> bool:
    """Return True for a path, False for content."""
    return isinstance(data, str | os.PathLike)


def read_rows(data: Any, row_type: type[Row], what: str) -> list[Row]:
    """Return checked rows.

    Args:
        data: a dict query_id -> doc_id -> number, or input of `rows_of`.
        what: name of the data in messages.

    Raises:
        TrecexamError: unsupported data, a missing field, a wrong value, or no rows.
    """
    if isinstance(data, Mapping):
        if not all(isinstance(values, Mapping) for values in data.values()):
            raise TrecexamError(f"{what}: a dict must be query_id -> doc_id -> label or score")
        data = [
            {"query_id": query_id, "doc_id": doc_id, "score": number, "label": number}
            for query_id, of_query in data.items()
            for doc_id, number in of_query.items()
        ]
    rows = rows_of(data, what)
    if not rows:
        raise TrecexamError(f"{what}: no rows")
    adapter: TypeAdapter[list[Row]] = TypeAdapter(Annotated[list[row_type], FailFast()])  # type: ignore
    try:
        return adapter.validate_python(rows)
    except ValidationError as error:
        last = error.errors()[-1]
        row, field, *_ = last["loc"]
        reason = f"{last['msg'].removeprefix('Value error, ')}: {last['input']!r:.60}"
        raise TrecexamError(f"{what}: row {int(row) + 1}: {field}: {reason}") from None


def rows_of(data: Any, what: str) -> list[dict[str, Any]]:
    """Return rows as dicts without missing values.

    Args:
        data: a data frame (any object with the Arrow PyCapsule interface: pandas, polars, pyarrow, narwhals,
            duckdb ...), or an iterable of dicts, or of records with the fields as attributes.

    Raises:
        TrecexamError: unsupported data.
    """
    rows: list[Any] = []
    if hasattr(data, FRAME):
        import pyarrow as pa

        try:
            rows = pa.table(data).to_pylist()
        except (pa.ArrowException, ValueError, TypeError) as error:
            # For example, a column of texts and numbers.
            raise TrecexamError(f"{what}: the data frame cannot be read: {error}") from None
    elif isinstance(data, Mapping) or not isinstance(data, Iterable):
        more = "; collect() it" if hasattr(data, "collect") else ""
        raise TrecexamError(
            f"{what}: give a file, a data frame or a list of records, not a {type(data).__name__}{more}"
        )
    for number, row in enumerate(() if rows else data, 1):
        fields = row._asdict() if hasattr(row, "_asdict") else getattr(row, "__dict__", row)
        if not isinstance(fields, Mapping):
            raise TrecexamError(
                f"{what}: row {number} is neither a dict nor a record with names: {row!r:.60}"
            )
        rows.append(fields)
    return [{name: value for name, value in row.items() if value is not None} for row in rows]
