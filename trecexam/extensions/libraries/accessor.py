"""More of `track.export`: labels and runs as those of ranx."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.libraries import ranx


@named_as_called
class RanxCalls(Accessor):
    """What ranx takes: `track.export.ranx_qrels()`."""

    ranx_qrels = on_loaded(ranx.ranx_qrels)
    ranx_runs = on_loaded(ranx.ranx_runs)
