"""Fits the embedding grader's cut points, and its soft ones, on a track with official judgments.

python -m trecexam.graders.fit_cut_points TRACK
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import converters
from trecexam.bank import Bank
from trecexam.bank.facets import item_by_query
from trecexam.graders.cut_points import CUT_POINTS, SOFT_CUTS, SoftCuts, link, soft_link
from trecexam.graders.embedding import create_embedding
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def fit(root: Path) -> tuple[tuple[float, ...], SoftCuts]:
    """Cut points for the ratings 1..5, and soft ones, from a track's passages, bank and judgments."""
    track = TrackFolder.open(root)
    passages, qrels = track.passages(), track.qrels()
    if passages is None or qrels is None:
        raise SystemExit(f"fit_cut_points: {root}: needs passages and official judgments as files")
    everything = [item for path in track.bank() for item in converters.read(path, "bank")]
    bank = Bank.from_items(map(item_by_query, everything) if track.config.track.facets else everything)
    judged: dict[str, dict[str, int]] = {}
    for qrel in converters.read(qrels, "qrels"):
        judged.setdefault(qrel.query_id, {})[qrel.doc_id] = qrel.relevance
    judged_docs = {doc_id for labels in judged.values() for doc_id in labels}
    texts = {p.doc_id: p.text for p in converters.read(passages, "passages") if p.doc_id in judged_docs}
    embed = create_embedding(track.config.grader, root).embed
    cosines: list[NDArray[np.float64]] = []
    labels: list[int] = []
    for query_id, items in bank.items.items():
        docs = [doc_id for doc_id in judged.get(query_id, {}) if doc_id in texts]
        if docs:
            cosines += [*(embed([texts[d] for d in docs]) @ embed([item.text for item in items]).T)]
            labels += [judged[query_id][d] for d in docs]
    try:
        return link([float(of_passage.max()) for of_passage in cosines], labels), soft_link(cosines, labels)
    except ValueError as error:
        raise SystemExit(f"fit_cut_points: {qrels}: {error}") from None


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    cut_points, soft_cuts = fit(Path(sys.argv[1]))
    print("fitted:  ", cut_points, "soft:", *soft_cuts)
    print("built in:", CUT_POINTS, "soft:", *SOFT_CUTS)
