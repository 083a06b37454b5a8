"""Checks whether trec_eval accepts a file, which lines stop it, and what it would change silently.

The file is read once, line by line; of its lines only packed docnos and numbers are kept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from converters.errors import ConversionError
from converters.fields import counted
from converters.lines import Head, head, iter_lines, packing
from converters.records import NOT_JUDGED
from converters.scored_rows import in_rows, rows_of
from converters.trec_qrels import FORMAT as QRELS
from converters.trec_run import FORMAT as RUN
from converters.unpacking import without_ending
from trecexam.errors import quoted
from trecexam.extensions.check.trec_eval_rules import (
    BOM,
    DECIMAL_COMMA,
    MOST_LABEL,
    VERSIONS,
    Finding,
    Findings,
    Path,
    Topic,
    atof,
    atol,
    compared,
    has_mark,
    repeated,
    shown,
)

#: A whole number as tables of floats write it.
_WHOLE = re.compile(rb"[+-]?[0-9]+\.0*")
#: Lines a topic, from which on TREC's own checkers complain.
MOST_LINES = 1000
#: The number of lines read to distinguish runs from qrels.
_LOOKED_AT = 5
#: A line as nearly all are: printable ASCII without quotation marks and number signs.
_PLAIN = re.compile(rb"[\t !$-~]*+")
# Ids cannot contain trec_eval's white space; other characters outside of printable ASCII may be a mistake.
_UNUSUAL_IN_ID = re.compile(rb'[^\t-\r -~]|"')


def kind_of(path: Path) -> str:
    """Return "run" or "qrels", detected from the file's first lines or else its name.

    Raises:
        ConversionError: neither, or it cannot be read.
    """
    if not_in_columns(path):
        return rows_of(head(path))
    name = str(path)
    failure = ConversionError(path, None, "is neither a run nor qrels: add --as run or --as qrels")
    heads: list[Head] = []
    try:
        for _, line in iter_lines(path):
            if line.strip() and not line.lstrip().startswith(b"#"):
                heads.append(Head(name, (line,)))
            if len(heads) == _LOOKED_AT:
                break
    except ConversionError as error:
        if error.line is None:
            raise
        failure = error
    for file_format in (RUN, QRELS):
        if any(map(file_format.sniff, heads)):
            return file_format.name
    for file_format in (RUN, QRELS):
        if without_ending(name).endswith(file_format.extensions[0]):
            return file_format.name
    raise failure


def not_in_columns(path: Path) -> str:
    """Say that a file is JSON or a table, which trec_eval takes for columns; "" of other files."""
    if not in_rows(path):
        return ""
    start = head(path)
    first = start.lines[0].lstrip()
    if packing(path) != "parquet" and not first.startswith((b"{", b"[")) and b"," not in first:
        return ""
    convert = f"trecexam convert {quoted(path)} OUT --to {rows_of(start)}"
    return f"is JSON or a table, and trec_eval reads columns alone: {convert}"


def check_run(
    path: Path,
    *,
    topics: Collection[str] | None = None,
    docs: Iterable[str] | None = None,
    judged: Collection[str] | None = None,
) -> tuple[Finding, ...]:
    """Return findings on how trec_eval reads a run.

    Args:
        topics: the known topics; None: any.
        docs: the known docnos, looked at once; None: any.
        judged: the topics of the qrels that it will be evaluated with.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    findings = Findings()
    by_topic = defaultdict[bytes, Topic](partial(Topic, "d"))
    unknown: dict[bytes, int] = {}
    tag, mixed = b"", False
    for number, line in _lines(path, findings):
        columns = line.split()
        if not columns:
            continue
        topic_id = columns[0]
        if topic_id.startswith(b"#"):
            _comment(findings, number, len(columns) >= 6, (9,))
            continue
        if len(columns) < 6:
            reason = f"has {counted(columns)}; trec_eval wants six: topic Q0 docno rank score run_id"
            findings.add("too few columns", number, "fatal", reason)
            continue
        _, _, doc_id, rank, score, run_id, *more = columns
        if not _PLAIN.fullmatch(line):
            _look_at_line(findings, number, line, topic_id, doc_id)
        if more and not findings.count("extra columns", "silent"):
            reason = f"has {len(columns)} columns; trec_eval ignores what comes after the sixth"
            findings.add("extra columns", number, "silent", reason)
        tag = tag or run_id
        if run_id != tag and not mixed:
            mixed = True
            reason = f"run id {shown(run_id)}, before it {shown(tag)}; trec_eval takes the last line's"
            findings.add("mixed run ids", number, "warning", reason)
        by_topic[topic_id].add(doc_id, rank, _score(findings, number, score), number)
        if docs is not None:
            unknown.setdefault(doc_id, number)
    evaluated = by_topic.keys() if judged is None else {topic.encode() for topic in judged}
    for topic_id, topic in by_topic.items():
        _look_at_ranking(findings, topic_id, topic)
        _look_at_duplicates(findings, topic_id, topic, evaluated=topic_id in evaluated)
    _compare(findings, by_topic, unknown, topics, docs, judged)
    return findings.all()


