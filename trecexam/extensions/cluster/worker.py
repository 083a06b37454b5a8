"""A worker of the cluster: creates an object from a recipe, and calls a method of it per batch.

No exception leaves it: what goes wrong is told in one line, with the traceback as text.
"""

from __future__ import annotations

import pickle
import socket
import time
import traceback
from collections.abc import Sequence
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.extensions.cluster.messages import Placed, Worked, WorkerFailed
from trecexam.version import __version__


class Worker:
    """A Ray actor. It starts empty, so that its placement is known at once."""

    def __init__(self) -> None:
        self._work: Any = None

    def place(self) -> Placed:
        """Its node and version."""
        return Placed(socket.gethostname(), __version__)

    def load(self, recipe: bytes, method: str) -> WorkerFailed | None:
        """Creates the object; returns None on success."""
        try:
            self._work = getattr(pickle.loads(recipe)(), method)
        except Exception as error:
            return _failed(error)
        return None

    def work(self, items: bytes, item_indices: Sequence[int]) -> Worked | WorkerFailed:
        """The results of these items of a batch, in order."""
        began = time.perf_counter()
        try:
            batch = pickle.loads(items)
            results = self._work([batch[item_index] for item_index in item_indices])
            if len(results) != len(item_indices):
                raise ValueError(f"{len(results)} results of {len(item_indices)} items")
            return Worked(pickle.dumps(results), time.perf_counter() - began)
        except Exception as error:
            return _failed(error)


def _failed(error: Exception) -> WorkerFailed:
    line = str(error).strip().split("\n", 1)[0]
    reason = line if isinstance(error, TrecexamError) else f"{type(error).__name__}: {line}"
    return WorkerFailed(f"on {socket.gethostname()}: {reason}", "".join(traceback.format_exception(error)))
