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
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from converters.errors import ConversionError
from converters.fields import counted
from converters.lines import columns_of, iter_lines
from trecexam.extensions.check.trec_eval_rules import (
    DECIMAL_COMMA,
    MOST_LABEL,
    Finding,
    Findings,
    Path,
    Topic,
    atof,
    atol,
    compared,
    has_mark,
    order,
    repeated,
    shown,
)

#: The run id for a run without one.
NO_RUN_ID = b"run"
# A file that began with a topic like these would be taken for gzip or UTF-16.
_MAGIC = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")
_MARKS = re.compile(rb"(?:\s|\xef\xbb\xbf)*\xef\xbb\xbf")


def to_points(path: Path) -> str:
    """Return the command that writes a run's scores with points."""
    return f"to write points: awk '{{ sub(/,/, \".\", $5) }} 1' {shlex.quote(str(path))} > points.run"


def fix_run(path: Path, file: BinaryIO, version: int = 10) -> tuple[Finding, ...]:
    """Write the run to `file`, topics as they come, entries in trec_eval's order, ranks from 1.

    Args:
        version: whose scores are kept, where the two versions order the original differently.

    Returns:
        What was changed in content; spacing, ranks and the way numbers are written are not listed.

    Raises:
        ConversionError: it cannot be read, nothing is left, or a score has a decimal comma, whose value
            trec_eval cuts off.
    """
    changes = Findings(versions=())
    by_topic = defaultdict[bytes, Topic](partial(Topic, "d"))
    run_id: bytes | None = None
    last_line, n_other_run_ids = None, 0
    for number, columns in _rows(path, changes):
        score, whole = atof(columns[4]) if len(columns) > 4 else (0.0, False)
        if len(columns) > 4 and DECIMAL_COMMA.match(columns[4]):
            raise ConversionError(
                path,
                number,
                f"nothing was written: the score {shown(columns[4])} has a decimal comma, and trec_eval "
                f"would read {score:.10g}; {to_points(path)}",
            )
        if len(columns) < 5 or (len(columns) == 5 and not whole):
            changes.add("line left out", number, "fixed", f"left out: has {counted(columns)}")
            continue
        if len(columns) == 5:
            changes.add("run id added", number, "fixed", "run id added")
        else:
            if len(columns) > 6:
                changes.add("columns left out", number, "fixed", "columns after the sixth left out")
            if run_id is not None and columns[5] != run_id:
                n_other_run_ids, last_line = n_other_run_ids + 1, number
            run_id = columns[5]
        if not whole:
            changes.add("score", number, "fixed", f"score {shown(columns[4])} written as {score:.10g}")
        by_topic[columns[0]].add(columns[2], columns[3], score, number)
    if not by_topic:
        raise ConversionError(path, None, "nothing was written: no line can be mended")
    run_id = run_id or NO_RUN_ID
    if n_other_run_ids:
        changes.add(
            "run id", last_line, "fixed", f"run id of all lines set to that of the last, {shown(run_id)}"
        )
    for topic_id, topic in by_topic.items():
        for rank, (doc, text) in enumerate(_mended(topic_id, topic, version, changes), 1):
            file.write(b"%s Q0 %s %d %s %s\n" % (topic_id, doc, rank, text.encode(), run_id))
    return changes.all()


def fix_qrels(path: Path, file: BinaryIO) -> tuple[Finding, ...]:
    """Write the qrels to `file`, topics as they come, judgments in their order; as `fix_run`.

    Raises:
        ConversionError: it cannot be read, nothing is left, or a label is too high for trec_eval.
    """
    changes = Findings(versions=())
    by_topic = defaultdict[bytes, Topic](partial(Topic, "q"))
    for number, columns in _rows(path, changes):
        label, whole = atol(columns[3]) if len(columns) > 3 else (0, False)
        if len(columns) < 4 or (len(columns) > 4 and not whole):
            changes.add("line left out", number, "fixed", f"left out: has {counted(columns)}")
            continue
        if len(columns) > 4:
            changes.add("columns left out", number, "fixed", "columns after the fourth left out")
        if label > MOST_LABEL:
            raise ConversionError(
                path, number, f"the label {label} is too high for trec_eval: give a lower one"
            )
        if not whole:
            changes.add("label", number, "fixed", f"label {shown(columns[3])} written as {label}")
        by_topic[columns[0]].add(columns[2], columns[1], label, number)
    left = False
    for topic_id, topic in by_topic.items():
        if max(topic.values) < 0:
            reason = f"topic {shown(topic_id)} left out: it has no label of 0 or more"
            changes.add("topic left out", topic.lines[0], "fixed", reason)
            continue
        left = True
        docs, iterations = topic.doc_ids(), topic.others()
        for row_index in _kept(topic_id, topic, changes):
            row = topic_id, iterations[row_index], docs[row_index], topic.values[row_index]
            file.write(b"%s %s %s %d\n" % row)
    if not left:
        raise ConversionError(path, None, "nothing was written: no judgment can be mended")
    return changes.all()


