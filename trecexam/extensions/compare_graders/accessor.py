"""`track.compare_graders`: several graders of one track."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loader
from trecexam.extensions.compare_graders.compare import compare_grader_pairs, compare_graders


@named_as_called
class CompareGradersAccessor(Accessor):
    """Several graders against the official side, `track.compare_graders()`, and any two with each other."""

    __call__ = on_loader(compare_graders)
    pairs = on_loader(compare_grader_pairs)
