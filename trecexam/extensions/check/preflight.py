"""Check of whether trec_eval accepts a file, which lines stop it, and which values it misreads.

The file is read once, line by line; only packed docnos and numbers stay in memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from converters.errors import ConversionError
from converters.fields import counted
from converters.lines import head, iter_lines, packing
from converters.records import NOT_JUDGED
from converters.scored_rows import in_rows
from converters.unpacking import without_ending
from trecexam.errors import quoted
from trecexam.extensions.check.trec_eval_rules import (
    BOM,
    DECIMAL_COMMA,
    MOST_LABEL,
    VERSIONS,
    Finding,
    Findings,
    Topic,
    atof,
    atol,
    compared,
    has_mark,
    repeated,
    shown,
)
from trecexam.results.text import plural
from trecexam.scaffold import look_at

Kind = Literal["run", "qrels"]
#: A whole number written as a float.
_WHOLE = re.compile(rb"[+-]?[0-9]+\.0*")


class KnownIds(NamedTuple):
    """The ids to compare a file with; None if unknown.

    Attributes:
        topics: all topics.
        docs: all docnos, iterated once.
        judged: topics of the qrels for the evaluation of a run.
    """

    topics: Collection[str] | None = None
    docs: Iterable[str] | None = None
    judged: Collection[str] | None = None


class Lines(NamedTuple):
    """The lines of a run or of qrels.

    Attributes:
        findings: findings on single lines.
        by_topic: topic -> entries, including repairable lines that stop trec_eval.
        run_id: the last run id of a run.
    """

    findings: Findings
    by_topic: Mapping[bytes, Topic]
    run_id: bytes = b""


def kind_of(path: Path) -> Kind:
    """Return "run" or "qrels", detected from the content like `trecexam init`, else from the name.

    Raises:
        ConversionError: neither.
    """
    file_format = look_at(path.absolute()).format
    name = without_ending(path.name)
    if file_format == "run" or (file_format != "qrels" and name.endswith(".run")):
        return "run"
    if file_format == "qrels" or name.endswith(".qrels"):
        return "qrels"
    raise ConversionError(path, None, "is neither a run nor qrels: add --as run or --as qrels")


def check_file(path: Path, kind: Kind, ids: KnownIds | None = None) -> tuple[Finding, ...]:
    """Return findings on how trec_eval reads a run or qrels.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    findings, by_topic, _ = read_lines(path, kind)
    ids = ids or KnownIds()
    if not by_topic and (versions := tuple(each for each in VERSIONS if each not in findings.stopped())):
        findings.add("empty", None, "fatal", "the file has no lines to evaluate", versions)
    judged = None if ids.judged is None or kind == "qrels" else {each.encode() for each in ids.judged}
    for topic_id, topic in by_topic.items():
        if kind == "run":
            _look_at_ranking(findings, topic_id, topic)
        elif max(topic.values) < 0:
            reason = (
                f"the highest label of topic {shown(topic_id)} is {max(topic.values)}: trec_eval stops "
                "there, or continues with uninitialized memory"
            )
            findings.add("only negative labels", topic.lines[0], "fatal", reason)
        _look_at_duplicates(findings, topic_id, topic, evaluated=judged is None or topic_id in judged)
    _look_for_unknown(findings, by_topic, ids)
    if judged is not None and by_topic:
        _look_for_judged(findings, by_topic, judged)
    return findings.all()


