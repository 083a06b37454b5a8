"""Official leaderboards: ranks as `{"run": rank}` JSON or `run<TAB>rank` lines.

A track's own `out/leaderboard.tsv` is one, too: its first measure ranks the runs. So does the first measure
of a table of values, as `converters.measure_values` reads them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from itertools import pairwise

from converters.errors import ConversionError
from converters.lines import Head, decode, iter_lines
from converters.measure_values import is_form, looks_like_values, means_of, ranks_of, read_values
from converters.records import RunRank
from converters.registry import Format

EXAMPLE = '{"bm25": 2, "dense": 1}'


def read_leaderboard(path: str | os.PathLike[str]) -> Iterator[RunRank]:
    """Reads ranks in file order; 1 is best, ties and gaps are allowed.

    Raises:
        ConversionError: it is neither form, a rank is not a number, a run occurs twice, the file is empty.
    """
    lines = [(number, decode(path, number, line)) for number, line in iter_lines(path)]
    first = lines[0][1] if lines else ""
    if _is_values(lines):
        means = means_of(read_values(path))
        if not means:
            raise ConversionError(path, None, "no values in it")
        yield from ranks_of(next(iter(means.values())))
        return
    read_ranks = (
        _json_ranks if first.strip()[:1] == "{" else _own_ranks if _first_measure(first) else _tsv_ranks
    )
    seen: set[str] = set()
    for number, run, rank in read_ranks(path, lines):
        if run in seen:
            raise ConversionError(path, number, f"run '{run}' occurs twice")
        if not math.isfinite(rank):
            raise ConversionError(path, number, f"run '{run}': the rank is not a finite number")
        seen.add(run)
        yield RunRank(run, rank)
    if not seen:
        raise ConversionError(path, None, 'no runs in it: give {"run": rank} JSON or `run<TAB>rank` lines')


def read_means(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """measure -> run -> mean, from a leaderboard with values; empty for one with only ranks.

    Raises:
        ConversionError: as `read_leaderboard`.
    """
    lines = [(number, decode(path, number, line)) for number, line in iter_lines(path)]
    return means_of(read_values(path)) if _is_values(lines) else {}


def _is_values(lines: list[tuple[int, str]]) -> bool:
    return bool(lines) and not _first_measure(lines[0][1]) and is_form([text for _, text in lines])


def _json_ranks(
    path: str | os.PathLike[str], lines: list[tuple[int, str]]
) -> Iterator[tuple[int | None, str, float]]:
    try:
        pairs = json.loads("\n".join(text for _, text in lines), object_pairs_hook=list)
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise ConversionError(
            path, line, f"not valid JSON: {getattr(error, 'msg', 'nested too deeply')}"
        ) from None
    for run, rank in pairs:
        if isinstance(rank, bool) or not isinstance(rank, int | float):
            raise ConversionError(path, None, f"run '{run}': the rank is not a number")
        yield None, run, float(rank)


def _tsv_ranks(
    path: str | os.PathLike[str], lines: list[tuple[int, str]]
) -> Iterator[tuple[int | None, str, float]]:
    for number, text in lines:
        if not text.strip():
            continue
        run, _, rank = text.partition("\t")
        try:
            yield number, run, float(rank)
        except ValueError:
            if number == 1 and "\t" in text:
                continue  # a header
            raise ConversionError(path, number, "not `run<TAB>rank`") from None


def _first_measure(header: str) -> int | None:
    """Return the column of the first measure of `out/leaderboard.tsv`, which its standard error follows.

    None for the header of another table. Between the run and the measure may be other columns.
    """
    names = header.rstrip().split("\t")
    pairs = enumerate(pairwise(names))
    found = (at for at, (name, after) in pairs if at and after == f"{name}.stderr")
    return next(found, None) if names[0] == "run" else None


def _own_ranks(
    path: str | os.PathLike[str], lines: list[tuple[int, str]]
) -> Iterator[tuple[int | None, str, float]]:
    """Ranks by value; runs with equal values share the best rank."""
    values: list[tuple[int, str, float]] = []
    column = _first_measure(lines[0][1])
    assert column is not None
    for number, text in lines[1:]:
        run, *_ = cells = text.split("\t")
        if len(cells) > column and not cells[column].strip():
            # It has no scores, as none of it is graded.
            continue
        try:
            value = float(cells[column])
        except (ValueError, IndexError):
            value = math.nan
        if not math.isfinite(value):
            raise ConversionError(path, number, f"run '{run[:80]}' has no number as its first value")
        values.append((number, run, value))
    for number, run, value in values:
        yield number, run, 1.0 + sum(other > value for _, _, other in values)


def _sniff(start: Head) -> bool:
    if looks_like_values(start) or _first_measure(start.lines[0].decode(errors="replace")) is not None:
        return True
    text = b"\n".join(start.lines)
    if not text.lstrip().startswith(b"{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(value) and all(isinstance(rank, int | float) for rank in value.values())


FORMAT = Format(
    "leaderboard",
    (".json", ".tsv", ".txt", ".jsonl"),
    "official leaderboard: ranks, or values of measures",
    EXAMPLE,
    _sniff,
    read_leaderboard,
    None,
    told_by="a JSON object of numbers; lines of a run, a query, a measure and its value in some order",
)
