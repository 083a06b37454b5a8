"""The ids of a track's topics, documents and judged topics, to compare a run or qrels with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import converters
from converters.bank import read_bank
from converters.errors import ConversionError
from converters.ir_dataset import dataset_qrels, dataset_queries
from converters.records import Qrel
from trecexam.bank.model import item_by_query
from trecexam.folder import TrackFolder


class TrackIds(NamedTuple):
    """The ids of a track; None for kinds that it lacks.

    Attributes:
        topics: of its bank, queries and judgments.
        docs: of its passages; they are read as they are requested, once.
        judged: topics with judgments, by the track's own labels where there are no official ones.
    """

    topics: Iterable[str] | None
    docs: Iterable[str] | None
    judged: Iterable[str] | None


def track_ids(folder: TrackFolder) -> TrackIds:
    """Reads the ids in a track's files; grades and computes nothing."""
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
    """Ignores blank items, which the track reports itself."""
