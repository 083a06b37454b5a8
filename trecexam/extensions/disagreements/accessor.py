"""More of `track.correlate`: swapped pairs, outliers and representative queries."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_graded
from trecexam.extensions.disagreements import disagreements
from trecexam.extensions.disagreements.representative import representative


@named_as_called
class DisagreementCalls(Accessor):
    """Differences from the official side: `track.correlate.swaps()`."""

    swaps = on_graded(disagreements.swaps)
    outliers = on_graded(disagreements.outliers)
    representative = on_graded(representative)
