"""How trec_eval reads bytes, from the sources of 9.0 and 10.0.

The rules are those of get_trec_results.c and get_qrels.c (white space, fields, comments), of form_res_rels.c
(order, duplicates, labels), and of C's atof and atol.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from converters.lines import open_input, reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Path = str | os.PathLike[str]
Severity = Literal["fatal", "silent", "warning"]

#: The versions of trec_eval whose rules are known here; 9 means all 9.x.
VERSIONS = (9, 10)
BOM = b"\xef\xbb\xbf"
#: trec_eval reserves eight bytes for each label up to the highest; above this there is seldom the memory.
MOST_LABEL = 1_000_000_000
#: Replaces a rank that is not a number.
NO_RANK = -1

_LONG_MAX = 2**63 - 1
_NUMBER = re.compile(
    rb"[+-]?(?:(?P<hex>0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?)"
    rb"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|(?P<nan>nan(?:\([0-9a-z_]*\))?))",
    re.IGNORECASE,
)
_WHOLE = re.compile(rb"([+-]?)0*([0-9]+)")
#: A number with a comma, as 10,5 or 1.234,5: C's atof stops there.
DECIMAL_COMMA = re.compile(rb"[+-]?[0-9.]*,[0-9]")


@dataclass(frozen=True)
class Finding:
    """A finding about a file.

    Attributes:
        line: 1-based, or None where the whole file is meant.
        severity: "fatal": trec_eval stops; "silent": it continues with other values than the file's;
            "warning": it does as it says, but is that what was meant?
        versions: of trec_eval, to which this applies.
        kind: one word for all findings of this kind.
        count: how many there are; `line` and `reason` are of the first.
    """

    line: int | None
    severity: Severity
    versions: tuple[int, ...]
    kind: str
    reason: str
    count: int = 1


@dataclass(frozen=True)
class Change:
    """A change in a mended file; `line` is the line of the original."""

    line: int | None
    kind: str
    reason: str


@dataclass
class PreflightFindings:
    """Collects findings: the first of each kind, and a count."""

    _first: dict[tuple[str, Severity, tuple[int, ...]], Finding] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        line: int | None,
        severity: Severity,
        reason: str,
        versions: tuple[int, ...] = VERSIONS,
        n_lines: int = 1,
    ) -> None:
        """Add a finding that holds for so many lines."""
        finding = Finding(line, severity, versions, kind, reason)
        first = self._first.get((kind, severity, versions))
        n_before = first.count if first else 0
        if first is None or (line or 0) < (first.line or 0):
            first = finding
        self._first[kind, severity, versions] = replace(first, count=n_before + n_lines)

    def count(self, kind: str, severity: Severity) -> bool:
        """Count a finding whose kind was found before; False where it has to be added."""
        first = self._first.get((kind, severity, VERSIONS))
        if first is not None:
            self._first[kind, severity, VERSIONS] = replace(first, count=first.count + 1)
        return first is not None

    def stopped(self) -> set[int]:
        """The versions with a fatal finding."""
        return {version for _, severity, of in self._first if severity == "fatal" for version in of}

    def all(self) -> tuple[Finding, ...]:
        """All findings by line, those on the whole file first."""
        counted = (replace(each, reason=with_count(each.reason, each.count)) for each in self._first.values())
        return tuple(sorted(counted, key=lambda finding: finding.line or 0))


def with_count(reason: str, count: int) -> str:
    """Return the reason of the first of so many findings or changes of a kind."""
    return f"{reason} (and {count - 1:,} more of this kind)" if count > 1 else reason


def takes(findings: Iterable[Finding], version: int) -> bool:
    """Whether this version of trec_eval accepts the file."""
    return not any(finding.severity == "fatal" and version in finding.versions for finding in findings)


def atof(text: bytes) -> tuple[float, bool]:
    """C's atof: (the number that the text begins with, or 0; whether that is all of the text)."""
    number = _NUMBER.match(text)
    if number is None:
        return 0.0, False
    whole = number.end() == len(text)
    if number["nan"]:
        return float("nan"), whole
    if not number["hex"]:
        return float(number[0]), whole
    try:
        return float.fromhex(number[0].decode()), whole
    except OverflowError:
        return float("-inf" if text[:1] == b"-" else "inf"), whole


