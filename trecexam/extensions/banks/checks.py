"""Checks of a bank's items: duplicates, copies of the query, remains of JSON ...

No check compares meanings. Items that differ in a word or two are left alone: in the nuggets of TREC RAG 2025
nearly all items with similar letters say different things ("linked to cancer", "linked to asthma").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.bank_lines import BankLine, scan_bank
from converters.lines import open_bytes
from converters.records import Item
from trecexam.bank.model import copies, folded, lines_by_query, words
from trecexam.errors import TrecexamError
from trecexam.files.stamps import sniffed
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.results.result import Result
from trecexam.results.table import Table
from trecexam.results.text import plural

#: Maximum words of an item. The longest of dl19's 210 questions has 21, of TREC RAG 2025's nuggets 19.
MAX_WORDS = {"question": 30, "nugget": 20}
#: Remains of an answer around an item (CAR Y3 has `['1. How`, `- Why`); the first match counts.
_REMAINS = {
    "several lines in one item": r"\S\s*?[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*\S",
    "a number before it": (
        r"\A[\s\[(\"'*]*(?:\[\d{1,3}\]|\(?\d{1,3}[.)]|(?:Q|question|nugget|fact) ?\d{1,3} ?[.):])\s"
    ),
    "a bullet before it": r"\A\s*[-*•\u2013\u2014·]\s",
    "the beginning of a list": r"\A\s*\w+\s*=\s*[\[{]",
    "a label before it": r"\A\s*(?:question|nugget|fact)s?\s*:\s*\S",
    "a reply of the model, not an item": (
        r"\A\s*(?:(?:sure|certainly|of course)\b\s*[,!.:]|here (?:are|is) .*:\s*\Z)|\bas an ai\b"
    ),
    "a placeholder of the prompt in it": r"\{(?:query|subtopic|title|text|passage|context)(?:_\w+)?\}",
    "Markdown in it": r"```|\*\*\S.*\*\*",
    "brackets, quotes or commas of a list around it": (
        r"\A\s*[\[{]\s*[\"'{\[]|[\"']\s*[,\]}]+\s*\Z"
        r"|\A\s*(?:\[[^\]]*|\{[^}]*)\Z|\A(?:[^\[]*\]|[^{]*\})\s*\Z"
    ),
    # A leading apostrophe may not be a quote: 'til, 's Gravenhage.
    "quotes around it": r"\A\s*(?:\"[^\"]*\"?|“[^”]*”?|`[^`]*`?|'[^']*')\s*\Z",
    "ends with a comma, colon, semicolon or '='": r"[,:;=]\s*\Z",
}


class BankFinding(NamedTuple):
    """A problem in a bank. `line` is None for the whole file; the ids and the text are "" if none applies."""

    file: str
    line: int | None
    query_id: str
    item_id: str
    problem: str
    text: str


@dataclass(frozen=True)
class Checked(Result):
    """Result of the checks of a bank.

    Attributes:
        problems: in the order of the files and lines; then those of queries.
        queries, items, retired: counts; retired items are not in `items`.
    """

    problems: tuple[BankFinding, ...]
    queries: int
    items: int
    retired: int
    notes: tuple[str, ...] = ()

    @property
    def rejected(self) -> tuple[BankFinding, ...]:  # type: ignore[override]
        """The problems; any problem makes the exit status 1."""
        return self.problems

    def _declare(self) -> dict[str, Table]:
        """`findings`, a row per problem."""
        return {"findings": Table(BankFinding._fields, self.problems)}

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of queries and items."""
        return {"queries": self.queries, "items": self.items, "retired": self.retired}


def check_files(paths: Sequence[Path]) -> Checked:
    """Check these files together, as one bank."""
    for path in paths:
        form = sniffed(path)
        if form not in (None, "bank"):
            raise TrecexamError(f"this is not a test bank but {form}; see `trecexam formats`", path=path)
    return _checked([(str(path), path) for path in paths])


def check_track(folder: TrackFolder) -> Checked:
    """Check a track's bank, as `bank check`."""
    return _checked([(folder.shown(path), path) for path in folder.bank()], folder)


