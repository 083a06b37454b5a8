"""Ids of a track's topics, documents and judged topics, to compare with a run or qrels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import converters
from converters.ir_dataset import dataset_qrels
from converters.records import Qrel
from trecexam.extensions.check.preflight import KnownIds
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import query_texts, whole_bank


def track_ids(track: Path) -> KnownIds:
    """Read the ids in a track's files; grade and compute nothing.

    Topics come from the bank, queries and judgments. Without official judgments, the judged topics are those
    of the track's labels.
    """
    folder = TrackFolder.open(track)
    official, passages, dataset = folder.qrels(), folder.passages(), folder.config.track.dataset
    rubric = folder.out / "rubric.qrels"
    rows: Iterable[Qrel] = ()
    if official is None and dataset is not None:
        rows = dataset_qrels(dataset)
    elif official is not None or rubric.exists():
        rows = converters.read(official or rubric, "qrels")
    judged = dict.fromkeys(row.query_id for row in rows)
    topics = {*whole_bank(folder, folder.bank(optional=True)).items, *query_texts(folder), *judged}
    docs = None
    if passages is not None:
        docs = (passage.doc_id for passage in converters.read(passages, "passages"))
    return KnownIds(topics or None, docs, judged or None)
