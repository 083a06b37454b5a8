"""Checks whether trec_eval accepts a file, which lines stop it, and what it would change silently.

The file is read once, line by line; of its lines only packed docnos and numbers are kept.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from converters.errors import ConversionError
from converters.fields import counted
from converters.lines import Head, head, iter_lines, packing
from converters.records import NOT_JUDGED
from converters.scored_rows import in_rows, rows_of
from converters.trec_qrels import FORMAT as QRELS
from converters.trec_run import FORMAT as RUN
from converters.unpacking import without_ending
from trecexam.errors import quoted
from trecexam.extensions.check.mending import fix_qrels, fix_run, to_points
from trecexam.extensions.check.trec_eval_rules import (
    BOM,
    DECIMAL_COMMA,
    MOST_LABEL,
    NO_RANK,
    VERSIONS,
    Change,
    Finding,
    Path,
    PreflightFindings,
    QrelsTopic,
    RunTopic,
    atof,
    atol,
    compared,
    has_mark,
    repeated,
    shown,
    takes,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "VERSIONS",
    "Change",
    "Finding",
    "are",
    "check_qrels",
    "check_run",
    "fix_qrels",
    "fix_run",
    "kind_of",
    "takes",
    "to_points",
]

#: A whole number as tables of floats write it.
_WHOLE = re.compile(rb"[+-]?[0-9]+\.0*")
#: Lines a topic, from which on TREC's own checkers complain.
MOST_LINES = 1000
#: The number of lines read to distinguish runs from qrels.
_LOOKED_AT = 5
#: Lines that are looked at together.
_PIECE = 5_000
#: Lines as nearly all are: no comment and no quotation mark, a plain number, a label that trec_eval takes.
_WORD = rb"[!#-~\x80-\xff]++[ \t]++"
_PLAIN_RUN = re.compile(
    rb"(?:(?!#|" + BOM + rb")(?:" + _WORD + rb"){4}-?[0-9]{1,15}+(?:\.[0-9]{0,30}+)?+"
    rb"(?:[ \t]++[!#-~\x80-\xff]++)++[ \t]*+(?:\n|\Z))++"
)
_PLAIN_QRELS = re.compile(rb"(?:(?!#|" + BOM + rb")(?:" + _WORD + rb"){3}[0-9]{1,9}+[ \t]*+(?:\n|\Z))++")
# Ids cannot contain trec_eval's white space; other characters outside of printable ASCII may be a mistake.
_UNUSUAL = re.compile(rb'[^\t-\r -~]|["#]')
_UNUSUAL_IN_ID = re.compile(rb'[^\t-\r -~]|"')


def kind_of(path: Path) -> str:
    """ "run" or "qrels", detected from the file's first lines or else its name.

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
    """Findings on how trec_eval reads a run.

    Args:
        topics: the known topics; None: any.
        docs: the known docnos, looked at once; None: any.
        judged: the topics of the qrels that it will be evaluated with.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    if other := not_in_columns(path):
        return (Finding(None, "fatal", VERSIONS, "not in columns", other),)
    findings = PreflightFindings()
    by_topic: dict[bytes, RunTopic] = {}
    unknown: dict[bytes, int] = {}
    tag: tuple[bytes, int] | None = None
    mixed: tuple[bytes, int] | None = None
    for start, lines in _pieces(path, findings):
        plain = _plain_columns(_PLAIN_RUN, findings, start, lines)
        if plain is not None:
            topic_ids, _, doc_ids, ranks, scores, tags, *more = plain
            for at in range(start, start + len(lines)) if more else ():
                _extra_columns(findings, at, 6 + len(more))
            tag = tag or (tags[0], start)
            if mixed is None and tags.count(tag[0]) < len(tags):
                mixed = next((other, at) for at, other in enumerate(tags, start) if other != tag[0])
            values = list(map(float, scores))
            for topic_id, entries in _of_topics(topic_ids):
                numbers = range(start + entries.start, start + entries.stop)
                of_topic = by_topic.setdefault(topic_id, RunTopic())
                of_topic.extend(doc_ids[entries], values[entries], ranks[entries], numbers)
            if docs is not None:
                _note_first_lines(unknown, doc_ids, start)
            continue
        for number, line in enumerate(lines, start):
            columns = line.split()
            if not columns:
                continue
            if columns[0].startswith(b"#"):
                _comment(findings, number, len(columns) >= 6, (9,))
                continue
            if len(columns) < 6:
                reason = f"has {counted(columns)}; trec_eval wants six: topic Q0 docno rank score run_id"
                findings.add("too few columns", number, "fatal", reason)
                continue
            _look_at_line(findings, number, line, columns[0], columns[2])
            if len(columns) > 6:
                _extra_columns(findings, number, len(columns))
            score = _score(findings, number, columns[4])
            if tag is None:
                tag = columns[5], number
            elif mixed is None and columns[5] != tag[0]:
                mixed = columns[5], number
            topic = by_topic.get(columns[0])
            if topic is None:
                topic = by_topic[columns[0]] = RunTopic()
            topic.add(columns[2], score, columns[3], number)
            if docs is not None:
                unknown.setdefault(columns[2], number)
    if tag and mixed:
        reason = f"run id {shown(mixed[0])}, before it {shown(tag[0])}; trec_eval takes the last line's"
        findings.add("mixed run ids", mixed[1], "warning", reason)
    if not by_topic:
        _nothing(findings)
    evaluated = None if judged is None else {topic.encode() for topic in judged}
    for topic_id, topic in by_topic.items():
        _look_at_ranking(findings, topic_id, topic, evaluated is None or topic_id in evaluated)
    firsts = {topic_id: topic.lines[0] for topic_id, topic in by_topic.items()}
    _look_for_unknown(findings, firsts, topics, unknown, docs)
    if judged is not None:
        _look_at_judged(findings, firsts, judged)
    return findings.all()


def check_qrels(
    path: Path, *, topics: Collection[str] | None = None, docs: Iterable[str] | None = None
) -> tuple[Finding, ...]:
    """Findings on how trec_eval reads qrels; see `check_run`.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    if other := not_in_columns(path):
        return (Finding(None, "fatal", VERSIONS, "not in columns", other),)
    findings = PreflightFindings()
    by_topic: dict[bytes, QrelsTopic] = {}
    unknown: dict[bytes, int] = {}
    comment: int | None = None
    for start, lines in _pieces(path, findings):
        plain = _plain_columns(_PLAIN_QRELS, findings, start, lines)
        if plain is not None:
            topic_ids, iterations, doc_ids, labels = plain
            values = list(map(int, labels))
            for topic_id, entries in _of_topics(topic_ids):
                numbers = range(start + entries.start, start + entries.stop)
                of_topic = by_topic.setdefault(topic_id, QrelsTopic())
                of_topic.extend(doc_ids[entries], iterations[entries], values[entries], numbers)
            if docs is not None:
                _note_first_lines(unknown, doc_ids, start)
            comment = None
            continue
        for number, line in enumerate(lines, start):
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
            _look_at_line(findings, number, line, columns[0], columns[2])
            label = _label(findings, number, columns[3])
            topic = by_topic.get(columns[0])
            if topic is None:
                topic = by_topic[columns[0]] = QrelsTopic()
            topic.add(columns[2], columns[1], label, number)
            if docs is not None:
                unknown.setdefault(columns[2], number)
    if comment is not None:
        findings.add(
            "comment", comment, "fatal", "a comment at the end: trec_eval 10 reads on after it", (10,)
        )
    if not by_topic:
        _nothing(findings)
    for topic_id, judged in by_topic.items():
        _look_at_judgments(findings, topic_id, judged)
    firsts = {topic_id: judged.lines[0] for topic_id, judged in by_topic.items()}
    _look_for_unknown(findings, firsts, topics, unknown, docs)
    return findings.all()