def _checked(files: Iterable[tuple[str, Path]], folder: TrackFolder | None = None) -> Checked:
    """Check a bank. Retired items are checked only for lines that cannot be read and for duplicate ids.

    Args:
        files: (displayed name, path) of all files of the bank.
        folder: of the track whose queries should have items and texts.
    """
    rows: list[tuple[str, BankLine]] = []
    facets = folder is not None and folder.config.track.facets
    for file, path in files:
        with open_bytes(path):
            # A file that cannot be opened is not a finding.
            rows += ((file, line) for line in lines_by_query(scan_bank(path), facets=facets))
    # The first text and line of a repeated query count.
    texts = {line.query_id: line.query_text for _, line in reversed(rows) if line.query_text.strip()}
    texts.update({} if folder is None else query_texts(folder))
    problems: list[BankFinding] = []
    first: dict[tuple[str, ...], BankFinding] = {}
    queries: dict[str, BankFinding] = {}
    items = [item for _, line in rows for item in line.items]
    live = [item for item in items if not item.retired]
    for file, line in rows:
        on_line = BankFinding(file, line.number, line.query_id, "", "", "")
        if line.error is not None:
            problems.append(on_line._replace(problem=line.error.reason))
        if line.query_id:
            queries.setdefault(line.query_id, on_line)
        for item in line.items:
            found = BankFinding(file, line.number, item.query_id, item.item_id, "", item.text)
            doubts = () if item.retired else _doubts(item, texts.get(item.query_id, ""))
            problems += (found._replace(problem=why) for why in (*doubts, *_repeats(first, item, found)))
    retired = {item.query_id for item in items} - {item.query_id for item in live}
    for query_id, on_line in queries.items():
        if query_id in retired:
            problems.append(on_line._replace(problem="all items of the query are retired"))
        if folder is not None and not texts.get(query_id, "").strip():
            problems.append(on_line._replace(problem="the track has no text of this query"))
    queries_path = None if folder is None else folder.queries()
    if folder is not None and queries_path is not None:
        ids = dict.fromkeys(query.query_id for query in converters.read(queries_path, "queries"))
        without = BankFinding(folder.shown(queries_path), None, "", "", "a query without any items", "")
        problems += (without._replace(query_id=query_id) for query_id in ids if query_id not in queries)
    n_items, n_retired = len(live), len(items) - len(live)
    retired_note = f" ({n_retired:,} more retired)" if n_retired else ""
    what = plural(len(problems), "problem") if problems else "nothing to look at"
    note = f"{plural(n_items, 'item')}{retired_note} of {plural(len(queries), 'query')}: {what}"
    return Checked(tuple(problems), len(queries), n_items, n_retired, (note,))


def _doubts(item: Item, query_text: str) -> Iterator[str]:
    """Yield the problems of a single item."""
    if not words(item.text):
        yield "empty text"
    # Gold outputs may be long and may equal the query.
    elif item.kind in MAX_WORDS:
        remains = (what for what, pattern in _REMAINS.items() if re.search(pattern, item.text, re.I))
        yield from islice(remains, 1)
        n_words, most = len(item.text.split()), MAX_WORDS[item.kind]
        if n_words > most:
            yield f"{n_words} words, and {most} are the most a {item.kind} should have"
        if copies(item.text, query_text):
            yield "a copy of the query"


def _repeats(first: dict[tuple[str, ...], BankFinding], item: Item, found: BankFinding) -> Iterator[str]:
    """Yield how an item repeats an earlier one: its id, or its text within the query.

    Args:
        first: the first item of each id and text; receives this one.
    """

    def line(other: BankFinding) -> str:
        return f"line {other.line}" if other.file == found.file else f"{other.file}:{other.line}"

    if not item.text.strip():
        return
    before = first.setdefault((item.item_id,), found)
    is_same = (before.query_id, before.text) == (item.query_id, item.text)
    if before is not found:
        what = "the same item" if is_same else f"item id '{item.item_id}'"
        yield f"{what} occurs twice, first on {line(before)}"
    if item.retired or (before is not found and is_same):
        return
    alike = first.setdefault((item.query_id, item.kind, *folded(item.text)), found)
    if alike is not found:
        yield f"duplicate of '{alike.item_id}' on {line(alike)}"
