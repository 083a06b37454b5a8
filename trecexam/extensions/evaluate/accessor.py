"""`track.add_run`: writes a run from Python to the drop folder."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_folder
from trecexam.extensions.evaluate.runs import add_run


@named_as_called
class AddRunAccessor(Accessor):
    """Puts a run into the drop folder: `track.add_run("mine", frame)`."""

    __call__ = on_folder(add_run)
