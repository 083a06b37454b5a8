"""Notes on how to read a result: their order, the number displayed, and their graders."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Self, TypeVar

from trecexam.results.text import plural

L = TypeVar("L", bound=Hashable)

#: Prefix of notes on rejected input.
REJECTED = "rejected: "
#: Number of notes displayed below a table.
MOST = 3
#: Ranks of notes, most important first: missing data and written files (always displayed); reasons for low or
#: incomparable values; notes without a rank; how values are computed.
LOST, CHANGES, PLAIN, METHOD = range(4)


class Note(str):
    """A note with a rank (LOST, CHANGES, PLAIN or METHOD), usable as a string."""

    rank: int

    def __new__(cls, text: str, rank: int = PLAIN) -> Self:
        note = super().__new__(cls, text)
        note.rank = rank
        return note


def _rank(note: str) -> int:
    return note.rank if isinstance(note, Note) else PLAIN


def ranked(notes: Iterable[str]) -> list[str]:
    """Return the notes sorted by rank."""
    return sorted(notes, key=_rank)


def first_notes(notes: Sequence[str], where: str) -> list[str]:
    """Return the first notes by rank, and a line that `where`, such as "--json", has all notes."""
    lost = [note for note in notes if note.startswith(REJECTED) or _rank(note) == LOST]
    rest = [note for note in ranked(notes) if note not in lost]
    more = [f"{plural(len(rest) - MOST, 'more note')}: {where} has all"] if len(rest) > MOST else []
    return [*lost, *rest[:MOST], *more]


def rejected_notes(rows: Sequence[object], most: int = 20) -> Iterator[str]:
    """Yield a line for each of the first rows, then the number of further rows."""
    yield from (f"{REJECTED}{row}" for row in rows[:most])
    if len(rows) > most:
        yield f"{REJECTED}{len(rows) - most:,} more"


def of_grader(name: str, note: str) -> Note:
    """Return the note with the grader's name in front."""
    return Note(f"{name}: {note}", _rank(note))


def each_once(lines_by_name: Mapping[str, Sequence[L]], named: Callable[[str, L], L]) -> list[L]:
    """Return the distinct lines of several graders, each with the names of its graders.

    Lines of all graders come first, without names.
    """
    names: dict[L, list[str]] = {}
    for name, lines in lines_by_name.items():
        for line in dict.fromkeys(lines):
            names.setdefault(line, []).append(name)
    shared = [line for line in names if 1 < len(names[line]) == len(lines_by_name)]
    return [*shared, *(named(", ".join(names[line]), line) for line in names if line not in set(shared))]