def check_qrels(
    path: Path, *, topics: Collection[str] | None = None, docs: Iterable[str] | None = None
) -> tuple[Finding, ...]:
    """Return findings on how trec_eval reads qrels; see `check_run`.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    findings = Findings()
    by_topic = defaultdict[bytes, Topic](partial(Topic, "q"))
    unknown: dict[bytes, int] = {}
    comment: int | None = None
    for number, line in _lines(path, findings):
        columns = line.split()
        if line.startswith(b"#"):
            # trec_eval 10 checks for one comment before each judgment, and reads a second one as one.
            _comment(findings, number, len(columns) == 4, (9,) if comment is None else VERSIONS)
            comment = number if comment is None else None
            continue
        comment = None
        if len(columns) != 4:
            findings.add("malformed", number, "fatal", _malformed(line, columns))
            continue
        topic_id, iteration, doc_id, label = columns
        if not _PLAIN.fullmatch(line):
            _look_at_line(findings, number, line, topic_id, doc_id)
        by_topic[topic_id].add(doc_id, iteration, _label(findings, number, label), number)
        if docs is not None:
            unknown.setdefault(doc_id, number)
    if comment is not None:
        findings.add(
            "comment", comment, "fatal", "a comment at the end: trec_eval 10 reads on after it", (10,)
        )
    for topic_id, topic in by_topic.items():
        if max(topic.values) < 0:
            reason = (
                f"the highest label of topic {shown(topic_id)} is {max(topic.values)}: trec_eval stops "
                f"there, or continues with uninitialized memory"
            )
            findings.add("only negative labels", topic.lines[0], "fatal", reason)
        _look_at_duplicates(findings, topic_id, topic, iterations=topic.others())
    _compare(findings, by_topic, unknown, topics, docs)
    return findings.all()


def _lines(path: Path, findings: Findings) -> Iterator[tuple[int, bytes]]:
    """Yield the lines as trec_eval sees them: with a byte-order mark if there is one."""
    if other := not_in_columns(path):
        findings.add("not in columns", None, "fatal", other)
        return
    if kind := packing(path):
        findings.add("gzip", None, "fatal", f"is {kind}; trec_eval reads only plain text: unpack it first")
    with_mark = has_mark(path)
    try:
        for number, line in iter_lines(path):
            yield number, (BOM + line if with_mark and number == 1 else line)
    except ConversionError as error:
        if error.line is None:
            raise
        findings.add(
            "unreadable", error.line, "fatal", f"{error.reason}; trec_eval may continue without a message"
        )


def _comment(findings: Findings, line: int, enough: bool, versions: tuple[int, ...]) -> None:
    two = "neither version of trec_eval supports two comments in a row"
    who = "trec_eval 9 does not support comments" if versions == (9,) else two
    if enough:
        reason = f"a comment with as many words as columns: {who}; it is read as an entry of topic '#...'"
        findings.add("comment", line, "silent", reason, versions)
    else:
        findings.add("comment", line, "fatal", f"a comment: {who}; reading stops at this line", versions)


def _malformed(line: bytes, columns: list[bytes]) -> str:
    if not columns:
        return "a blank line: trec_eval rejects it in qrels, though it accepts blank lines in runs"
    mac = r"; a carriage return inside: convert old Mac line ends: tr '\r' '\n'" if b"\r" in line else ""
    return f"has {counted(columns)}; trec_eval wants exactly four: topic 0 docno label{mac}"


def _look_at_line(findings: Findings, number: int, line: bytes, topic: bytes, doc: bytes) -> None:
    if b"\r" in line:
        reason = r"a carriage return inside the line is white space; convert old Mac line ends: tr '\r' '\n'"
        findings.add("carriage return", number, "silent", reason)
    if topic.startswith(BOM):
        reason = (
            "a byte-order mark: trec_eval reads it as a part of the topic id, which then matches no other "
            "file"
        )
        findings.add("byte-order mark", number, "silent", reason)
    for name, value in (("topic", topic), ("docno", doc)):
        if _UNUSUAL_IN_ID.search(value) and not findings.count("unusual characters", "warning"):
            reason = f"unusual characters in {name} {shown(value)}"
            findings.add("unusual characters", number, "warning", reason)
    if b"#" in line:
        # github.com/usnistgov/trec_eval/issues/46; support for comments was removed because of it.
        reason = "'#' inside: trec_eval 10 reserves no memory for such lines, and may crash"
        findings.add("number sign", number, "warning", reason, (10,))


def _score(findings: Findings, number: int, text: bytes) -> float:
    score, whole = atof(text)
    if score != score:
        reason = f"the score is {shown(text)}: its rank is undefined"
        findings.add("score not a number", number, "silent", reason)
    elif not whole:
        is_comma = DECIMAL_COMMA.match(text)
        what = f"the score {shown(text)} has a decimal comma: it" if is_comma else f"the score {shown(text)}"
        kind = "decimal comma" if is_comma else "score not a number"
        findings.add(kind, number, "silent", f"{what} is read as {score:.10g}")
    return score


def _label(findings: Findings, number: int, text: bytes) -> int:
    label, whole = atol(text)
    if not whole and not _WHOLE.fullmatch(text):
        reason = f"the label {shown(text)} is read as {label}"
        findings.add("label no whole number", number, "silent", reason)
    if label == NOT_JUDGED:
        reason = f"the label {label} means pooled and not judged; it does not mean not relevant"
        findings.add("not judged", number, "silent", reason)
    elif label < NOT_JUDGED:
        reason = (
            f"the label {label} means judged, not relevant, which trec_eval reads as not judged in bpref, "
            "infAP and with -J: write 0 to have it read as not relevant everywhere"
        )
        findings.add("negative label", number, "silent", reason)
    if label > MOST_LABEL:
        reason = (
            f"the label {label} is too high: trec_eval reserves 8 bytes for each label up to the highest, "
            f"and stops"
        )
        findings.add("label too high", number, "fatal", reason)
    return label


def _look_at_ranking(findings: Findings, topic_id: bytes, topic: Topic) -> None:
    name = f"topic {shown(topic_id)}"
    scores = np.array(topic.values)
    ties: dict[int, tuple[int, int]] = {}
    for version in VERSIONS:
        values = compared(scores, version)
        by_score = np.argsort(-values, kind="stable")
        tied = np.flatnonzero(values[by_score][1:] == values[by_score][:-1])
        line = max(topic.lines[int(by_score[tied[0] + more])] for more in (0, 1)) if len(tied) else 0
        ties[version] = len(tied), line
    if ties[10][0]:
        count = are(ties[10][0], "score")
        reason = f"{name}: {count} the same as another; trec_eval orders by docno, descending"
        findings.add("ties", ties[10][1], "warning", reason)
    if ties[9][0] > ties[10][0]:
        count = are(ties[9][0] - ties[10][0], "score")
        reason = (
            f"{name}: {count} different from another only beyond float precision: a tie in trec_eval 9, "
            "which orders by docno there; not in 10"
        )
        findings.add("ties past float precision", ties[9][1], "silent", reason, (9,))
    # Both increase, or both decrease, from the entry before; NaN where there is no rank.
    ranks = np.array([float(rank) if rank.isdigit() else np.nan for rank in topic.others()])
    with np.errstate(all="ignore"):
        against = np.flatnonzero(np.diff(ranks) * np.diff(scores) > 0) + 1
    if len(against):
        reason = (
            f"{name}: {are(len(against), 'score')} not in the order of the ranks; trec_eval ignores the ranks"
        )
        findings.add("scores against ranks", topic.lines[int(against[0])], "warning", reason)
    if len(scores) > MOST_LINES:
        reason = f"{name} has {len(scores):,} lines, more than TREC's {MOST_LINES:,}"
        findings.add("many lines", topic.lines[MOST_LINES], "warning", reason)


def _look_at_duplicates(
    findings: Findings,
    topic_id: bytes,
    topic: Topic,
    *,
    evaluated: bool = True,
    iterations: list[bytes] | None = None,
) -> None:
    docs = topic.doc_ids()
    for index, first in repeated(docs):
        reason = (
            f"docno {shown(docs[index])} occurs twice for topic {shown(topic_id)} (first on line "
            f"{topic.lines[first]})"
        )
        if iterations and iterations[index] != iterations[first]:
            reason += "; if the second column is the subtopic, this file is for ndeval"
        if not evaluated:
            reason += "; the qrels lack the topic, so trec_eval does not evaluate it"
        findings.add("duplicate", topic.lines[index], "fatal" if evaluated else "warning", reason)


def _compare(
    findings: Findings,
    by_topic: Mapping[bytes, Topic],
    unknown: dict[bytes, int],
    topics: Collection[str] | None,
    docs: Iterable[str] | None,
    judged: Collection[str] | None = None,
) -> None:
    """Name topics and docnos that a track lacks, judged topics that the file lacks, and an empty file."""
    if not by_topic and (versions := tuple(each for each in VERSIONS if each not in findings.stopped())):
        findings.add("empty", None, "fatal", "the file has no lines to evaluate", versions)
    known_topics = by_topic.keys() if topics is None else {topic.encode() for topic in topics}
    for topic_id, topic in by_topic.items():
        if topic_id not in known_topics:
            reason = f"topic {shown(topic_id)} is not in the track"
            findings.add("unknown topic", topic.lines[0], "warning", reason)
    for doc in docs or ():
        unknown.pop(doc.encode(), None)
    for doc_id, line in unknown.items():
        findings.add("unknown docno", line, "warning", f"docno {shown(doc_id)} is not in the track")
    missing = [topic for topic in judged or () if topic.encode() not in by_topic]
    if judged is not None and by_topic and len(missing) == len(judged):
        findings.add("no common topic", None, "fatal", "the qrels have none of its topics")
        return
    for name in missing:
        reason = f"judged topic {shown(name.encode())} is missing: trec_eval 10 stops unless -c is given"
        findings.add("missing topic", None, "warning", reason, (10,))


def are(count: int, noun: str) -> str:
    """Return "1 score is" or "2 scores are"."""
    return f"1 {noun} is" if count == 1 else f"{count:,} {noun}s are"
