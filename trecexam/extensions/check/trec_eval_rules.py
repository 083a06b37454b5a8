"""Rules of how trec_eval reads bytes, from the sources of 9.0 and 10.0.

The rules are those of get_trec_results.c and get_qrels.c (white space, fields, comments), of form_res_rels.c
(order, duplicates, labels), and of C's atof and atol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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

#: Severity -> kind of finding -> reason. fatal: trec_eval stops; silent: it continues with other values than
#: the file's; warning: it reads the file's values, which may be a mistake.
_REASONS: dict[Severity, dict[str, str]] = {
    "fatal": {
        "not in columns": "is JSON or a table, and trec_eval reads columns alone: "
        "trecexam convert {} OUT --to {}",
        "gzip": "is {}; trec_eval reads only plain text: unpack it first",
        "unreadable": "{}; trec_eval may continue without a message",
        "empty": "the file has no lines to evaluate",
        "comment": "a comment: trec_eval 9 does not support comments; reading stops at this line",
        "second comment": "a comment: neither version of trec_eval supports two comments in a row; "
        "reading stops at this line",
        "last comment": "a comment at the end: trec_eval 10 reads on after it",
        "too few columns": "has {}; trec_eval wants six: topic Q0 docno rank score run_id",
        "malformed": "{}",
        "label too high": "the label {} is too high: "
        "trec_eval reserves 8 bytes for each label up to it, and stops",
        "only negative labels": "the highest label of topic {} is {:.0f}: trec_eval stops there, "
        "or continues with uninitialized memory",
        "duplicate": "docno {} occurs twice for topic {} (first on line {})",
        "no common topic": "the qrels have none of its topics",
    },
    "silent": {
        "comment as entry": "a comment with as many words as columns: "
        "trec_eval 9 does not support comments; it is read as an entry of topic '#...'",
        "second comment as entry": "a comment with as many words as columns: neither version of trec_eval "
        "supports two comments in a row; it is read as an entry of topic '#...'",
        "carriage return": "a carriage return inside the line is white space; "
        r"convert old Mac line ends: tr '\r' '\n'",
        "byte-order mark": "a byte-order mark: trec_eval reads it as a part of the topic id, "
        "which no other file has",
        "extra columns": "has {} columns; trec_eval ignores what comes after the sixth",
        "score not a number": "the score {}",
        "decimal comma": "the score {} has a decimal comma: it is read as {:.10g}",
        "label no whole number": "the label {} is read as {}",
        "not judged": "the label -1 means pooled and not judged; "
        "trec_eval reads it so in bpref, infAP and with -J, else as not relevant",
        "negative label": "the label {} means judged, not relevant, which trec_eval reads as not judged in "
        "bpref, infAP and with -J: write 0 to have it read as not relevant everywhere",
        "ties past float precision": "topic {}: {} different from another only beyond float precision: "
        "a tie in trec_eval 9, which orders by docno there; not in 10",
    },
    "warning": {
        # github.com/usnistgov/trec_eval/issues/46; support for comments was removed because of it.
        "number sign": "'#' inside: trec_eval 10 reserves no memory for such lines, and may crash",
        "mixed run ids": "run id {}, before it {}; trec_eval takes the last line's",
        "ties": "topic {}: {} equal to another; trec_eval orders by docno, descending",
        "scores against ranks": "topic {}: {} not in the order of the ranks; trec_eval ignores the ranks",
        "duplicate without judgments": "docno {} occurs twice for topic {} (first on line {}); "
        "the qrels lack the topic, so trec_eval does not evaluate it",
        "unknown topic": "topic {} is not in the track",
        "unknown docno": "docno {} is not in the track",
        "missing topic": "judged topic {} is missing: trec_eval 10 stops unless -c is given",
    },
}
_SEVERITIES = {kind: severity for severity, kinds in _REASONS.items() for kind in kinds}
#: Kinds that affect one version alone.
_ONE_VERSION = {
    **dict.fromkeys(("comment", "comment as entry", "ties past float precision"), (9,)),
    **dict.fromkeys(("last comment", "number sign", "missing topic"), (10,)),
}


@dataclass(frozen=True)
class Finding:
    """The findings of a kind in a file.

    Attributes:
        kind, severity: as in `_REASONS`.
        versions: affected versions of trec_eval.
        line: line number of the first place, from 1, or None for the whole file.
        reason: the reason at the first place.
        count: number of places.
    """

    kind: str
    severity: Severity
    versions: tuple[int, ...]
    line: int | None
    reason: str
    count: int

    @property
    def text(self) -> str:
        """The reason, and the number of further places."""
        return self.reason + (f" (and {self.count - 1:,} more of this kind)" if self.count > 1 else "")


class Findings(dict[str, Finding]):
    """Findings of a file by kind."""

    def add(self, kind: str, line: int | None, *values: object, versions: tuple[int, ...] = ()) -> None:
        """Add a place; `values` go into the reason, ids and numbers of the file as bytes."""
        first, severity = self.get(kind), _SEVERITIES[kind]
        count = 1 if first is None else first.count + 1
        if first is not None and (first.line or 0) <= (line or 0):
            self[kind] = replace(first, count=count)
            return
        shown_values = (shown(value) if isinstance(value, bytes) else value for value in values)
        reason = _REASONS[severity][kind].format(*shown_values)
        self[kind] = Finding(
            kind, severity, versions or _ONE_VERSION.get(kind, VERSIONS), line, reason, count
        )


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
    by_docno = sorted(range(len(docs)), key=docs.__getitem__, reverse=True)
    return sorted(by_docno, key=lambda index: (values[index] != values[index], -values[index]))


def shown(value: bytes) -> str:
    """Escape and shorten an id or a number for a message."""
    text = value[:40].decode(errors="backslashreplace").encode("unicode_escape").decode()
    return f"'{text}'" if len(value) <= 40 else f"'{text}...'"
