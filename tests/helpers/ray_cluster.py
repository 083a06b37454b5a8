"""A local Ray cluster, and recipes for workers that can be made to exit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from support import HashGrader, until

from trecexam.extensions.cluster.remote import Grade, answer_cells
from trecexam.graders import Factory

#: Bytes; the minimum of Ray. The whole of it is in /dev/shm.
_OBJECTS = 80_000_000


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A head that does no work, and this many machines of one CPU."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **_quiet()})
    try:
        for _ in range(workers):
            add_machine(made)
        yield made
    finally:
        made.shutdown()


def add_machine(made: Any, **settings: Any) -> Any:
    return made.add_node(num_cpus=1, wait=True, **{**_quiet(), **settings})


def _quiet() -> dict[str, Any]:
    return {"include_dashboard": False, "object_store_memory": _OBJECTS}


def actors() -> list[int]:
    """The processes that are actors on this process's cluster: children of its machines."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes()
            ours = b"ray::Worker" in line and _parent(_parent(int(place.parent.name))) == os.getpid()
        except OSError:
            continue
        if ours:
            found.append(int(place.parent.name))
    return found


def _parent(pid: int) -> int:
    # The name, in brackets, may hold anything.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Word(str):
    """An item that shows whether anything still references it."""


@dataclass(frozen=True)
class Doubling:
    """A recipe: workers that double numbers, and record who did which in files of `notes`.

    Attributes:
        ends: a number that ends the worker the first time.
        pause: seconds of each batch.
        raises: a number at which it raises.
        unready: it ends during setup.
        together: workers that must be at work before the first batch is done, for a minute at most.
    """

    notes: Path
    ends: int | None = None
    pause: float = 0.0
    raises: int | None = None
    unready: bool = False
    together: int = 1

    def __call__(self) -> Callable[[Sequence[int]], list[int]]:
        with (self.notes / "made").open("a") as file:
            file.write(f"{os.getpid()}\n")
        if self.unready:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.double

    def double(self, numbers: Sequence[int]) -> list[int]:
        (self.notes / f"at-work-{os.getpid()}").touch()
        time.sleep(self.pause)
        until(lambda: len(list(self.notes.glob("at-work-*"))) >= self.together, 60)
        if self.ends in numbers and not (self.notes / "ended").exists():
            (self.notes / "ended").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.raises in numbers:
            raise ValueError(f"cannot double {self.raises}")
        return [2 * number for number in numbers]

    def made(self) -> list[int]:
        """The processes that were workers."""
        path = self.notes / "made"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


class HashRecipe:
    """A recipe: workers that grade by a hash."""

    def __call__(self) -> Grade:
        return partial(answer_cells, HashGrader())


class PlacedGrader(HashGrader):
    """Grades by a hash, and says in which process."""

    @property
    def environment(self) -> dict[str, str]:
        return {"device": "cpu", "process": str(os.getpid())}


class PlacedRecipe:
    """A recipe: workers that return where they are."""

    def __call__(self) -> Grade:
        return partial(answer_cells, PlacedGrader())


HASH = Factory("grades by a hash", lambda: "", lambda settings, root: HashGrader())
PLACED = Factory("says where it is", lambda: "", lambda settings, root: PlacedGrader())
