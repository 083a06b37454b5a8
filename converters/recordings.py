"""Recordings: files of grades that exist, whatever their format, as the grades that they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from converters.errors import ConversionError
from converters.records import RecordedGrade, judgment
from converters.registry import read, sniff
from converters.support_labels import LABELS, read_support_labels
from converters.unpacking import without_ending

#: The best label that qrels may have where they are grades.
MAX_RATING = 5


def read_recording(path: str | os.PathLike[str]) -> Iterator[RecordedGrade]:
    """Yield the grades of a Rubric graded pool, an export, nuggetizer's, umbrela's judgments, or qrels.

    Of qrels the item is the query, and the model the file's name; of several subtopics the best label counts,
    -1 is no grade, and a lower label is 0. umbrela's judgments are of an item of that name where they have
    ids, and of the texts of query and passage, which then stand for the ids.

    Raises:
        ConversionError: another format, a line that cannot be read, or a label above 5.
    """
    kind = sniff(path)
    if kind == "qrels":
        yield from _labels(Path(path))
    elif kind == "umbrela":
        for each in read(path, kind):
            what = each.label, each.answer, each.model, ""
            if each.doc_id:
                yield RecordedGrade(each.query_id, each.doc_id, each.query_id, *what, "")
            # Texts say which query and which passage.
            yield RecordedGrade("", each.passage, each.query.strip(), *what, each.passage)
    elif kind in {"rubric", "grades"}:
        yield from read(path, kind)
    else:
        raise ConversionError(
            path,
            None,
            "not a recording: give a Rubric graded pool, a `trecexam export grades` file, nuggetizer's "
            "assignments, umbrela's judgments, or qrels",
        )


def _labels(path: Path) -> Iterator[RecordedGrade]:
    best: dict[tuple[str, str], int] = {}
    for qrel in read(path, "qrels"):
        if qrel.relevance > MAX_RATING:
            raise ConversionError(
                path,
                None,
                f"label {qrel.relevance} of passage '{qrel.doc_id}' for query '{qrel.query_id}': qrels that "
                f"are grades have labels of 0..{MAX_RATING}",
            )
        label = judgment(qrel.relevance)
        if label is not None:
            key = qrel.query_id, qrel.doc_id
            best[key] = max(label, best.get(key, 0))
    if not best:
        raise ConversionError(path, None, "holds no judgments: all labels are -1: pooled, not judged")
    name = without_ending(path.name)
    name = name.removesuffix(".txt").removesuffix(".qrels") or name
    for (query_id, doc_id), label in best.items():
        yield RecordedGrade(query_id, doc_id, query_id, label, str(label), name, "", "")


def read_recorded_support(path: str | os.PathLike[str]) -> Iterator[RecordedGrade]:
    """Yield the labels of support in a table as grades 0..2; the item is RUN/QUERY_ID/SENTENCE.

    Raises:
        ConversionError: a line cannot be read: what is wrong with a recording must not pass as "no grade".
    """
    errors: list[ConversionError] = []
    rows = [*read_support_labels(path, errors.append)]
    if errors:
        raise errors[0]
    for row in rows:
        item_id = f"{row.run}/{row.query_id}/{row.place}"
        yield RecordedGrade(row.query_id, row.doc_id, item_id, row.rating, LABELS[row.rating], "", "", "")
