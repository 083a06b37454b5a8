"""What the columns `NAME:MEASURE` of several graders are called on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trecexam.line.loaded_track import LoadedTrack
from trecexam.line.measure_names import names_of
from trecexam.scores.measures import short_names

if TYPE_CHECKING:
    from trecexam.line.measure_names import Measures

#: What these measures are called where there is little room, as papers call them.
_LETTERS = {"all_score": "A", "vital_score": "V", "weighted_score": "W", "SupportF1": "F1"}


def columns_of(track: LoadedTrack) -> tuple[str, ...]:
    """The columns that each grader's kind has first, as `NAME:MEASURE`."""
    return tuple(f"{name}:{measure}" for name, each in track.assessments.items() for measure in each.columns)


def known_names(columns: Sequence[str]) -> dict[str, str]:
    """`NAME:MEASURE` -> the same with the name that people have for the measure, where they have one."""
    parts = {column: column.partition(":") for column in columns}
    return {
        column: f"{name}:{short_name}"
        for column, (name, _, measure) in parts.items()
        for short_name in short_names([measure]).values()
    }


def short_columns(columns: Sequence[str]) -> dict[str, str]:
    """`NAME:MEASURE` -> a short heading, so that all of them have room on a terminal: without depth and
    ratings.

    Those of the same grader that would be called alike keep their names.
    """
    readable_names = known_names(columns)
    short = {}
    for column in columns:
        name, _, measure = readable_names.get(column, column).partition(":")
        bare = measure.partition("@")[0].partition("(")[0]
        short[column] = f"{name}:{_LETTERS.get(bare, bare)}"
    times = Counter(short.values())
    return {column: heading for column, heading in short.items() if times[heading] == 1}


def spelled_out(track: LoadedTrack, measures: Measures | None) -> list[str] | None:
    """The measures, with the names of those that are called as a terminal shows them ("nuggets:A")."""
    full = {heading: column for column, heading in short_columns(columns_of(track)).items()}
    names = names_of(measures)
    return None if names is None else [full.get(name, name) for name in names]
