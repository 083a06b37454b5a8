"""Which team submitted which run: `run<TAB>team` lines."""

from __future__ import annotations

import os

from converters.errors import ConversionError
from converters.lines import decode, iter_lines


def read_teams(path: str | os.PathLike[str]) -> dict[str, str]:
    """run -> team.

    Raises:
        ConversionError: a line of another form, a run that stands twice with different teams, or no line.
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
