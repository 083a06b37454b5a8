"""Repair of runs and qrels, so that trec_eval 9 and 10 accept them and compute the same scores.

Ambiguities of the original are resolved as follows:

- Comments, blank lines, unreadable lines and byte-order marks are removed.
- A run line without a run id gets the file's; of several run ids, the last is kept, as in trec_eval.
- For a repeated docno, the best score is kept, in qrels the highest label.
- Tied scores are lowered by the least step of a 32-bit float, in trec_eval's own order. A topic with infinite
  scores is scored n..1. NaN comes last.
- A topic without a label of 0 or more is left out of qrels: the evaluation would stop there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from converters.errors import ConversionError
from trecexam.extensions.check.preflight import Checked, columns_of
from trecexam.extensions.check.trec_eval_rules import compared, order, shown

#: Kinds of findings with no unambiguous repair.
_UNCLEAR = ("not in columns", "unreadable", "carriage return", "decimal comma", "label too high")
#: Kinds of findings that a mended file has, too.
_STAYING = (
    *("number sign", "not judged", "negative label"),
    *("unknown topic", "unknown docno", "missing topic", "no common topic"),
)
# A file that begins with such a topic would look like gzip or UTF-16.
_MAGIC = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")
_MARKS = re.compile(rb"(?:\xef\xbb\xbf)+")


def to_points(path: Path) -> str:
    """Return the command that rewrites a run's scores with decimal points."""
    return f"to write points: awk '{{ sub(/,/, \".\", $5) }} 1' {shlex.quote(str(path))} > points.run"


def mended(checked: Checked, version: int = 10) -> bytes:
    """Return a repaired file: topics in file order, a run's entries in trec_eval's order, ranks from 1.

    Args:
        version: the version of trec_eval whose order of a run is kept.

    Raises:
        ConversionError: an unreadable file, no usable line, or ambiguous content such as decimal commas.
    """
    path = checked.path
    for finding in checked.findings:
        if finding.kind in _UNCLEAR:
            remedy = f"; {to_points(path)}" if finding.kind == "decimal comma" else ""
            raise ConversionError(path, finding.line, f"nothing was written: {finding.reason}{remedy}")
    rows: list[bytes] = []
    for topic_id, entries in _without_marks(path, checked.topics).items():
        docs, iterations, values, _ = columns_of(entries)
        if checked.kind == "run":
            ranking = _first_of_each(docs, order(values, docs, version))
            scores, run_id = _distinct(values[ranking]), checked.run_id or b"run"
            rows += [
                b"%s Q0 %s %d %s %s\n" % (topic_id, docs[index], rank, scores[rank - 1].encode(), run_id)
                for rank, index in enumerate(ranking, 1)
            ]
        elif values.max() >= 0:
            best_first = np.argsort(-values, kind="stable").tolist()
            rows += [
                b"%s %s %s %d\n" % (topic_id, iterations[index], docs[index], values[index])
                for index in sorted(_first_of_each(docs, best_first))
            ]
    if not rows:
        raise ConversionError(path, None, "nothing was written: no line can be mended")
    return b"".join(rows)


def changes(checked: Checked) -> str:
    """Return in words what mending changes: the kinds of findings, each with its number of places."""
    mended_findings = (finding for finding in checked.findings if finding.kind not in _STAYING)
    kinds = ", ".join(f"{finding.kind} ({finding.count:,})" for finding in mended_findings)
    return f"mended: {kinds or 'nothing'}"


def _without_marks(path: Path, topics: Mapping[bytes, bytearray]) -> Mapping[bytes, bytearray]:
    """Return the topics without byte-order marks and comments."""
    merged: dict[bytes, bytearray] = {}
    for topic_id, entries in topics.items():
        name = _MARKS.sub(b"", topic_id)
        if name.startswith(_MAGIC):
            reason = f"{shown(name)} is not a topic: is this a text file?"
            raise ConversionError(path, columns_of(entries)[-1][0], reason)
        if name and not name.startswith(b"#"):
            merged[name] = merged.get(name, bytearray()) + entries
    return merged


def _first_of_each(docs: list[bytes], entries: list[int]) -> list[int]:
    """Return the first of these entries for each docno."""
    first: dict[bytes, int] = {}
    return [index for index in entries if first.setdefault(docs[index], index) == index]


def _distinct(scores: NDArray[np.float64]) -> list[str]:
    """Return descending scores as texts that are distinct as 32-bit floats; n..1 if impossible."""
    single = compared(scores, 9).astype(np.float32)
    texts, is_finite = [repr(score) for score in scores.tolist()], np.isfinite(single).all()
    with np.errstate(all="ignore"):
        for index in range(1, len(single)):
            if single[index] >= single[index - 1]:
                single[index] = np.nextafter(single[index - 1], np.float32("-inf"))
                # The shortest text of this 32-bit float, in Python's format.
                texts[index] = repr(float(str(single[index])))
    if is_finite and np.isfinite(single[-1]):
        return texts
    return [repr(float(len(scores) - index)) for index in range(len(scores))]
