"""Gold outputs of queries, as banks of items of the kind `gold`, one per query.

A line is `{"query_id": ..., "outputs": [...]}`, with `query_text` or without; or as KILT has it, `{"id": ...,
"input": the query's text, "output": [{"answer": ..., "provenance": [...]}]}`. Any of the outputs is right.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from converters.errors import ConversionError
from converters.fields import a_flag, an_id
from converters.lines import iter_filled, parse_object
from converters.records import Item, Qrel

KIND = "gold"
Path = str | os.PathLike[str]
_KILT = frozenset(("id", "input", "output"))


def is_gold(row: Mapping[str, Any]) -> bool:
    """Return True where a line is one of these."""
    if any(key in row for key in ("questions", "items", "nuggets", "rubrics")):
        return False
    return ("outputs" in row and "query_id" in row) or row.keys() >= _KILT


def gold_query(path: Path, number: int, row: Mapping[str, Any]) -> tuple[str, str]:
    """The query's id and its text ("" if missing).

    Raises:
        ConversionError: there is no id.
    """
    kilt = "outputs" not in row
    text = row.get("input" if kilt else "query_text")
    return an_id(path, number, row, ("id",) if kilt else ("query_id",)), text if isinstance(text, str) else ""


def gold_items(path: Path, number: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The item of a line: its text is the first gold output, its gold answers are all distinct ones.

    Outputs of nothing but blanks are left out; in KILT's form those without an answer, which name where
    another one stands, too.

    Raises:
        ConversionError: the query id or the outputs are missing, or an output is not text.
    """
    query_id, _ = gold_query(path, number, row)
    listed = row["outputs"] if "outputs" in row else row["output"]
    distinct = dict.fromkeys(
        text for text in _texts(path, number, listed, query_id, kilt="outputs" not in row) if text.strip()
    )
    if not distinct:
        empty = isinstance(listed, list) and bool(listed)
        what = "only empty gold outputs" if empty else "no gold outputs"
        raise ConversionError(path, number, f"query '{query_id}' has {what}: left out")
    outputs = tuple(distinct)
    retired = a_flag(path, number, row, "retired")
    yield Item(query_id, f"{query_id}/gold", outputs[0], KIND, outputs, retired=retired)


def kilt_provenance(path: Path) -> Iterator[Qrel]:
    """Qrels with label 1 for the provenance pages in a KILT file.

    The document's id is `wikipedia_id`. Lines that cannot be read, and those of other forms, have none.

    Raises:
        ConversionError: the file cannot be read to its end, or is empty.
    """
    for number, line in iter_filled(path):
        with contextlib.suppress(ConversionError):
            row = parse_object(path, number, line)
            query_id = an_id(path, number, row, ("id",))
            listed = [output.get("provenance") for output in _objects(row.get("output"))]
            pages = (
                an_id(path, number, page, ("wikipedia_id",)) for each in listed for page in _objects(each)
            )
            yield from (Qrel(query_id, page, 1) for page in dict.fromkeys(pages))


def _objects(listed: Any) -> list[dict[str, Any]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def gold_line(item: Item) -> dict[str, Any]:
    """The JSON line of this item."""
    retired = {"retired": True} if item.retired else {}
    return {"query_id": item.query_id, "outputs": list(item.gold_answers or (item.text,)), **retired}


def _texts(path: Path, number: int, listed: Any, query_id: str, *, kilt: bool) -> Iterator[str]:
    if listed is None:
        return
    if not isinstance(listed, list):
        raise ConversionError(path, number, f"the gold outputs of query '{query_id}' are not a list")
    for entry in listed:
        text = entry
        if kilt:
            if not isinstance(entry, dict):
                raise ConversionError(path, number, f"an output of query '{query_id}' is not a JSON object")
            text = entry.get("answer")
            if text is None:
                continue
        if not isinstance(text, str):
            raise ConversionError(
                path, number, f"a gold output of query '{query_id}' is not text: {text!r}"[:200]
            )
        yield text
