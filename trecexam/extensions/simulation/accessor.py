"""`track.simulate()`: drops judgments, fills the holes, and compares with all judgments."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.simulation.simulating import simulate


@named_as_called
class SimulateAccessor(Accessor):
    """Simulations of filled judgment holes."""

    __call__ = on_loaded(simulate)
