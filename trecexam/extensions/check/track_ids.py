"""The ids of a track's topics, documents and judged topics, to compare a run or qrels with."""

from __future__ import annotations

from collections.abc import Iterable

import converters
from converters.bank import read_bank
from converters.errors import ConversionError
from converters.ir_dataset import dataset_qrels, dataset_queries
from converters.records import Qrel
from trecexam.bank.model import item_by_query
from trecexam.folder import TrackFolder


def track_ids(folder: TrackFolder) -> dict[str, Iterable[str] | None]:
    """Read the ids in a track's files; grade and compute nothing.

    Returns:
        "topics" of its bank, queries and judgments, "docs" of its passages (to be looked at once), and
        "judged": topics with judgments, by the track's own labels where there are no official ones. None for
        what it lacks.
    """
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
    if official is None and dataset is not None:
        rows = dataset_qrels(dataset)
    elif official is not None or rubric.exists():
        rows = converters.read(official or rubric, "qrels")
    judged = dict.fromkeys(row.query_id for row in rows)
    docs = None
    if passages is not None:
        docs = (passage.doc_id for passage in converters.read(passages, "passages"))
    return {"topics": topics.union(judged) or None, "docs": docs, "judged": judged or None}


def _pass(error: ConversionError) -> None:
    """Ignore blank items, which the track reports itself."""
