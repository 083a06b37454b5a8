"""Reading of response matrices, and of tables of components and groups.

Read from

- TSV: a header line `examinee`, then a question id a column; an examinee a line; 1, 0, or empty for none;
- JSON Lines with a response a line, `{"examinee", "question_id", "acc"}`;
- a folder of JSON Lines files, each one examinee of that name, with `{"doc": {...}, "acc"}` lines: what the
  code released with the exam paper (and the evaluation harness beneath it) writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from converters.errors import ConversionError
from converters.fields import an_id
from converters.label_table import LabelTable, check_length, label_rows, read_labels, refuse_twice
from converters.lines import head, iter_objects

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Names of the first column of each table.
EXAMINEE = "examinee"
#: Accepted keys of a response's item and of its value.
_ITEM = ("question_id", "item", "item_id", "id")
_VALUE = ("acc", "correct", "response")
_ENDINGS = (".jsonl", ".jsonl.gz")
_NUMBERS = {"1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, "": float("nan")}


@dataclass(frozen=True, eq=False)
class ResponseMatrix:
    """Responses of examinees to items.

    Attributes:
        examinees, items: unique ids.
        values: 1 right, 0 wrong, NaN no response; shape (n_examinees, n_items).
        texts: item -> text, if in the file.
    """

    examinees: tuple[str, ...]
    items: tuple[str, ...]
    values: NDArray[np.float64]
    texts: Mapping[str, str] = field(default_factory=dict)


def read_matrix(path: str | os.PathLike[str]) -> ResponseMatrix:
    """Return the matrix in a TSV or JSON Lines file, or in a folder of JSON Lines files."""
    path = Path(path)
    if path.is_dir():
        return _folder(path)
    if head(path).lines[0].lstrip().startswith(b"{"):
        return _gathered(path, _json_responses(path, None))
    return _table(path)


def read_components(path: str | os.PathLike[str]) -> LabelTable:
    """Read `examinee`, then a column per component: each examinee's levels."""
    return read_labels(path, EXAMINEE, empty="name each component's level, such as 'none'")


def read_groups(path: str | os.PathLike[str]) -> LabelTable:
    """Read `item`, then a column per grouping: each item's groups, separated by `|`."""
    table = read_labels(path, "item", empty=None)
    for name in table.names:
        if ":" in name:
            raise ConversionError(
                path, 1, f"column '{name[:40]}' has a colon in its name: give it one without"
            )
    return table


def _table(path: Path) -> ResponseMatrix:
    import numpy as np

    lines = label_rows(path)
    number, header = next(lines)
    if header[0] != EXAMINEE:
        raise ConversionError(
            path,
            number,
            f"the first column is '{header[0][:40]}': give `examinee`, then a column per question",
        )
    items = header[1:]
    if not items:
        raise ConversionError(path, number, "no question: separate the columns after `examinee` by tabs")
    if not all(items):
        raise ConversionError(
            path, number, f"column {header.index('', 1) + 1} has no question id: is there a tab too many?"
        )
    refuse_twice(path, number, items, "question")
    values: dict[str, list[float]] = {}
    for number, row in lines:
        check_length(path, number, row, header)
        name = row[0]
        if not name:
            raise ConversionError(path, number, "no examinee in the first column")
        if name in values:
            raise ConversionError(path, number, f"examinee '{name}' occurs twice: give each its own name")
        try:
            values[name] = [_NUMBERS[value] for value in row[1:]]
        except KeyError as error:
            where = next(item for item, value in zip(items, row[1:], strict=True) if value not in _NUMBERS)
            raise ConversionError(
                path,
                number,
                f"examinee '{name}', question '{where}': '{str(error.args[0])[:40]}' is neither 0, 1 nor "
                "empty (no response)",
            ) from None
    if not values:
        raise ConversionError(path, None, "no examinee: the file has only a header line")
    return ResponseMatrix(tuple(values), tuple(items), np.array(list(values.values()), np.float64))


@dataclass(frozen=True)
class _Response:
    path: Path
    line: int
    examinee: str
    item: str
    value: float
    text: str


def _folder(path: Path) -> ResponseMatrix:
    files = sorted(file for file in path.iterdir() if file.name.endswith(_ENDINGS))
    if not files:
        raise ConversionError(
            path, None, "the folder has no .jsonl file: it needs one per examinee, with `acc` on each line"
        )
    return _gathered(
        path, (row for file in files for row in _json_responses(file, file.name.split(".jsonl")[0]))
    )


def _json_responses(path: Path, examinee: str | None) -> Iterator[_Response]:
    for row_number, (number, row) in enumerate(iter_objects(path), 1):
        name = an_id(path, number, row, (EXAMINEE,)) if examinee is None or EXAMINEE in row else examinee
        doc = row["doc"] if isinstance(row.get("doc"), dict) else {}
        # In a row of the evaluation harness, doc_id is the question's number; in a question it is
        # the passage's.
        ids = {key: value for key, value in {**doc, **row}.items() if key in _ITEM and value is not None}
        ids |= {"id": row["doc_id"]} if not ids and row.get("doc_id") is not None else {}
        # The released files have no ids, but all have the same order of questions.
        item = an_id(path, number, ids, _ITEM) if ids else str(row_number)
        values = [row[key] for key in _VALUE if key in row]
        if not values:
            raise ConversionError(path, number, 'no "acc" in it: give 1 if the response is right, else 0')
        text = doc.get("question", row.get("question", ""))
        text = text if isinstance(text, str) else ""
        yield _Response(path, number, name, item, _value(path, number, item, values[0]), text)


def _gathered(path: Path, responses: Iterable[_Response]) -> ResponseMatrix:
    import numpy as np

    values: dict[str, dict[str, float]] = {}
    items: dict[str, str] = {}
    for row in responses:
        item_values = values.setdefault(row.examinee, {})
        if row.item in item_values:
            raise ConversionError(
                row.path, row.line, f"examinee '{row.examinee}' already responded to question '{row.item}'"
            )
        item_values[row.item] = row.value
        if items.setdefault(row.item, row.text) != row.text and row.text and items[row.item]:
            raise ConversionError(
                row.path,
                row.line,
                f"question '{row.item}' has another text than before: do the files have the same questions?",
            )
        items[row.item] = items[row.item] or row.text
    nothing = float("nan")
    matrix = [[item_values.get(item, nothing) for item in items] for item_values in values.values()]
    return ResponseMatrix(
        tuple(values),
        tuple(items),
        np.array(matrix, np.float64).reshape(len(values), len(items)),
        {item: text for item, text in items.items() if text},
    )


def _value(path: Path, number: int, item: str, value: Any) -> float:
    if value is None or value == "":
        return float("nan")
    if isinstance(value, bool | int | float) and value in (0, 1):
        return float(value)
    raise ConversionError(
        path, number, f"question '{item}': {str(value)[:40]!r} is neither 0, 1 nor null (no response)"
    )
