"""Files that `fill` neither writes over nor takes for people's judgments."""

from __future__ import annotations

from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.features.fill.filled import HolesToFill
from trecexam.line.protected import refuse_protected
from trecexam.line.sources import (
    LEARNED_IDENTITY,
    provenance_beside,
    refuse_foreign,
    sources_beside,
    written_by,
)


def check_outputs(root: Path, to_fill: HolesToFill, output: Path, sources: Path) -> None:
    """Refuses to write over judgments, another file of a track, or what is stored.

    Args:
        root: the track's folder.

    Raises:
        TrecexamError: with the file in the way.
    """
    if _same(output, sources):
        raise TrecexamError("the merged qrels and their sources need a file each", path=output)
    for path in (output, sources):
        qrels = to_fill.request.qrels
        if qrels is not None and _same(path, qrels):
            raise TrecexamError("human judgments are never overwritten; name another file", path=path)
        refuse_protected(path, root)
    if _same(sources, provenance_beside(output)):
        raise TrecexamError("is where it is written whose labels the merged qrels hold", path=sources)
    refuse_foreign(output, root)
    if output.exists() and output.stat().st_size and not sources.exists():
        raise TrecexamError(
            f"exists, and `fill` did not write it: there is no {sources.name}; name another or remove it",
            path=output,
        )


def refuse_merged(qrels: Path | None) -> None:
    """Refuses what `fill` or `learn` wrote: the lines of a machine would pass for a person's, and the rule be
    fitted on them.

    Raises:
        TrecexamError: with what to name instead.
    """
    command = None if qrels is None else written_by(qrels)
    if qrels is not None and command is not None:
        beside = (provenance_beside(qrels), sources_beside(qrels))
        note = next((path.name for path in beside if path.exists()), LEARNED_IDENTITY)
        raise TrecexamError(
            f"`trecexam {command}` wrote it, as {note} beside it says, so not all lines are "
            "people's; name the official judgments that it was made from",
            path=qrels,
        )


def _same(path: Path, other: Path) -> bool:
    """Whether both names are, or would be, the same file."""
    try:
        return path.samefile(other)
    except OSError:
        return path.resolve() == other.resolve()
