"""Headings of tables that break over several lines, as one name for each column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trecexam.scores.leaderboard import RUN_COLUMNS


def column_names(heading: Sequence[str]) -> list[str]:
    """The columns' names. A part stands above the next one, at its start or its end."""
    *above, last = heading
    names = [[match.start(), match.end(), match[0]] for match in re.finditer(r"\S+", last)]
    for line in reversed(above):
        for match in re.finditer(r"\S+", line):
            column = next(name for name in names if name[0] == match.start() or name[1] == match.end())
            column[2] = match[0] + str(column[2])
    return [str(name) for _, _, name in names]


def split_heading(lines: Sequence[str], first: str = "rank") -> tuple[list[str], list[str]]:
    """The columns' names, and the lines below the heading, whose last line begins with `first`."""
    end = next(n for n, line in enumerate(lines) if line.startswith(first)) + 1
    return column_names(lines[:end]), [*lines[end:]]


def score_columns(header: Iterable[str]) -> list[str]:
    """The columns of measures in the header of a leaderboard: all but those on each run."""
    return [name for name in header if name not in {column.name for column in RUN_COLUMNS}]
