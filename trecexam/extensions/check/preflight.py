"""Check of whether trec_eval accepts a file, which lines stop it, and which values it misreads.

The file is read once, line by line; docnos, ranks and scores stay in memory as one text a topic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import converters
from converters.errors import ConversionError
from converters.fields import counted
from converters.ir_dataset import dataset_qrels
from converters.lines import head, iter_lines, open_input, packing, reading
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
    atof,
    atol,
    compared,
    shown,
    takes,
)
from trecexam.folder import TrackFolder
from trecexam.results.text import plural
from trecexam.scaffold import look_at

Kind = Literal["run", "qrels"]


class Checked(NamedTuple):
    """A checked run or qrels.

    Attributes:
        findings: by line; those on the whole file first.
        topics: topic -> entries as `columns_of` reads them, including repairable lines that stop trec_eval.
        run_id: the last run id of a run.
    """

    path: Path
    kind: Kind
    findings: tuple[Finding, ...]
    topics: Mapping[bytes, bytearray]
    run_id: bytes


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


def check_file(
    path: Path,
    kind: Kind,
    topics: Collection[bytes] = (),
    docs: Collection[bytes] = (),
    judged: Collection[bytes] = (),
) -> Checked:
    """Check how trec_eval reads a run or qrels.

    Args:
        topics, docs: known topics and docnos; empty: unknown.
        judged: topics of the qrels for the evaluation of a run; empty: unknown.

    Raises:
        ConversionError: there is no such file, or it cannot be opened.
    """
    findings, entries, run_id = Findings(), defaultdict[bytes, bytearray](bytearray), b""
    if kind == "run":
        run_id = _read_run(path, findings, entries)
    else:
        _read_qrels(path, findings, entries)
        judged = ()
    if not entries and (accepting := tuple(v for v in VERSIONS if takes(findings.values(), v))):
        findings.add("empty", None, versions=accepting)
    for topic_id, of_topic in entries.items():
        docnos, ranks, values, numbers = columns_of(of_topic)
        if kind == "run":
            for name, found in _unordered(ranks, values).items():
                if len(found):
                    findings.add(name, numbers[found[0]], topic_id, plural(len(found), "score"))
        elif values.max() < 0:
            findings.add("only negative labels", numbers[0], topic_id, values.max())
        duplicate = "duplicate without judgments" if judged and topic_id not in judged else "duplicate"
        if topics and topic_id not in topics:
            findings.add("unknown topic", numbers[0], topic_id)
        first: dict[bytes, int] = {}
        for docno, number in zip(docnos, numbers, strict=True):
            if first.setdefault(docno, number) != number:
                findings.add(duplicate, number, docno, topic_id, first[docno])
            if docs and docno not in docs:
                findings.add("unknown docno", number, docno)
    if entries and judged and not entries.keys() & judged:
        findings.add("no common topic", None)
    elif entries:
        for topic_id in sorted(set(judged) - entries.keys()):
            findings.add("missing topic", None, topic_id)
    ordered = sorted(findings.values(), key=lambda finding: finding.line or 0)
    return Checked(path, kind, tuple(ordered), entries, run_id)


def columns_of(entries: bytearray) -> tuple[list[bytes], list[bytes], NDArray[np.float64], list[int]]:
    """Return a topic's docnos, ranks or second columns, scores or labels, and line numbers."""
    texts = bytes(entries).split()
    return texts[::4], texts[1::4], np.array(texts[2::4], np.float64), list(map(int, texts[3::4]))


def _lines(path: Path, kind: Kind, findings: Findings) -> Iterator[tuple[int, bytes]]:
    """Yield the lines as trec_eval sees them, including a byte-order mark."""
    packed = packing(path)
    if in_rows(path):
        first = head(path).lines[0].lstrip()
        if packed == "parquet" or first.startswith((b"{", b"[")) or b"," in first:
            findings.add("not in columns", None, quoted(path), kind)
            return
    if packed:
        findings.add("gzip", None, packed)
    with reading(path, None), open_input(path) as file:
        mark = BOM if file.read(3) == BOM else b""
    try:
        for number, line in iter_lines(path):
            yield number, mark + line if number == 1 else line
    except ConversionError as error:
        if error.line is None:
            raise
        findings.add("unreadable", error.line, error.reason)


