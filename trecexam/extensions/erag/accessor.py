"""`track.erag`: what a downstream model makes of the runs' documents."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_folder
from trecexam.extensions.erag.calls import erag, estimate_erag


@named_as_called
class EragAccessor(Accessor):
    """Runs scored by what a RAG system's own model makes of each document."""

    score = on_folder(erag)
    estimate = on_folder(estimate_erag)
