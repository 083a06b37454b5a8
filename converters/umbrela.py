"""umbrela's judgments as JSON Lines: texts of query and passage, and a label 0..3.

umbrela writes no ids. Where somebody added `qid` and `docid`, they are qrels, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import Head, first_object, iter_objects
from converters.records import Qrel, TextJudgment
from converters.registry import Format

EXAMPLE = (
    '{"model": "gpt-4o", "query": "how do heat pumps work", "passage": "Heat pumps move heat.", '
    '"prediction": "##final score: 3", "judgment": 3, "result_status": 1}'
)
HIGHEST = 3


def read_judgments(path: str | os.PathLike[str]) -> Iterator[TextJudgment]:
    """Reads judgments in file order. Answers that umbrela could not parse have no label.

    Raises:
        ConversionError: with the line: bad JSON, no texts, a label that is not 0..3.
    """
    for number, row in iter_objects(path):
        label = row.get("judgment")
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label <= HIGHEST:
            raise ConversionError(path, number, f'"judgment" is not 0..{HIGHEST}: {label!r}'[:200])
        # An older version spells it so.
        answer = row.get("prediction", row.get("predition"))
        yield TextJudgment(
            a_text(path, number, row, ("query",), "the judgment"),
            a_text(path, number, row, ("passage",), "the judgment"),
            None if row.get("result_status") == 0 else label,
            answer if isinstance(answer, str) else "",
            row["model"] if isinstance(row.get("model"), str) else "",
            *(an_id(path, number, row, (key,)) if key in row else "" for key in ("qid", "docid")),
        )


def _qrels(path: Path, _: str | None) -> Iterator[Qrel]:
    for line_number, each in enumerate(read_judgments(path), 1):
        if not each.query_id or not each.doc_id:
            reason = 'no "qid" and "docid" (umbrela writes none): `trecexam init --recorded` matches by texts'
            raise ConversionError(path, line_number, reason)
        if each.label is not None:
            yield Qrel(each.query_id, each.doc_id, each.label)


def _sniff(start: Head) -> bool:
    row = first_object(start)
    return row is not None and {"query", "passage", "judgment"} <= row.keys()


FORMAT = Format(
    "umbrela",
    (".jsonl",),
    "umbrela's judgments, JSONL",
    EXAMPLE,
    _sniff,
    read_judgments,
    None,
    told_by='"query", "passage" and "judgment"',
    becomes={"qrels": _qrels},
)
