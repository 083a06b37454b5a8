"""Rewrites runs and qrels so that trec_eval 9 and 10 accept them and compute the same scores.

What the original leaves open is decided as follows:

- Comments, blank lines and lines that cannot be read are left out, a byte-order mark is removed.
- A run line without a run id gets the file's; of several run ids the last line's is kept, as trec_eval does.
- Of a docno that occurs twice, the entry with the best score is kept, in qrels the highest label.
- Tied scores are lowered by the least step of a 32-bit float, in trec_eval's own order. A topic where that
  cannot be done (infinite scores) is scored n..1. NaN comes last.
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

#: The run id for a run without one.
NO_RUN_ID = b"run"
#: Kinds of findings that leave open what the file says: it is not mended.
_UNCLEAR = ("not in columns", "unreadable", "carriage return", "decimal comma", "label too high")
# A file that began with a topic like these would be taken for gzip or UTF-16.
_MAGIC = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")
_MARKS = re.compile(rb"(?:\xef\xbb\xbf)+")


def to_points(path: Path) -> str:
    """Return the command that writes a run's scores with points."""
    return f"to write points: awk '{{ sub(/,/, \".\", $5) }} 1' {shlex.quote(str(path))} > points.run"


def mended(path: Path, kind: Kind, version: int = 10) -> bytes:
    """Return a file mended: topics as they come, a run's entries in trec_eval's order, ranks from 1.

    Args:
        version: whose order of a run is kept, where the two versions differ.

    Raises:
        ConversionError: it cannot be read; nothing is left; it is open what the file says, as with scores
            that have a decimal comma.
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
    """Return (docno, score) in trec_eval's order, without duplicates, no score like another."""
    docs = topic.doc_ids()
    scores = np.array(topic.values)
    entry_order = order(scores, docs, version)
    dropped = {index for index, _ in repeated([docs[index] for index in entry_order])}
    entry_order = [index for at, index in enumerate(entry_order) if at not in dropped]
    texts = _distinct(scores[entry_order])
    return [(docs[index], text) for index, text in zip(entry_order, texts, strict=True)]


def _distinct(scores: NDArray[np.float64]) -> list[str]:
    """Return descending scores as texts that are distinct as 32-bit floats; n..1 where none are."""
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
            # The shortest text that is this 32-bit float, in the way that Python writes it.
            texts[index] = repr(float(str(last)))
        if np.isfinite(last):
            return texts
    return [repr(float(len(scores) - index)) for index in range(len(scores))]
