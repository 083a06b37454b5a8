"""What a track has names for: topics, documents, judged topics. A run or qrels file is held against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import converters
from converters.bank import read_bank
from converters.errors import ConversionError
from converters.ir_dataset import dataset_qrels, dataset_queries
from converters.records import Qrel
from trecexam.bank.model import item_by_query
from trecexam.track import TrackFolder


class TrackIds(NamedTuple):
    """The ids that a track has; None where it has none of the kind.

    Attributes:
        topics: of its bank, queries and judgments.
        docs: of its passages; they are read as they are requested, once.
        judged: topics with judgments, by the track's own labels where there are no official ones.
    """

    topics: Iterable[str] | None
    docs: Iterable[str] | None
    judged: Iterable[str] | None


def track_ids(folder: TrackFolder) -> TrackIds:
    """The ids in a track's files; nothing of it is graded or computed."""
    items = [item for path in folder.bank(optional=True) for item in read_bank(path, _pass)]
    by_query = item_by_query if folder.config.track.facets else lambda item: item
    topics = {by_query(item).query_id for item in items}
    queries, official, passages = folder.queries(), folder.qrels(), folder.passages()
    rubric, dataset = folder.out / "rubric.qrels", folder.config.track.dataset
    if queries is not None:
        topics |= {query.query_id for query in converters.read(queries, "queries")}
    elif dataset is not None:
        topics |= {query.query_id for query in dataset_queries(dataset)}
    rows: Iterable[Qrel] = ()
    if official is not None:
        rows = converters.read(official, "qrels")
    elif dataset is not None:
        rows = dataset_qrels(dataset)
    elif rubric.exists():
        rows = converters.read(rubric, "qrels")
    judged = dict.fromkeys(row.query_id for row in rows)
    docs = None
    if passages is not None:
        docs = (passage.doc_id for passage in converters.read(passages, "passages"))
    return TrackIds(topics.union(judged) or None, docs, judged or None)


def _pass(error: ConversionError) -> None:
    """Blank items are the track's business."""