def atol(text: bytes) -> tuple[int, bool]:
    """C's atol with 64 bits: (the whole number that the text begins with, or 0; whether that is all)."""
    number = _WHOLE.match(text)
    if number is None:
        return 0, False
    # Python refuses to read thousands of digits; C stops at the highest long.
    value = min(int(number[2][:20]), _LONG_MAX)
    return -value if number[1] == b"-" else value, number.end() == len(text)


def compared(scores: NDArray[np.float64], version: int) -> NDArray[np.float64]:
    """The scores as this version compares them: 9 uses 32-bit floats, 10 doubles."""
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        return scores.astype(np.float32).astype(np.float64) if version == 9 else scores


def order(scores: NDArray[np.float64], docs: list[bytes], version: int) -> list[int]:
    """Indices in trec_eval's order: score descending, then docno descending (strcmp).

    Where trec_eval's own order is not defined: NaN comes last, the same docno by its line.
    """
    values = compared(scores, version).tolist()
    entry_order = sorted(range(len(docs)), key=docs.__getitem__, reverse=True)
    entry_order.sort(
        key=lambda entry_index: (values[entry_index] != values[entry_index], -values[entry_index])
    )
    return entry_order


@dataclass
class RunTopic:
    """A topic's entries in the order of the file, packed: docnos with a space after each."""

    docs: bytearray = field(default_factory=bytearray)
    scores: array[float] = field(default_factory=lambda: array("d"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    ranks: array[int] = field(default_factory=lambda: array("q"))

    def add(self, doc: bytes, score: float, rank: bytes, line: int) -> None:
        self.extend([doc], [score], [rank], [line])

    def extend(
        self,
        docs: Sequence[bytes],
        scores: Iterable[float],
        ranks: Iterable[bytes],
        lines: Iterable[int],
    ) -> None:
        """Add entries that follow each other in the file."""
        self.docs += b" ".join(docs) + b" "
        self.scores.extend(scores)
        self.ranks.extend(int(rank) if rank.isdigit() and len(rank) <= 18 else NO_RANK for rank in ranks)
        self.lines.extend(lines)

    def doc_ids(self) -> list[bytes]:
        return bytes(self.docs).split()


@dataclass
class QrelsTopic:
    """A topic's judgments in the order of the file, packed as in `RunTopic`."""

    docs: bytearray = field(default_factory=bytearray)
    iterations: bytearray = field(default_factory=bytearray)
    labels: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))

    def doc_ids(self) -> list[bytes]:
        return bytes(self.docs).split()

    def add(self, doc: bytes, iteration: bytes, label: int, line: int) -> None:
        self.extend([doc], [iteration], [label], [line])

    def extend(
        self,
        docs: Sequence[bytes],
        iterations: Iterable[bytes],
        labels: Iterable[int],
        lines: Iterable[int],
    ) -> None:
        """Add judgments that follow each other in the file."""
        self.docs += b" ".join(docs) + b" "
        self.iterations += b" ".join(iterations) + b" "
        self.labels.extend(labels)
        self.lines.extend(lines)


def repeated(docs: list[bytes]) -> list[tuple[int, int]]:
    """(index, index of its first occurrence) of every repeated docno."""
    if len(set(docs)) == len(docs):
        return []
    first: dict[bytes, int] = {}
    return [(index, first[doc]) for index, doc in enumerate(docs) if first.setdefault(doc, index) != index]


def has_mark(path: Path) -> bool:
    """Whether a plain file begins with a UTF-8 byte-order mark.

    Raises:
        ConversionError: it cannot be read.
    """
    with reading(path, None), open_input(path) as file:
        return file.read(3) == BOM


def shown(value: bytes) -> str:
    """An id or a number, escaped and shortened for a message."""
    text = value[:40].decode(errors="backslashreplace").encode("unicode_escape").decode()
    return f"'{text}'" if len(value) <= 40 else f"'{text}...'"
