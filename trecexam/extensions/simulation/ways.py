"""Methods for dropped judgments besides the grader: learned labels, one label, condensed lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.features.fill.teaching import LABEL, LEARNED, Encoded, Labels, the_teacher
from trecexam.features.fill.ways import constant_label

if TYPE_CHECKING:
    from trecexam.extensions.simulation.arithmetic.simulation import Filler
    from trecexam.line.assessment import Assessment
    from trecexam.line.official import Official

CONDENSED = "condensed"


def other_ways(
    track: Assessment, official: Official, ways: Sequence[str], encoding: Encoded | None = None
) -> dict[str, Filler]:
    """Name of the method -> filler of dropped judgments.

    Args:
        ways: "learned", "condensed", "label:N", and "label" for each label above 0 that people gave.
        encoding: called with how many passages are encoded, and of how many.

    Raises:
        TrecexamError: a way that is none; nothing can be learned here.
    """
    positive_labels = sorted(
        {label for judged in official.judged.values() for label in judged.values() if label > 0}
    )
    names = [
        name
        for method in ways
        for name in ([f"{LABEL}{label}" for label in positive_labels] if method == "label" else [method])
    ]
    fillers: dict[str, Filler] = {}
    for name in names:
        constant = constant_label(name)
        if constant is not None:
            fillers[name] = _Constant(constant)
        elif name == LEARNED:
            fillers[name] = the_teacher().learner(track, official, encoding)
        elif name == CONDENSED:
            fillers[name] = None
        else:
            raise TrecexamError(f"--by {name} is unknown: give learned, condensed, label or label:N")
    return fillers


class _Constant:
    """The same label for each passage."""

    def __init__(self, label: int) -> None:
        self._label = label

    def __call__(self, dropped: Mapping[str, Collection[str]]) -> Labels:
        return {query_id: dict.fromkeys(docs, self._label) for query_id, docs in dropped.items()}