def _rows(path: Path, changes: Findings) -> Iterator[tuple[int, list[bytes]]]:
    marked = has_mark(path)
    for number, line in iter_lines(path):
        marks = _MARKS.match(line)
        if marks or (marked and number == 1):
            changes.add("byte-order mark", number, "fixed", "byte-order mark removed")
        columns = columns_of(path, number, line[marks.end() :] if marks else line)
        if not columns:
            changes.add("blank line", number, "fixed", "blank line left out")
        elif columns[0].startswith(b"#"):
            changes.add("comment", number, "fixed", "comment left out")
        elif columns[0].startswith(_MAGIC):
            raise ConversionError(path, number, f"{shown(columns[0])} is not a topic: is this a text file?")
        else:
            yield number, columns


def _mended(topic_id: bytes, topic: Topic, version: int, changes: Findings) -> Iterator[tuple[bytes, str]]:
    """Yield (docno, score) in trec_eval's order, without duplicates, no score like another."""
    docs = topic.doc_ids()
    scores = np.array(topic.values)
    entry_order = order(scores, docs, version)
    again = repeated([docs[index] for index in entry_order])
    dropped = {index for index, _ in again}
    for index, first in again:
        reason = (
            f"docno {shown(docs[entry_order[index]])} of topic {shown(topic_id)} left out: "
            f"line {topic.lines[entry_order[first]]} has it with the same or a higher score"
        )
        changes.add("duplicate", topic.lines[entry_order[index]], "fixed", reason)
    entry_order = [index for at, index in enumerate(entry_order) if at not in dropped]
    texts, lowered = _distinct(scores[entry_order])
    if lowered is None:
        reason = (
            f"topic {shown(topic_id)}: infinite scores, or no smaller numbers left: all scores rewritten as "
            f"n..1"
        )
        changes.add("scores", topic.lines[0], "fixed", reason)
    elif lowered:
        reason = (
            f"topic {shown(topic_id)}: {lowered:,} of {len(entry_order):,} scores lowered "
            "to make ties distinct"
        )
        changes.add("ties", topic.lines[0], "fixed", reason)
    for index, text in zip(entry_order, texts, strict=True):
        yield docs[index], text


def _distinct(scores: NDArray[np.float64]) -> tuple[list[str], int | None]:
    """Return descending scores as texts, distinct as 32-bit floats; and how many changed (None: all)."""
    single = compared(scores, 9).astype(np.float32)
    texts, lowered = [repr(score) for score in scores.tolist()], 0
    if np.isfinite(single).all():
        if (single[1:] < single[:-1]).all():
            return texts, 0
        last = single[0]
        for index in range(1, len(single)):
            if single[index] < last:
                last = single[index]
                continue
            with np.errstate(all="ignore"):
                last = np.nextafter(last, np.float32("-inf"))
            # The shortest text that is this 32-bit float, in the way that Python writes it.
            texts[index], lowered = repr(float(str(last))), lowered + 1
        if np.isfinite(last):
            return texts, lowered
    return [repr(float(len(scores) - index)) for index in range(len(scores))], None


def _kept(topic_id: bytes, topic: Topic, changes: Findings) -> list[int]:
    """Return a topic's judgments by index: for each docno the one with the highest label."""
    docs = topic.doc_ids()
    best: dict[bytes, int] = {}
    for row_index, doc in enumerate(docs):
        if topic.values[row_index] > topic.values[best.setdefault(doc, row_index)]:
            best[doc] = row_index
    best_rows = sorted(best.values())
    for row_index in sorted(set(range(len(docs))) - set(best_rows)):
        other = best[docs[row_index]]
        reason = (
            f"docno {shown(docs[row_index])} of topic {shown(topic_id)}, "
            f"label {topic.values[row_index]}, left out: "
            f"line {topic.lines[other]} has it with label {topic.values[other]}"
        )
        changes.add("duplicate", topic.lines[row_index], "fixed", reason)
    return best_rows
