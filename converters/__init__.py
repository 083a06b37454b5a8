"""File formats of retrieval evaluation <-> records. Light, and usable alone.

>>> import converters
>>> for entry in converters.read("my.run"):
...     print(entry.query_id, entry.doc_id, entry.rank, entry.score)
"""

from converters.errors import ConversionError
from converters.records import Item, Passage, Qrel, Query, RecordedGrade, RunEntry, RunRank
from converters.registry import Format, formats, read, sniff, write
from converters.run import Run

__all__ = [
    "ConversionError",
    "Format",
    "Item",
    "Passage",
    "Qrel",
    "Query",
    "RecordedGrade",
    "Run",
    "RunEntry",
    "RunRank",
    "formats",
    "read",
    "sniff",
    "write",
]