def read_lines(path: Path, kind: Kind) -> Lines:
    """Read the lines of a run or of qrels.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    findings = Findings()
    lines = _lines(path, findings, kind)
    return _read_run(lines, findings) if kind == "run" else _read_qrels(lines, findings)


def _lines(path: Path, findings: Findings, kind: Kind) -> Iterator[tuple[int, bytes]]:
    """Yield the lines as trec_eval sees them, including a byte-order mark."""
    packed = packing(path)
    if in_rows(path):
        first = head(path).lines[0].lstrip()
        if packed == "parquet" or first.startswith((b"{", b"[")) or b"," in first:
            convert = f"trecexam convert {quoted(path)} OUT --to {kind}"
            reason = f"is JSON or a table, and trec_eval reads columns alone: {convert}"
            findings.add("not in columns", None, "fatal", reason)
            return
    if packed:
        findings.add("gzip", None, "fatal", f"is {packed}; trec_eval reads only plain text: unpack it first")
    with_mark = has_mark(path)
    try:
        for number, line in iter_lines(path):
            yield number, (BOM + line if with_mark and number == 1 else line)
    except ConversionError as error:
        if error.line is None:
            raise
        reason = f"{error.reason}; trec_eval may continue without a message"
        findings.add("unreadable", error.line, "fatal", reason)


def _read_run(lines: Iterable[tuple[int, bytes]], findings: Findings) -> Lines:
    by_topic = defaultdict[bytes, Topic](partial(Topic, "d"))
    run_id = b""
    for number, line in lines:
        columns = line.split()
        if not columns:
            continue
        if columns[0].startswith(b"#"):
            _comment(findings, number, len(columns) >= 6, (9,))
            continue
        _look_at_line(findings, number, line)
        if len(columns) < 6:
            reason = f"has {counted(columns)}; trec_eval wants six: topic Q0 docno rank score run_id"
            findings.add("too few columns", number, "fatal", reason)
            if len(columns) < 5 or not (atof(columns[4])[1] or DECIMAL_COMMA.match(columns[4])):
                continue
        elif run_id and columns[5] != run_id:
            reason = f"run id {shown(columns[5])}, before it {shown(run_id)}; trec_eval takes the last line's"
            findings.add("mixed run ids", number, "warning", reason)
        if len(columns) > 6:
            reason = f"has {len(columns)} columns; trec_eval ignores what comes after the sixth"
            findings.add("extra columns", number, "silent", reason)
        run_id = columns[5] if len(columns) > 5 else run_id
        score = _score(findings, number, columns[4])
        by_topic[columns[0]].add(columns[2], columns[3], score, number)
    return Lines(findings, by_topic, run_id)


def _read_qrels(lines: Iterable[tuple[int, bytes]], findings: Findings) -> Lines:
    by_topic = defaultdict[bytes, Topic](partial(Topic, "q"))
    comment: int | None = None
    for number, line in lines:
        columns = line.split()
        if line.startswith(b"#"):
            # trec_eval 10 skips one comment before each judgment, and reads a second comment as a judgment.
            _comment(findings, number, len(columns) == 4, (9,) if comment is None else VERSIONS)
            comment = number if comment is None else None
            continue
        comment = None
        _look_at_line(findings, number, line)
        if len(columns) != 4:
            reason = f"has {counted(columns)}; trec_eval wants exactly four: topic 0 docno label"
            if not columns:
                reason = "a blank line: trec_eval rejects it in qrels, though it accepts blank lines in runs"
            findings.add("malformed", number, "fatal", reason)
            if len(columns) < 4 or not atol(columns[3])[1]:
                continue
        label = _label(findings, number, columns[3])
        by_topic[columns[0]].add(columns[2], columns[1], label, number)
    if comment is not None:
        reason = "a comment at the end: trec_eval 10 reads on after it"
        findings.add("comment", comment, "fatal", reason, (10,))
    return Lines(findings, by_topic)


def _comment(findings: Findings, line: int, enough: bool, versions: tuple[int, ...]) -> None:
    two = "neither version of trec_eval supports two comments in a row"
    who = "trec_eval 9 does not support comments" if versions == (9,) else two
    if enough:
        reason = f"a comment with as many words as columns: {who}; it is read as an entry of topic '#...'"
        findings.add("comment", line, "silent", reason, versions)
    else:
        findings.add("comment", line, "fatal", f"a comment: {who}; reading stops at this line", versions)


def _look_at_line(findings: Findings, number: int, line: bytes) -> None:
    if b"\r" in line:
        reason = r"a carriage return inside the line is white space; convert old Mac line ends: tr '\r' '\n'"
        findings.add("carriage return", number, "silent", reason)
    if line.lstrip().startswith(BOM):
        reason = "a byte-order mark: trec_eval reads it as a part of the topic id, which no other file has"
        findings.add("byte-order mark", number, "silent", reason)
    if b"#" in line:
        # github.com/usnistgov/trec_eval/issues/46; support for comments was removed because of it.
        reason = "'#' inside: trec_eval 10 reserves no memory for such lines, and may crash"
        findings.add("number sign", number, "warning", reason, (10,))


def _score(findings: Findings, number: int, text: bytes) -> float:
    score, whole = atof(text)
    if score != score:
        reason = f"the score is {shown(text)}: its rank is undefined"
        findings.add("score not a number", number, "silent", reason)
    elif DECIMAL_COMMA.match(text):
        reason = f"the score {shown(text)} has a decimal comma: it is read as {score:.10g}"
        findings.add("decimal comma", number, "silent", reason)
    elif not whole:
        reason = f"the score {shown(text)} is read as {score:.10g}"
        findings.add("score not a number", number, "silent", reason)
    return score


def _label(findings: Findings, number: int, text: bytes) -> int:
    label, whole = atol(text)
    if not whole and not _WHOLE.fullmatch(text):
        reason = f"the label {shown(text)} is read as {label}"
        findings.add("label no whole number", number, "silent", reason)
    if label == NOT_JUDGED:
        reason = "the label -1 means pooled and not judged; trec_eval reads it so in bpref, infAP and with -J"
        findings.add("not judged", number, "silent", f"{reason}, else as not relevant")
    elif label < 0:
        reason = (
            f"the label {label} means judged, not relevant, which trec_eval reads as not judged in bpref, "
            "infAP and with -J: write 0 to have it read as not relevant everywhere"
        )
        findings.add("negative label", number, "silent", reason)
    if label > MOST_LABEL:
        reason = (
            f"the label {label} is too high: trec_eval reserves 8 bytes for each label up to it, and stops"
        )
        findings.add("label too high", number, "fatal", reason)
    return label


def _look_at_ranking(findings: Findings, topic_id: bytes, topic: Topic) -> None:
    name = f"topic {shown(topic_id)}"
    scores = np.array(topic.values)
    entries = np.arange(len(scores))
    tied, tied_in_9 = (
        np.setdiff1d(entries, np.unique(compared(scores, version), return_index=True, equal_nan=False)[1])
        for version in (10, 9)
    )
    if len(tied):
        count = plural(len(tied), "score")
        reason = f"{name}: {count} equal to another; trec_eval orders by docno, descending"
        findings.add("ties", topic.lines[tied[0]], "warning", reason)
    if len(tied_in_9) > len(tied):
        count = plural(len(tied_in_9) - len(tied), "score")
        reason = (
            f"{name}: {count} different from another only beyond float precision: a tie in trec_eval 9, "
            "which orders by docno there; not in 10"
        )
        line = topic.lines[np.setdiff1d(tied_in_9, tied)[0]]
        findings.add("ties past float precision", line, "silent", reason, (9,))
    # Both increase, or both decrease, from the previous entry; NaN for a missing rank.
    ranks = np.array([float(rank) if rank.isdigit() else np.nan for rank in topic.others()])
    with np.errstate(all="ignore"):
        against = np.flatnonzero(np.diff(ranks) * np.diff(scores) > 0) + 1
    if len(against):
        count = plural(len(against), "score")
        reason = f"{name}: {count} not in the order of the ranks; trec_eval ignores the ranks"
        findings.add("scores against ranks", topic.lines[against[0]], "warning", reason)


def _look_at_duplicates(findings: Findings, topic_id: bytes, topic: Topic, *, evaluated: bool) -> None:
    docs = topic.doc_ids()
    for index, first in repeated(docs):
        reason = (
            f"docno {shown(docs[index])} occurs twice for topic {shown(topic_id)} (first on line "
            f"{topic.lines[first]})"
        )
        if not evaluated:
            reason += "; the qrels lack the topic, so trec_eval does not evaluate it"
        findings.add("duplicate", topic.lines[index], "fatal" if evaluated else "warning", reason)


def _look_for_unknown(findings: Findings, by_topic: Mapping[bytes, Topic], known_ids: KnownIds) -> None:
    if known_ids.topics is not None:
        topics = {topic.encode() for topic in known_ids.topics}
        for topic_id in by_topic.keys() - topics:
            reason = f"topic {shown(topic_id)} is not in the track"
            findings.add("unknown topic", by_topic[topic_id].lines[0], "warning", reason)
    if known_ids.docs is not None:
        docs = {doc.encode() for doc in known_ids.docs}
        for topic in by_topic.values():
            for doc, line in zip(topic.doc_ids(), topic.lines, strict=True):
                if doc not in docs:
                    reason = f"docno {shown(doc)} is not in the track"
                    findings.add("unknown docno", line, "warning", reason)


def _look_for_judged(findings: Findings, by_topic: Mapping[bytes, Topic], judged: set[bytes]) -> None:
    missing = sorted(judged - by_topic.keys())
    if len(missing) == len(judged):
        findings.add("no common topic", None, "fatal", "the qrels have none of its topics")
        return
    for topic_id in missing:
        reason = f"judged topic {shown(topic_id)} is missing: trec_eval 10 stops unless -c is given"
        findings.add("missing topic", None, "warning", reason, (10,))
