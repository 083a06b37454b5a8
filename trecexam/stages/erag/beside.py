"""out/erag/: what `trecexam erag` writes, with every update of a track whose grader is `erag`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trecexam.graders.erag.grader import DEFAULT_METRIC
from trecexam.stages.erag.evaluation import evaluated
from trecexam.stages.erag.labels import from_grades
from trecexam.stages.erag.runs import counted_queries, lists

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline


def files(pipeline: Pipeline) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each, on the default measures; none where another grader asks about gold outputs."""
    label = getattr(pipeline.grader, "label", None)
    if label is None or pipeline.snapshot is None:
        return
    query_ids, _ = counted_queries(pipeline.snapshot, pipeline.inputs)
    ranked = lists(pipeline.snapshot, query_ids, pipeline.config.track.depth)
    labelled = from_grades(pipeline, label, ranked, query_ids)
    metric = pipeline.config.grader.metric or DEFAULT_METRIC
    yield from evaluated(metric, labelled, ranked, query_ids, None).contents().items()
