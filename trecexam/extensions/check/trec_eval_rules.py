"""Rules of how trec_eval reads bytes, from the sources of 9.0 and 10.0.

The rules are those of get_trec_results.c and get_qrels.c (white space, fields, comments), of form_res_rels.c
(order, duplicates, labels), and of C's atof and atol.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from converters.lines import open_input, reading

Path = str | os.PathLike[str]
Severity = Literal["fatal", "silent", "warning"]

#: Supported versions of trec_eval; 9 means all 9.x.
VERSIONS = (9, 10)
BOM = b"\xef\xbb\xbf"
#: Maximum label: trec_eval reserves eight bytes for each label up to the highest.
MOST_LABEL = 1_000_000_000

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
        line: line number from 1, or None for the whole file.
        severity: "fatal": trec_eval stops; "silent": it continues with other values than the file's;
            "warning": it reads the file's values, which may be a mistake.
        versions: affected versions of trec_eval.
        kind: one word for all findings of this kind.
        count: number of occurrences; `line` and `reason` are those of the first.
    """

    line: int | None
    severity: Severity
    versions: tuple[int, ...]
    kind: str
    reason: str
    count: int = 1

    @property
    def text(self) -> str:
        """The reason, and the number of further occurrences."""
        return self.reason + (f" (and {self.count - 1:,} more of this kind)" if self.count > 1 else "")


class Findings:
    """Collector of findings: the first of each kind, with a count."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, Severity, tuple[int, ...]], Finding] = {}

    def add(
        self,
        kind: str,
        line: int | None,
        severity: Severity,
        reason: str,
        versions: tuple[int, ...] = VERSIONS,
    ) -> None:
        """Add a finding for these versions of trec_eval."""
        new = Finding(line, severity, versions, kind, reason)
        first = self._first.setdefault((kind, severity, versions), replace(new, count=0))
        earliest = new if (line or 0) < (first.line or 0) else first
        self._first[kind, severity, versions] = replace(earliest, count=first.count + 1)

    def stopped(self) -> set[int]:
        """Return the versions with a fatal finding."""
        return {version for _, severity, of in self._first if severity == "fatal" for version in of}

    def all(self) -> tuple[Finding, ...]:
        """Return all findings by line, whole-file findings first."""
        return tuple(sorted(self._first.values(), key=lambda finding: finding.line or 0))


def takes(findings: Iterable[Finding], version: int) -> bool:
    """Return True if this version of trec_eval accepts the file."""
    return not any(finding.severity == "fatal" and version in finding.versions for finding in findings)


def atof(text: bytes) -> tuple[float, bool]:
    """Return the number at the start of a text, like C's atof, else 0; and True if it is the whole text."""
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
    """Return the integer at a text's start, like C's 64-bit atol, or 0; True if it is the whole text."""
    number = _WHOLE.match(text)
    if number is None:
        return 0, False
    # Python refuses thousands of digits; C stops at the highest long.
    value = min(int(number[2][:20]), _LONG_MAX)
    return -value if number[1] == b"-" else value, number.end() == len(text)


def compared(scores: NDArray[np.float64], version: int) -> NDArray[np.float64]:
    """Return scores as this version compares them: 9 uses 32-bit floats, 10 doubles."""
    with np.errstate(over="ignore", under="ignore"):
        return scores.astype(np.float32).astype(np.float64) if version == 9 else scores


def order(scores: NDArray[np.float64], docs: list[bytes], version: int) -> list[int]:
    """Return indices in trec_eval's order: score descending, then docno descending (strcmp).

    Where trec_eval's order is undefined, NaN comes last, and equal docnos follow their lines.
    """
    values = compared(scores, version).tolist()
    entry_order = sorted(range(len(docs)), key=docs.__getitem__, reverse=True)
    entry_order.sort(
        key=lambda entry_index: (values[entry_index] != values[entry_index], -values[entry_index])
    )
    return entry_order


class Topic:
    """A topic's entries in the order of the file, packed.

    Attributes:
        values: scores of a run, labels of qrels.
        lines: numbers of lines.
    """

    def __init__(self, typecode: Literal["d", "q"]) -> None:
        """Create an empty topic; `typecode` is "d" for scores, "q" for labels."""
        self._docs = bytearray()
        self._others = bytearray()
        self.values: array[Any] = array(typecode)
        self.lines = array("q")

    def add(self, doc: bytes, other: bytes, value: float, line: int) -> None:
        """Add an entry; `other` is the rank, or the second column of qrels."""
        self._docs += doc + b" "
        self._others += other + b" "
        self.values.append(value)
        self.lines.append(line)

    def extend(self, other: Topic) -> None:
        """Add the entries of another topic."""
        self._docs += other._docs
        self._others += other._others
        self.values += other.values
        self.lines += other.lines

    def doc_ids(self) -> list[bytes]:
        return bytes(self._docs).split()

    def others(self) -> list[bytes]:
        """Return the ranks, or the second column of qrels."""
        return bytes(self._others).split()


def repeated(docs: list[bytes]) -> list[tuple[int, int]]:
    """Return (index, index of its first occurrence) of every repeated docno."""
    if len(set(docs)) == len(docs):
        return []
    first: dict[bytes, int] = {}
    return [(index, first[doc]) for index, doc in enumerate(docs) if first.setdefault(doc, index) != index]


def has_mark(path: Path) -> bool:
    """Return True if an uncompressed file begins with a UTF-8 byte-order mark.

    Raises:
        ConversionError: it cannot be read.
    """
    with reading(path, None), open_input(path) as file:
        return file.read(3) == BOM


def shown(value: bytes) -> str:
    """Escape and shorten an id or a number for a message."""
    text = value[:40].decode(errors="backslashreplace").encode("unicode_escape").decode()
    return f"'{text}'" if len(value) <= 40 else f"'{text}...'"
