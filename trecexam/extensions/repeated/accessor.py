"""`track.repeat`: repeats grading with a server."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loader
from trecexam.extensions.repeated import repeating


@named_as_called
class RepeatAccessor(Accessor):
    """How far ranks move if a server judges again: `track.repeat(5)`."""

    __call__ = on_loader(repeating.repeat)
    estimate = on_loader(repeating.estimate_repeat)
