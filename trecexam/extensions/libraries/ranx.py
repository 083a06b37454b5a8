"""A track's labels and runs as those of ranx (Bassani, "ranx: A Blazing-Fast Python Library for Ranking
Evaluation, Comparison, and Fusion", ECIR 2022), in an extra of its name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.features.exporting.exports import qrels
from trecexam.features.exporting.exports import runs as runs_of
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import of_documents

if TYPE_CHECKING:
    import ranx

    from trecexam.scores.labels import LabelRule


@of_documents
def ranx_qrels(
    track: Assessment,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
) -> ranx.Qrels:
    """The Rubric-Qrels as a `ranx.Qrels`, which cannot hold queries without labelled passages.

    Args:
        label, min_rating, min_answers, binary: as in `qrels`.

    Raises:
        TrecexamError: ranx is not installed, or nothing has a label.
        ValueError: as `qrels`.
    """
    ranx = _ranx()
    labels: dict[str, dict[str, int]] = {}
    for row in qrels(track, label=label, min_rating=min_rating, min_answers=min_answers, binary=binary):
        labels.setdefault(row.query_id, {})[row.doc_id] = row.relevance
    if not labels:
        raise TrecexamError("nothing has a label yet: run `trecexam watch`", path=track.folder.root)
    return ranx.Qrels.from_dict(labels)


def ranx_runs(track: Assessment, runs: Collection[str] | None = None) -> dict[str, ranx.Run]:
    """The runs as `ranx.Run`s, by name, in full depth.

    ranx leaves open how equal scores are ordered. So that it is trec_eval's order, a score that is not below
    the one before it is the next number below that (a difference of 1e-16 of it).

    Args:
        runs: their names, None for all.

    Raises:
        TrecexamError: ranx is not installed, or there is no such run.
    """
    ranx = _ranx()
    return {
        name: ranx.Run.from_dict(
            {
                query_id: dict(
                    zip(
                        run.doc_ids[start:end].to_pylist(),
                        _descending(run.scores[start:end].tolist()),
                        strict=True,
                    )
                )
                for query_id, (start, end) in run.spans.items()
            },
            name=name,
        )
        for name, run in runs_of(track, runs).items()
    }


def _descending(scores: Sequence[float]) -> Iterator[float]:
    last = math.inf
    for score in scores:
        last = min(score, math.nextafter(last, -math.inf))
        yield last


def _ranx() -> Any:
    try:
        return import_module("ranx")
    except ImportError:
        raise TrecexamError("this needs ranx: pip install ranx") from None
