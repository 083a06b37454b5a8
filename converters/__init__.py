"""Converts file formats of retrieval evaluation to records and back. Usable without trecexam.

>>> import converters
>>> for entry in converters.read("my.run"):
...     print(entry.query_id, entry.doc_id, entry.rank, entry.score)
"""

from converters.errors import ConversionError
from converters.records import (
    Citation,
    Item,
    Origin,
    Passage,
    Qrel,
    Query,
    RecordedGrade,
    Response,
    RunEntry,
    RunRank,
    Sentence,
    TextJudgment,
)
from converters.registry import Format, formats, read, sniff, write
from converters.run import Run

__all__ = [
    "Citation",
    "ConversionError",
    "Format",
    "Item",
    "Origin",
    "Passage",
    "Qrel",
    "Query",
    "RecordedGrade",
    "Response",
    "Run",
    "RunEntry",
    "RunRank",
    "Sentence",
    "TextJudgment",
    "formats",
    "read",
    "sniff",
    "write",
]


def __dir__() -> list[str]:
    return sorted(__all__)