def _read_run(path: Path, findings: Findings, entries: dict[bytes, bytearray]) -> bytes:
    """Read the lines of a run into `entries`; return the last run id."""
    run_id = b""
    for number, line in _lines(path, "run", findings):
        columns = line.split()
        if not columns:
            continue
        if columns[0].startswith(b"#"):
            findings.add("comment as entry" if len(columns) >= 6 else "comment", number)
            continue
        _look_at_line(findings, number, line)
        if len(columns) < 6:
            findings.add("too few columns", number, counted(columns))
            if len(columns) < 5 or not (atof(columns[4])[1] or DECIMAL_COMMA.match(columns[4])):
                continue
        elif run_id and columns[5] != run_id:
            findings.add("mixed run ids", number, columns[5], run_id)
        if len(columns) > 6:
            findings.add("extra columns", number, len(columns))
        run_id = columns[5] if len(columns) > 5 else run_id
        score, whole = atof(columns[4])
        if score != score:
            findings.add("score not a number", number, f"is {shown(columns[4])}: its rank is undefined")
        elif DECIMAL_COMMA.match(columns[4]):
            findings.add("decimal comma", number, columns[4], score)
        elif not whole:
            findings.add("score not a number", number, f"{shown(columns[4])} is read as {score:.10g}")
        entries[columns[0]] += b"%s %s %a %d\n" % (columns[2], columns[3], score, number)
    return run_id


def _read_qrels(path: Path, findings: Findings, entries: dict[bytes, bytearray]) -> None:
    """Read the lines of qrels into `entries`."""
    comment: int | None = None
    for number, line in _lines(path, "qrels", findings):
        columns = line.split()
        if line.startswith(b"#"):
            # trec_eval 10 skips one comment before each judgment, and reads a second comment as a judgment.
            name = "comment" if comment is None else "second comment"
            findings.add(f"{name} as entry" if len(columns) == 4 else name, number)
            comment = number if comment is None else None
            continue
        comment = None
        _look_at_line(findings, number, line)
        if len(columns) != 4:
            reason = f"has {counted(columns)}; trec_eval wants exactly four: topic 0 docno label"
            if not columns:
                reason = "a blank line: trec_eval rejects it in qrels, though it accepts blank lines in runs"
            findings.add("malformed", number, reason)
            if len(columns) < 4 or not atol(columns[3])[1]:
                continue
        label, whole = atol(columns[3])
        if not whole and atof(columns[3]) != (label, True):
            findings.add("label no whole number", number, columns[3], label)
        if label == NOT_JUDGED:
            findings.add("not judged", number)
        elif label < 0:
            findings.add("negative label", number, label)
        elif label > MOST_LABEL:
            findings.add("label too high", number, label)
        entries[columns[0]] += b"%s %s %d %d\n" % (columns[2], columns[1], label, number)
    if comment is not None:
        findings.add("last comment", comment)


def _look_at_line(findings: Findings, number: int, line: bytes) -> None:
    if b"\r" in line:
        findings.add("carriage return", number)
    if line.lstrip().startswith(BOM):
        findings.add("byte-order mark", number)
    if b"#" in line:
        findings.add("number sign", number)


def _unordered(ranks: list[bytes], scores: NDArray[np.float64]) -> dict[str, NDArray[np.int64]]:
    """Return kind of finding -> entries of a ranking with this finding."""
    entries = np.arange(len(scores))
    tied, tied_in_9 = (
        np.setdiff1d(entries, np.unique(compared(scores, version), return_index=True, equal_nan=False)[1])
        for version in (10, 9)
    )
    # Both increase, or both decrease, from the previous entry; NaN for a missing rank.
    numbers = np.array([float(rank) if rank.isdigit() else np.nan for rank in ranks])
    with np.errstate(all="ignore"):
        against = np.flatnonzero(np.diff(numbers) * np.diff(scores) > 0) + 1
    only_in_9 = np.setdiff1d(tied_in_9, tied)
    return {"ties": tied, "ties past float precision": only_in_9, "scores against ranks": against}


def track_ids(track: Path) -> tuple[set[bytes], set[bytes], set[bytes]]:
    """Return a track's topics, docnos and judged topics; grade and compute nothing.

    Topics come from the bank, queries and judgments. Without official judgments, the judged topics are those
    of the track's labels.
    """
    # Imports pyarrow, which checks of single files need not load.
    from trecexam.inputs.inputs import query_texts, whole_bank

    folder = TrackFolder.open(track)
    qrels, passages, dataset = folder.qrels(), folder.passages(), folder.config.track.dataset
    rubric = folder.out / "rubric.qrels"
    if qrels is None and dataset is None and rubric.exists():
        qrels = rubric
    rows = converters.read(qrels, "qrels") if qrels else dataset_qrels(dataset) if dataset else ()
    judged, docs = {row.query_id.encode() for row in rows}, set[bytes]()
    if passages is not None:
        docs = {passage.doc_id.encode() for passage in converters.read(passages, "passages")}
    topics = {*whole_bank(folder, folder.bank(optional=True)).items, *query_texts(folder)}
    return {topic.encode() for topic in topics} | judged, docs, judged
