"""`track.verify.reproducible`: grades a sample of graded cells again."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loader
from trecexam.extensions.reproducible import reproducing


@named_as_called
class ReproducibleCalls(Accessor):
    """Tests whether cells get the same answers again: `track.verify.reproducible()`."""

    reproducible = on_loader(reproducing.verify_reproducible)
    estimate_reproducible = on_loader(reproducing.estimate_reproducible)
