"""Checks of a bank's items: duplicates, copies of the query, remains of JSON ...

No check compares meanings. Items that differ in a word or two are left alone: in the nuggets of TREC RAG 2025
nearly all items with similar letters say different things ("linked to cancer", "linked to asthma").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.bank_lines import BankLine, scan_bank
from converters.lines import open_bytes
from converters.records import Item
from trecexam.bank.model import copies, folded, lines_by_query
from trecexam.errors import TrecexamError
from trecexam.files.stamps import sniffed
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts
from trecexam.results.result import Result
from trecexam.results.table import Table
from trecexam.results.text import plural

#: Maximum words of an item. The longest of dl19's 210 questions has 21, of TREC RAG 2025's nuggets 19.
MAX_WORDS = {"question": 30, "nugget": 20}
#: Description and pattern of remains of an answer; the first match counts. Examples of the CAR Y3 bank: `['1.
#: How`, `[2] What`, `- Why`.
_REMAINS = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        ("contains no words", r"\A[\W_]*\Z"),
        ("several lines in one item", r"\S\s*?[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*\S"),
        (
            "a number before it",
            r"\A[\s\[(\"'*]*(?:\[\d{1,3}\]|\(?\d{1,3}[.)]|(?:Q|question|nugget|fact) ?\d{1,3} ?[.):])\s",
        ),
        ("a bullet before it", r"\A\s*[-*•\u2013\u2014·]\s"),
        ("the beginning of a list", r"\A\s*\w+\s*=\s*[\[{]"),
        ("a label before it", r"\A\s*(?:question|nugget|fact)s?\s*:\s*\S"),
        (
            "a reply of the model, not an item",
            r"\A\s*(?:(?:sure|certainly|of course)\b\s*[,!.:]|here (?:are|is) .*:\s*\Z)|\bas an ai\b",
        ),
        ("Markdown in it", r"```|\*\*\S.*\*\*"),
        (
            "a placeholder of the prompt in it",
            r"\{(?:query|query_text|query_title|query_subtopic|subtopic|title|text|passage|context)\}",
        ),
        (
            "brackets, quotes or commas of a list around it",
            r"\A\s*[\[{]\s*[\"'{\[]|[\"']\s*[,\]}]+\s*\Z"
            r"|\A\s*(?:\[[^\]]*|\{[^}]*)\Z|\A(?:[^\[]*\]|[^{]*\})\s*\Z",
        ),
        # A leading apostrophe may not be a quote: 'til, 's Gravenhage.
        ("quotes around it", r"\A\s*(?:\"[^\"]*\"?|“[^”]*”?|`[^`]*`?|'[^']*')\s*\Z"),
        ("ends with '{}'", r"([,:;=])\s*\Z"),
    )
)


#: File, line number, item.
_Found = tuple[str, int | None, Item]


class BankFinding(NamedTuple):
    """A problem in a bank. `line` is None for the whole file; `query_id`, `item_id` and `text` of the item
    are "" if none applies.
    """

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
    return check_lines(_lines([(str(path), path) for path in paths]))


def check_track(folder: TrackFolder) -> Checked:
    """Check a track's bank, as `bank check`."""
    queries = folder.queries()
    expected = []
    if queries is not None:
        expected = [query.query_id for query in converters.read(queries, "queries")]
    files = [(folder.shown(path), path) for path in folder.bank()]
    lines = _lines(files, facets=folder.config.track.facets)
    display_name = "" if queries is None else folder.shown(queries)
    return check_lines(lines, query_texts(folder), dict.fromkeys(expected, display_name))


def _lines(files: Sequence[tuple[str, Path]], *, facets: bool = False) -> Iterator[tuple[str, BankLine]]:
    for display_name, path in files:
        with open_bytes(path):
            # A dataset that is missing or inaccessible is not a finding.
            pass
        yield from ((display_name, line) for line in lines_by_query(scan_bank(path), facets=facets))


