"""A worker of the cluster: makes an object by a recipe, and calls one of its methods batch by batch.

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
    """Becomes an actor of Ray. A new one is empty, so that it shows at once that it has a place."""

    def __init__(self) -> None:
        self._work: Any = None

    def place(self) -> Placed:
        """Where it is."""
        return Placed(socket.gethostname(), __version__)

    def load(self, recipe: bytes, method: str) -> WorkerFailed | None:
        """Makes the object. None where it is ready."""
        try:
            self._work = getattr(pickle.loads(recipe)(), method)
        except Exception as error:
            return _failed(error)
        return None

    def work(self, items: bytes, item_indices: Sequence[int]) -> Worked | WorkerFailed:
        """The results of the items at these places of a batch, in their order."""
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
