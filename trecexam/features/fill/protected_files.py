"""Files that `fill` neither writes over nor takes for people's judgments."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.features.fill.filled import HolesToFill
from trecexam.line.sources import LEARNED_IDENTITY, sources_beside, written_by


def check_outputs(
    inputs: Collection[Path], state: Path, to_fill: HolesToFill, output: Path, sources: Path
) -> None:
    """Refuses to write over the official judgments, by whatever name, another input or what is stored.

    Args:
        inputs: the track's input files.
        state: the folder of what the track stores.

    Raises:
        TrecexamError: with the file in the way.
    """
    if _same(output, sources):
        raise TrecexamError("the merged qrels and their sources need a file each", path=output)
    for path in (output, sources):
        if path.resolve().is_relative_to(state.resolve()):
            raise TrecexamError("is among what the track stores, as its grades; name another file", path=path)
        for input_file in (to_fill.request.qrels, *inputs):
            if input_file is not None and _same(path, input_file):
                raise TrecexamError(
                    "is an input, and human judgments are never overwritten; name another file", path=path
                )


def refuse_merged(qrels: Path | None) -> None:
    """Refuses what `fill` or `learn` wrote: the lines of a machine would pass for a person's, and the rule be
    fitted on them.

    Raises:
        TrecexamError: with what to name instead.
    """
    command = None if qrels is None else written_by(qrels)
    if qrels is not None and command is not None:
        note = sources_beside(qrels).name if command == "fill" else LEARNED_IDENTITY
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