def _lines(path: Path, findings: PreflightFindings) -> Iterator[tuple[int, bytes]]:
    """The lines as trec_eval sees them: with a byte-order mark if there is one."""
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


def _pieces(path: Path, findings: PreflightFindings) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines in lists, with the number of each first one."""
    numbered = _lines(path, findings)
    while piece := list(itertools.islice(numbered, _PIECE)):
        yield piece[0][0], [line for _, line in piece]


def _plain_columns(
    pattern: re.Pattern[bytes], findings: PreflightFindings, start: int, lines: Sequence[bytes]
) -> list[list[bytes]] | None:
    """Return the columns of lines as nearly all are; None where one has to be looked at alone."""
    text = b"\n".join(lines)
    if not lines[-1] or not pattern.fullmatch(text):
        return None
    if b"#" in text:
        with_sign = [number for number, line in enumerate(lines, start) if b"#" in line]
        _number_sign(findings, with_sign[0], len(with_sign))
    words = text.split()
    width = len(lines[0].split())
    if len(words) != width * len(lines):
        return None
    columns = [words[column::width] for column in range(width)]
    if not text.isascii():
        for number, (topic, _, doc, *_) in enumerate(zip(*columns, strict=True), start):
            _unusual(findings, number, topic, doc)
    return columns


def _extra_columns(findings: PreflightFindings, number: int, n_columns: int) -> None:
    if not findings.count("extra columns", "silent"):
        reason = f"has {n_columns} columns; trec_eval ignores what comes after the sixth"
        findings.add("extra columns", number, "silent", reason)


def _note_first_lines(first_lines: dict[bytes, int], doc_ids: Sequence[bytes], start: int) -> None:
    for line, doc_id in enumerate(doc_ids, start):
        first_lines.setdefault(doc_id, line)


def _of_topics(topic_ids: Sequence[bytes]) -> Iterator[tuple[bytes, slice]]:
    """Yield (topic, its entries) of entries that follow each other."""
    end = 0
    for topic_id, group in itertools.groupby(topic_ids):
        start, end = end, end + len(list(group))
        yield topic_id, slice(start, end)


def _number_sign(findings: PreflightFindings, line: int, n_lines: int) -> None:
    # github.com/usnistgov/trec_eval/issues/46; support for comments was removed because of it.
    reason = "'#' inside: trec_eval 10 reserves no memory for such lines, and may crash"
    findings.add("number sign", line, "warning", reason, (10,), n_lines)


def _comment(findings: PreflightFindings, line: int, enough: bool, versions: tuple[int, ...]) -> None:
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


def _nothing(findings: PreflightFindings) -> None:
    if versions := tuple(version for version in VERSIONS if version not in findings.stopped()):
        findings.add("empty", None, "fatal", "the file has no lines to evaluate", versions)


def _look_at_line(findings: PreflightFindings, number: int, line: bytes, topic: bytes, doc: bytes) -> None:
    if b"\r" in line:
        reason = r"a carriage return inside the line is white space; convert old Mac line ends: tr '\r' '\n'"
        findings.add("carriage return", number, "silent", reason)
    if not _UNUSUAL.search(line):
        return
    if topic.startswith(BOM):
        reason = (
            "a byte-order mark: trec_eval reads it as a part of the topic id, which then matches no other "
            "file"
        )
        findings.add("byte-order mark", number, "silent", reason)
    _unusual(findings, number, topic, doc)
    if b"#" in line:
        _number_sign(findings, number, 1)


def _unusual(findings: PreflightFindings, number: int, topic: bytes, doc: bytes) -> None:
    for name, value in (("topic", topic), ("docno", doc)):
        if _UNUSUAL_IN_ID.search(value) and not findings.count("unusual characters", "warning"):
            reason = f"unusual characters in {name} {shown(value)}"
            findings.add("unusual characters", number, "warning", reason)


def _score(findings: PreflightFindings, number: int, text: bytes) -> float:
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


def _label(findings: PreflightFindings, number: int, text: bytes) -> int:
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


def _look_at_ranking(findings: PreflightFindings, topic_id: bytes, topic: RunTopic, evaluated: bool) -> None:
    import numpy as np

    name = f"topic {shown(topic_id)}"
    scores = np.array(topic.scores)
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
    against = _against_ranks(scores, np.array(topic.ranks))
    if len(against):
        reason = (
            f"{name}: {are(len(against), 'score')} not in the order of the ranks; trec_eval ignores the ranks"
        )
        findings.add("scores against ranks", topic.lines[int(against[0])], "warning", reason)
    if len(topic.scores) > MOST_LINES:
        reason = f"{name} has {len(topic.scores):,} lines, more than TREC's {MOST_LINES:,}"
        findings.add("many lines", topic.lines[MOST_LINES], "warning", reason)
    docs = topic.doc_ids()
    for entry_index, first in repeated(docs):
        reason = (
            f"docno {shown(docs[entry_index])} occurs twice for {name} (first on line {topic.lines[first]})"
        )
        if evaluated:
            findings.add("duplicate", topic.lines[entry_index], "fatal", reason)
        else:
            reason += "; the qrels lack the topic, so trec_eval does not evaluate it"
            findings.add("duplicate", topic.lines[entry_index], "warning", reason)


def _against_ranks(scores: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of entries whose rank and score both increase, or both decrease, from the entry before."""
    import numpy as np

    below = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    above = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    return np.flatnonzero((below | above) & (ranks[1:] != NO_RANK) & (ranks[:-1] != NO_RANK)) + 1


