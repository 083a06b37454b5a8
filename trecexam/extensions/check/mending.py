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
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from converters.errors import ConversionError
from trecexam.extensions.check.preflight import Kind, read_lines
from trecexam.extensions.check.trec_eval_rules import Topic, compared, order, repeated, shown

#: Default run id.
NO_RUN_ID = b"run"
#: Kinds of findings with no unambiguous repair.
_UNCLEAR = ("not in columns", "unreadable", "carriage return", "decimal comma", "label too high")
# A file that begins with such a topic would look like gzip or UTF-16.
_MAGIC = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")
_MARKS = re.compile(rb"(?:\xef\xbb\xbf)+")


def to_points(path: Path) -> str:
    """Return the command that rewrites a run's scores with decimal points."""
    return f"to write points: awk '{{ sub(/,/, \".\", $5) }} 1' {shlex.quote(str(path))} > points.run"


def mended(path: Path, kind: Kind, version: int = 10) -> bytes:
    """Return a repaired file: topics in file order, a run's entries in trec_eval's order, ranks from 1.

    Args:
        version: the version of trec_eval whose order of a run is kept.

    Raises:
        ConversionError: an unreadable file, no usable line, or ambiguous content such as decimal commas.
    """
    findings, by_topic, run_id = read_lines(path, kind)
    for each in findings.all():
        if each.kind in _UNCLEAR:
            remedy = f"; {to_points(path)}" if each.kind == "decimal comma" else ""
            raise ConversionError(path, each.line, f"nothing was written: {each.reason}{remedy}")
    rows: list[bytes] = []
    for topic_id, topic in _without_marks(path, by_topic).items():
        if kind == "run":
            rows += [
                b"%s Q0 %s %d %s %s\n" % (topic_id, doc, rank, score.encode(), run_id or NO_RUN_ID)
                for rank, (doc, score) in enumerate(_ranking(topic, version), 1)
            ]
        elif max(topic.values) >= 0:
            rows += [b"%s %s %s %d\n" % (topic_id, *judgment) for judgment in _judgments(topic)]
    if not rows:
        raise ConversionError(path, None, "nothing was written: no line can be mended")
    return b"".join(rows)


def _without_marks(path: Path, by_topic: Mapping[bytes, Topic]) -> Mapping[bytes, Topic]:
    """Return the topics without byte-order marks and comments."""
    merged: dict[bytes, Topic] = {}
    for topic_id, topic in by_topic.items():
        name = _MARKS.sub(b"", topic_id)
        if name.startswith(_MAGIC):
            reason = f"{shown(name)} is not a topic: is this a text file?"
            raise ConversionError(path, topic.lines[0], reason)
        if name in merged:
            merged[name].extend(topic)
        elif name and not name.startswith(b"#"):
            merged[name] = topic
    return merged


def _judgments(topic: Topic) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (second column, docno, label) of each docno's highest label."""
    docs, iterations = topic.doc_ids(), topic.others()
    best: dict[bytes, int] = {}
    for index, doc in enumerate(docs):
        if topic.values[index] > topic.values[best.setdefault(doc, index)]:
            best[doc] = index
    for index in sorted(best.values()):
        yield iterations[index], docs[index], topic.values[index]


def _ranking(topic: Topic, version: int) -> list[tuple[bytes, str]]:
    """Return (docno, score) in trec_eval's order, without duplicates and tied scores."""
    docs = topic.doc_ids()
    scores = np.array(topic.values)
    entry_order = order(scores, docs, version)
    dropped = {index for index, _ in repeated([docs[index] for index in entry_order])}
    entry_order = [index for at, index in enumerate(entry_order) if at not in dropped]
    texts = _distinct(scores[entry_order])
    return [(docs[index], text) for index, text in zip(entry_order, texts, strict=True)]


def _distinct(scores: NDArray[np.float64]) -> list[str]:
    """Return descending scores as texts that are distinct as 32-bit floats; n..1 if impossible."""
    single = compared(scores, 9).astype(np.float32)
    texts = [repr(score) for score in scores.tolist()]
    if np.isfinite(single).all():
        last = single[0]
        for index in range(1, len(single)):
            if single[index] < last:
                last = single[index]
                continue
            with np.errstate(all="ignore"):
                last = np.nextafter(last, np.float32("-inf"))
            # The shortest text of this 32-bit float, in Python's format.
            texts[index] = repr(float(str(last)))
        if np.isfinite(last):
            return texts
    return [repr(float(len(scores) - index)) for index in range(len(scores))]