def check_lines(
    lines: Iterable[tuple[str, BankLine]],
    query_texts: Mapping[str, str] | None = None,
    expected: Mapping[str, str] | None = None,
) -> Checked:
    """Check a bank. Retired items are checked only for lines that cannot be read and for duplicate ids.

    Args:
        lines: (file, line) of all files of the bank.
        query_texts: query_id -> text, beside those that the bank has itself. None where nothing is known of
            the track: then it is no problem that the bank lacks some.
        expected: query_id -> file, of the queries that should have items.
    """
    rows = list(lines)
    # The first text and line of a repeated query count.
    texts = {line.query_id: line.query_text for _, line in reversed(rows) if line.query_text.strip()}
    texts.update(query_texts or {})
    problems: list[BankFinding] = []
    first: dict[tuple[str, ...], _Found] = {}
    queries: dict[str, BankFinding] = {}
    live: dict[str, int] = {}
    n_retired = 0
    for file, line in rows:
        on_line = BankFinding(file, line.number, line.query_id, "", "", "")
        if line.error is not None:
            problems.append(on_line._replace(problem=line.error.reason))
        if line.query_id:
            queries.setdefault(line.query_id, on_line)
        for item in line.items:
            n_retired += item.retired
            live[item.query_id] = live.get(item.query_id, 0) + (not item.retired)
            doubts = () if item.retired else _doubts(item, texts.get(item.query_id))
            problems += (
                BankFinding(file, line.number, item.query_id, item.item_id, problem, item.text)
                for problem in (*doubts, *_repeats(first, (file, line.number, item)))
            )
    for query_id, on_line in queries.items():
        if not live.get(query_id, 1):
            problems.append(on_line._replace(problem="all items of the query are retired"))
        if query_texts is not None and not texts.get(query_id, "").strip():
            problems.append(on_line._replace(problem="the track has no text of this query"))
    problems += (
        BankFinding(file, None, query_id, "", "a query without any items", "")
        for query_id, file in (expected or {}).items()
        if query_id not in queries
    )
    n_items = sum(live.values())
    retired_note = f" ({n_retired:,} more retired)" if n_retired else ""
    what = plural(len(problems), "problem") if problems else "nothing to look at"
    note = f"{plural(n_items, 'item')}{retired_note} of {plural(len(queries), 'query')}: {what}"
    return Checked(tuple(problems), len(queries), n_items, n_retired, (note,))


def _doubts(item: Item, query_text: str | None) -> Iterator[str]:
    """Problems of a single item."""
    if not item.text.strip():
        yield "empty text"
        return
    if item.kind not in MAX_WORDS:
        # Gold outputs may be long and may equal the query.
        return
    junk = junk_in(item.text)
    if junk is not None:
        yield junk
    words, most = len(item.text.split()), MAX_WORDS[item.kind]
    if words > most:
        yield f"{words} words, and {most} are the most a {item.kind} should have"
    if query_text and copies(item.text, query_text):
        yield "a copy of the query"


def _repeats(first: dict[tuple[str, ...], _Found], entry: _Found) -> Iterator[str]:
    """Yield how an item repeats an earlier one: its id, or its text within the query.

    Args:
        first: the first item of each id and text; receives this one.
    """
    file, _, item = entry

    def place(other: _Found) -> str:
        return f"line {other[1]}" if other[0] == file else f"{other[0]}:{other[1]}"

    if not item.text.strip():
        return
    before = first.setdefault(("id", item.item_id), entry)
    if before is not entry:
        same = (before[2].query_id, before[2].text) == (item.query_id, item.text)
        what = "the same item" if same else f"item id '{item.item_id}'"
        yield f"{what} occurs twice, first on {place(before)}"
        if same:
            return
    if item.retired:
        return
    exact = first.setdefault(("exact", item.query_id, item.kind, item.text), entry)
    near = first.setdefault(("alike", item.query_id, item.kind, *folded(item.text)), entry)
    if near is not entry:
        end = ", but for case, punctuation or blanks" if exact is entry else ""
        other = near if exact is entry else exact
        yield f"duplicate of '{other[2].item_id}' on {place(other)}{end}"


def junk_in(text: str) -> str | None:
    """Describe what remains of the answer in an item's text; None if nothing does."""
    matches = ((what, pattern.search(text)) for what, pattern in _REMAINS)
    return next((what.format(*match.groups()) for what, match in matches if match), None)