def _look_at_judgments(findings: PreflightFindings, topic_id: bytes, topic: QrelsTopic) -> None:
    name = f"topic {shown(topic_id)}"
    if max(topic.labels) < 0:
        reason = (
            f"the highest label of {name} is {max(topic.labels)}: trec_eval stops there, or continues with "
            f"uninitialized memory"
        )
        findings.add("only negative labels", topic.lines[0], "fatal", reason)
    docs = topic.doc_ids()
    duplicates = repeated(docs)
    iterations = topic.iterations.split() if duplicates else []
    for row_index, first in duplicates:
        reason = (
            f"docno {shown(docs[row_index])} occurs twice for {name} (first on line {topic.lines[first]})"
        )
        if iterations[row_index] != iterations[first]:
            reason += "; if the second column is the subtopic, this file is for ndeval"
        findings.add("duplicate", topic.lines[row_index], "fatal", reason)


def _look_for_unknown(
    findings: PreflightFindings,
    firsts: dict[bytes, int],
    topics: Collection[str] | None,
    unknown: dict[bytes, int],
    docs: Iterable[str] | None,
) -> None:
    known_topics = None if topics is None else {topic.encode() for topic in topics}
    for topic, line in firsts.items():
        if known_topics is not None and topic not in known_topics:
            findings.add("unknown topic", line, "warning", f"topic {shown(topic)} is not in the track")
    for doc in docs or ():
        unknown.pop(doc.encode(), None)
    for doc_id, line in unknown.items():
        findings.add("unknown docno", line, "warning", f"docno {shown(doc_id)} is not in the track")


def _look_at_judged(findings: PreflightFindings, firsts: dict[bytes, int], judged: Collection[str]) -> None:
    missing = [topic for topic in judged if topic.encode() not in firsts]
    if firsts and len(missing) == len(judged):
        findings.add("no common topic", None, "fatal", "the qrels have none of its topics")
        return
    for topic in missing:
        reason = f"judged topic {shown(topic.encode())} is missing: trec_eval 10 stops unless -c is given"
        findings.add("missing topic", None, "warning", reason, (10,))


def are(count: int, noun: str) -> str:
    """Return "1 score is" or "2 scores are"."""
    return f"1 {noun} is" if count == 1 else f"{count:,} {noun}s are"
