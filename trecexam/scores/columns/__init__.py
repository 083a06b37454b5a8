"""Measures computed on columns, for all queries of a run at once, bit for bit as trec_eval and ndeval do.

    judged = Judged.from_qrels(rows)          # doc_ids and labels, as columns
    evaluator = Evaluator([nDCG @ 10, AP(rel=2)], judged)
    evaluator.values(run)                     # float64, (queries of judged, measures)

`provider` offers the same to whoever uses `ir_measures`. `supported` says which measures are computed here;
others are for ir_measures' own providers.
"""

from __future__ import annotations

from trecexam.scores.columns.evaluator import Evaluator, supported
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures.cover import Cover, ECover, nCover
from trecexam.scores.columns.provider import ColumnsProvider, provider, register
from trecexam.scores.columns.ranked import Hits, Ranked, rows_at_ranks, run_of

__all__ = [
    "UNJUDGED",
    "ColumnsProvider",
    "Cover",
    "ECover",
    "Evaluator",
    "Hits",
    "Judged",
    "Ranked",
    "nCover",
    "provider",
    "register",
    "rows_at_ranks",
    "run_of",
    "supported",
]
