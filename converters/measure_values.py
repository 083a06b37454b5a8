"""Leaderboards of TREC and AutoJudge: values by run, query and measure.

| form | columns |
|---|---|
| `ir_measures` | run, query, measure, value |
| `tot` | run, measure, query, value |
| `trec_eval` | measure, query, value: a file a run, which its name or its line `runid all RUN` names |
| `ranking` | query, Q0, run, rank, value, measure |
| `jsonl` | `{"run_id", "topic_id", "measure", "value"}` |

The query `all` has means. A first line may name the columns.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from converters.errors import ConversionError
from converters.fields import a_number, column
from converters.lines import Head, decode, first_object, iter_filled, parse_object
from converters.records import MeasureValue, RunRank

#: The query of rows that are means over all.
ALL = "all"
#: form -> which column is what.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "ir_measures": ("run", "query", "measure", "value"),
    "tot": ("run", "measure", "query", "value"),
    "trec_eval": ("measure", "query", "value"),
    "ranking": ("query", "Q0", "run", "rank", "value", "measure"),
}
FORMS = (*COLUMNS, "jsonl")
_JSON = ("run_id", "topic_id", "measure", "value")
_NAMES = {
    **dict.fromkeys(("run", "run_id", "runid", "runtag", "system"), "run"),
    **dict.fromkeys(("topic", "topic_id", "query", "query_id", "request_id", "narrative_id"), "query"),
    **dict.fromkeys(("measure", "metric"), "measure"),
    **dict.fromkeys(("value", "score"), "value"),
}
#: What trec_eval calls its line with the name of the run.
_RUN_LINE = "runid"


def looks_like_values(start: Head) -> bool:
    """Return True for a file that begins as measures' values do, in another form than `ranking`.

    A run cannot be told from that.
    """
    row = first_object(start)
    if row is not None:
        return row.keys() >= set(_JSON)
    # The last line may be cut; one tab separates a query from its text.
    whole_lines = start.lines[:-1] or start.lines
    lines = [line.decode(errors="replace").split() for line in whole_lines]
    if any(line.count(b"\t") not in (0, len(row) - 1) for line, row in zip(whole_lines, lines, strict=True)):
        return False
    if _header(lines[0]):
        return True
    if len({len(row) for row in lines}) > 1 or len(lines[0]) not in (3, 4):
        return False
    values = [row[-1] for row in lines if row[0] != _RUN_LINE]
    if not values or any(_number(value) is None for value in values):
        return False
    if len(lines[0]) == 3:
        return any(row[1] == ALL for row in lines)
    # Labels of qrels are whole numbers, and their second column says little.
    marked = any("." in value or "e" in value.lower() for value in values)
    return marked and not all(row[1].upper() in ("0", "Q0") for row in lines)


def is_form(lines: Sequence[str]) -> bool:
    """Return True where a file's lines are of one of the forms, and not a table of runs and ranks."""
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("{"):
        return all(f'"{key}"' in first for key in _JSON)
    return len(first.split("\t")) != 2 and len(first.split()) in (3, 4, 6)


def read_values(path: str | os.PathLike[str]) -> Iterator[MeasureValue]:
    """Reads the rows of a leaderboard in order, without values that are not numbers.

    Raises:
        ConversionError: with the line: another number of columns, no form, bad JSON.
    """
    rows: list[tuple[int, list[str]]] = []
    left_out: list[int] = []
    for number, line in iter_filled(path):
        if line.lstrip().startswith(b"{"):
            fields = parse_object(path, number, line)
            if not fields.keys() >= set(_JSON):
                raise ConversionError(path, number, f"not {', '.join(_JSON)}")
            run, query_id, measure, value = (str(fields[key]) for key in _JSON)
            yield from _value(run, query_id, measure, value, number, left_out)
            continue
        rows.append((number, decode(path, number, line).split()))
    if not rows:
        _warn_of(path, left_out)
        return
    header = _header(rows[0][1])
    if header:
        del rows[0]
    columns = header or COLUMNS[_told(path, [columns for _, columns in rows])]
    run = Path(path).name
    for suffix in (".gz", ".txt", ".eval"):
        run = run.removesuffix(suffix)
    for number, row in rows:
        if len(row) != len(columns):
            names = " ".join(columns)
            raise ConversionError(path, number, f"{len(row)} columns, and a line has {len(columns)}: {names}")
        fields = dict(zip(columns, row, strict=True))
        if "run" not in fields and fields["measure"] == _RUN_LINE:
            run = fields["value"]
            continue
        row_run = fields.get("run", run)
        yield from _value(row_run, fields["query"], fields["measure"], fields["value"], number, left_out)
    _warn_of(path, left_out)


