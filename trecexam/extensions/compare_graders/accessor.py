"""`track.compare_graders`: several graders of one track."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loader
from trecexam.extensions.compare_graders.compare import compare_graders


@named_as_called
class CompareGradersAccessor(Accessor):
    """`track.compare_graders()`: graders against the official side and each other."""

    __call__ = on_loader(compare_graders)
