"""`track.simulate`: judgments are dropped, filled, and compared with all."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.simulation.simulating import simulate_removal, simulate_runs


@named_as_called
class SimulateAccessor(Accessor):
    """How far filled judgment holes can be trusted."""

    runs = on_loaded(simulate_runs)
    removal = on_loaded(simulate_removal)