def _warn_of(path: str | os.PathLike[str], left_out: Sequence[int]) -> None:
    if left_out:
        logging.getLogger("converters").warning(
            "%s:%d: skipped a value that is not a number (%d such lines)",
            *(os.fspath(path), left_out[0], len(left_out)),
        )


def means_of(values: Iterable[MeasureValue]) -> dict[str, dict[str, float]]:
    """measure -> run -> value of `all`, else the mean over all queries, with 0 for missing ones."""
    by_measure: dict[str, dict[str, dict[str, float]]] = {}
    for row in values:
        by_measure.setdefault(row.measure, {}).setdefault(row.run, {})[row.query_id] = row.value
    means = {}
    for measure, by_run in by_measure.items():
        queries = {query_id for of_run in by_run.values() for query_id in of_run} - {ALL}
        means[measure] = {
            run: of_run[ALL] if ALL in of_run else math.fsum(of_run.values()) / len(queries)
            for run, of_run in by_run.items()
        }
    return means


def ranks_of(means: Mapping[str, float]) -> Iterator[RunRank]:
    """Ranks of runs by mean, in the given order; equal means share the best rank."""
    for run, mean in means.items():
        yield RunRank(run, 1.0 + sum(other > mean for other in means.values()))


def write_values(rows: Iterable[MeasureValue], file: BinaryIO, form: str) -> None:
    """Writes rows in order, with full precision; `ranking` has each run's rank.

    Raises:
        ValueError: an id or a measure has white space, which only `jsonl` can hold; no such form.
    """
    rows = list(rows)
    if form == "jsonl":
        for row in rows:
            file.write(json.dumps(dict(zip(_JSON, row, strict=True))).encode() + b"\n")
        return
    if form not in COLUMNS:
        raise ValueError(f"no form '{form}'; the forms are {', '.join(FORMS)}")
    if "run" not in COLUMNS[form] and len({row.run for row in rows}) > 1:
        raise ValueError(f"the form '{form}' has no column for the run: write a file for each")
    every: dict[tuple[str, str], list[float]] = {}
    for row in rows if form == "ranking" else ():
        every.setdefault((row.query_id, row.measure), []).append(row.value)
    for row in rows:
        run_values = every.get((row.query_id, row.measure), ())
        fields = {
            "run": column(row.run, "the run"),
            "query": column(row.query_id, "the query id"),
            "measure": column(row.measure, "the measure"),
            "value": repr(row.value),
            "rank": str(1 + sum(other > row.value for other in run_values)),
            "Q0": "Q0",
        }
        file.write("\t".join(fields[name] for name in COLUMNS[form]).encode() + b"\n")


def _header(columns: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns in a header line; () for other lines."""
    names = tuple(_NAMES.get(name.lower(), "") for name in columns)
    name_set = set(names)
    whole = len(name_set) == len(names) and "" not in name_set and name_set >= {"query", "measure", "value"}
    return names if whole else ()


def _told(path: str | os.PathLike[str], rows: Sequence[Sequence[str]]) -> str:
    width = len(rows[0])
    if width == 3:
        return "trec_eval"
    if width == 6 and rows[0][1].upper() == "Q0":
        return "ranking"
    if width == 4:
        second, third = ({row[column_index] for row in rows if len(row) == 4} for column_index in (1, 2))
        # Queries have means, and ids that are numbers; measures have neither.
        for of_queries in ((ALL in second, ALL in third), (_are_numbers(second), _are_numbers(third))):
            if of_queries[0] != of_queries[1]:
                return "ir_measures" if of_queries[0] else "tot"
        raise ConversionError(
            path,
            1,
            "its columns may be run, query, measure or run, measure, query: put a first line before that "
            "names them, `run query measure value` or `run measure query value`",
        )
    forms = ", or ".join(f"{' '.join(columns)} ({form})" for form, columns in COLUMNS.items())
    raise ConversionError(path, 1, f"this is not a leaderboard: a line must be {forms}")


def _are_numbers(names: Iterable[str]) -> bool:
    return all(name.isdigit() for name in names)


def _value(
    run: str, query_id: str, measure: str, text: str, line: int, left_out: list[int]
) -> Iterator[MeasureValue]:
    number = _number(text)
    if number is None:
        left_out.append(line)
    else:
        yield MeasureValue(run, query_id, measure, number)


def _number(text: str) -> float | None:
    number = a_number(text)
    return None if number is None or not math.isfinite(number) else number
