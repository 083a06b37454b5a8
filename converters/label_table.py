"""TSV tables of labels: an id, then a column per label. Teams: `run<TAB>team`, without a header."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from converters.errors import ConversionError
from converters.lines import decode, iter_filled, iter_lines


@dataclass(frozen=True)
class LabelTable:
    """A table of labels: components of examinees, or groups of items.

    Attributes:
        names: of the columns after the first.
        rows: the first column's value -> the others', in the order of the names.
    """

    names: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]


def read_labels(path: str | os.PathLike[str], first: str, empty: str | None) -> LabelTable:
    """Reads `first`, then a column per label.

    Args:
        empty: what to write in place of an empty field; None takes empty fields.

    Raises:
        ConversionError: with the line: another first column, a line of another length, an id twice, an empty
            field.
    """
    lines = label_rows(path)
    number, header = next(lines)
    if header[0] != first or len(header) < 2:
        raise ConversionError(
            path, number, f"the header line is not `{first}` and then at least one column, set off by tabs"
        )
    refuse_twice(path, number, header[1:], "column")
    if not all(header[1:]):
        raise ConversionError(path, number, "a column has no name")
    rows: dict[str, tuple[str, ...]] = {}
    for number, row in lines:
        check_length(path, number, row, header)
        if not row[0]:
            raise ConversionError(path, number, f"no {first} in the first column")
        if row[0] in rows:
            raise ConversionError(path, number, f"{first} '{row[0]}' occurs twice")
        if empty and not all(row[1:]):
            missing = header[1 + row[1:].index("")]
            raise ConversionError(path, number, f"{first} '{row[0]}' has no {missing}: {empty}")
        rows[row[0]] = tuple(row[1:])
    return LabelTable(tuple(header[1:]), rows)


def label_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """The filled lines of the table: number and fields."""
    for number, raw in iter_filled(path):
        line = decode(path, number, raw)
        if "\r" in line:
            raise ConversionError(
                path, number, "a carriage return inside the line: save it with LF line ends"
            )
        yield number, [value.strip() for value in line.split("\t")]


def check_length(path: str | os.PathLike[str], number: int, row: list[str], header: list[str]) -> None:
    """Raises: ConversionError: a line has more or fewer columns than the header line."""
    if len(row) != len(header):
        raise ConversionError(
            path,
            number,
            f"has {len(row)} columns, the header line has {len(header)}: are they set off by tabs?",
        )


def refuse_twice(path: str | os.PathLike[str], number: int, names: list[str], what: str) -> None:
    """Raises: ConversionError: the header line names something twice."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        name = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ConversionError(path, number, f"the header line names {what} '{name[:80]}' twice")


def read_teams(path: str | os.PathLike[str]) -> dict[str, str]:
    """run -> team.

    Raises:
        ConversionError: a line of another form, a run that occurs twice with different teams, or no line.
    """
    teams: dict[str, str] = {}
    for number, line in iter_lines(path):
        text = decode(path, number, line).strip()
        if not text:
            continue
        run, _, team = (part.strip() for part in text.partition("\t"))
        if not team or "\t" in team:
            raise ConversionError(path, number, "not `run<TAB>team`")
        if teams.setdefault(run, team) != team:
            raise ConversionError(path, number, f"run '{run}' is of team '{teams[run]}' already")
    if not teams:
        raise ConversionError(path, None, "no teams in it: give `run<TAB>team` lines")
    return teams
