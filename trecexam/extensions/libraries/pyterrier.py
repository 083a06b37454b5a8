"""A track in PyTerrier's frames and transformers, for `pt.Experiment` (extra `pyterrier`).

    import pyterrier as pt
    import trecexam
    from ir_measures import nDCG
    from trecexam.pyterrier import Cover, qrels, runs, topics

    track = trecexam.open_track("mytrack")
    pt.Experiment(runs(track), topics(track), qrels(track), eval_metrics=[nDCG @ 10, Cover(rel=4) @ 20])

Frames have PyTerrier's columns; ids are text, so leading zeros stay. All functions use the current grades:
after an update, call again. Nothing here starts Java.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from trecexam.errors import TrecexamError
from trecexam.features.exporting import exports
from trecexam.packages import install
from trecexam.scores.columns import Cover, nCover
from trecexam.scores.labels import LabelRule
from trecexam.track import Track, selection

try:
    import pandas
    import pyterrier as pt
except ImportError as error:
    raise TrecexamError(f"{error.name} is not installed: {install('pyterrier')}") from None

__all__ = ["Cover", "nCover", "qrels", "runs", "topics"]


def qrels(
    track: Track,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
) -> pandas.DataFrame:
    """Return the Rubric-Qrels in PyTerrier's format, with the ratings for Cover and nCover.

    With it, `pt.Experiment` and `pt.Evaluate` give the values of the track's own leaderboard. A query of the
    bank without any rated passage has no row: PyTerrier leaves it out of its means, the leaderboard counts 0.

    Args:
        label, min_rating, min_answers, binary: as in `Track.qrels`.

    Returns:
        A row for each labelled passage: `qid`, `docno` (text), `label` (int64), `ratings` (object: a tuple
        with the passage's rating on each item of the query, in the bank's order; 0..5, -1 where there is
        none) and, where the bank has importances, `importances` (object: a tuple of "vital", "okay" or "");
        where it has weights, `weights` (object: a tuple of floats, or None where the query has none).

    Raises:
        TrecexamError, ConversionError: the track cannot be read.
        ValueError: an unknown label rule, or min_answers below 1.
    """
    loaded = selection(track).graded()
    labels = track.qrels(label=label, min_rating=min_rating, min_answers=min_answers, binary=binary)
    rows = list(labels)
    columns = {
        "qid": _text(row.query_id for row in rows),
        "docno": _text(row.doc_id for row in rows),
        "label": pandas.Series([row.relevance for row in rows], dtype="int64"),
        "ratings": pandas.Series([row.ratings for row in rows], dtype=object),
    }
    if loaded.bank.has_importance:
        columns["importances"] = pandas.Series([row.importances for row in rows], dtype=object)
    if loaded.bank.has_weights:
        columns["weights"] = pandas.Series([row.weights for row in rows], dtype=object)
    return pandas.DataFrame(columns)


def topics(track: Track) -> pandas.DataFrame:
    """Return the queries of the bank: `qid` and `query`, both text, in the bank's order; "" without a text.

    Raises:
        TrecexamError, ConversionError: the track cannot be read.
    """
    loaded = selection(track).graded()
    texts = {query_id: loaded.query_texts.get(query_id, "") for query_id in loaded.bank.query_ids}
    return pandas.DataFrame({"qid": _text(texts), "query": _text(texts.values())})


def runs(track: Track, names: Collection[str] | None = None) -> dict[str, pt.Transformer]:
    """Return the track's runs as transformers that return a topic's stored results.

    Args:
        names: runs in this order; None for all.

    Returns:
        Display name -> `pt.Transformer.from_df` of `qid`, `docno` (text), `score` (float64) and `rank`
        (int64, from 0, trec_eval's order), as `pt.Experiment` takes them in place of a list of systems.

    Raises:
        TrecexamError, ConversionError: an unknown run, or the track cannot be read.
    """
    transformers = {}
    exported = exports.runs(selection(track).graded(), names)
    for name in exported if names is None else names:
        results = pandas.DataFrame(list(exported[name])).rename(
            columns={"query_id": "qid", "doc_id": "docno"}
        )
        results["rank"] -= 1
        transformers[name] = pt.Transformer.from_df(results[["qid", "docno", "score", "rank"]])
    return transformers


def _text(values: Iterable[str]) -> pandas.Series:
    return pandas.Series(list(values), dtype=str)
