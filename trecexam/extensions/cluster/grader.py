"""Runs a grader on a cluster. Its grades, and their key in the store, are the same as without a cluster."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.cluster.pool import Lost, Pool
from trecexam.extensions.cluster.settings import RaySection
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders import available
from trecexam.graders.base import Answer, Cell, Grader, UngradedError


class WorkerAnswer(NamedTuple):
    """An answer and its environment, see `Grader`."""

    answer: Answer
    environment: Mapping[str, str] | None


@dataclass(frozen=True)
class UnansweredCell:
    """Replaces an answer that the grader may give later."""

    reason: str


@dataclass
class GraderWorker:
    """The interface of a grader in a worker."""

    grader: Grader

    def grade(self, cells: Sequence[Cell]) -> list[WorkerAnswer | UnansweredCell | None]:
        """An answer for each cell; None if the grader has none."""
        answers: dict[Cell, WorkerAnswer] = {}
        rest: UnansweredCell | None = None
        try:
            for batch in self.grader.grade(cells):
                # One of all answers: pickled together, it goes over the wire once.
                made_on = self.grader.environment
                answers.update((cell, WorkerAnswer(answer, made_on)) for cell, answer in batch)
        except UngradedError as error:
            rest = UnansweredCell(str(error))
        return [answers.get(cell, rest) for cell in cells]


@dataclass(frozen=True)
class GraderRecipe:
    """Creates the grader in a worker, from the same settings and prompt file.

    Attributes:
        files: name -> content of the files of the track that the settings name.
        identity: of the daemon's grader. A worker whose own differs does not grade.
    """

    settings: GraderSection
    files: Mapping[str, bytes]
    identity: Mapping[str, Any]

    def __call__(self) -> GraderWorker:
        """Creates the grader, loads its model and lets it answer once.

        Raises:
            GraderError: it cannot be made here, or would not grade as the daemon's.
        """
        model = self.settings.model
        if model is not None and Path(model).is_absolute() and not Path(model).is_dir():
            raise GraderError(
                f"'{model}' is not a folder on this machine of the cluster: put the model there, or give "
                "`model` a hub id"
            )
        with tempfile.TemporaryDirectory(prefix="trecexam-") as folder:
            root = Path(folder)
            for name, content in self.files.items():
                (root / name).write_bytes(content)
            grader = available()[self.settings.name].create(self.settings, root)
            worker_identity = dict(grader.identity)
        different = sorted(
            key
            for key in worker_identity.keys() | self.identity
            if worker_identity.get(key) != self.identity.get(key)
        )
        if different:
            raise GraderError(
                f"the grader on that machine differs from this one in {', '.join(different)}: give all "
                "machines of the cluster the same model files and the same trecexam"
            )
        # A worker's end here is not caused by a cell.
        kind = min(grader.item_kinds)
        item = Item("q", "q/1", "What is the capital of France?", kind, ("Paris",))
        for _ in grader.grade([Cell("q", "capital of France", "d", "Paris is the capital of France.", item)]):
            pass
        return GraderWorker(grader)


class ClusterGrader(Grader):
    """A grader that grades on the workers of a cluster and is otherwise the same grader."""

    def __init__(self, grader: Grader, settings: GraderSection, root: Path, cluster: RaySection) -> None:
        self._grader, self._settings, self._root, self._cluster = grader, settings, root, cluster
        self._environment: Mapping[str, str] | None = None
        for name in Grader.__annotations__:
            setattr(self, name, getattr(grader, name))

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._grader.identity

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The environment of the last batch's worker."""
        return self._environment

    @property
    def model_to_load(self) -> str:
        return self._grader.model_to_load

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Yields answers as they arrive; lists may be empty, so that the caller is not blocked."""
        recipe = recipe_of(self._grader, self._settings, self._root)
        pool: Pool[Cell, WorkerAnswer | UnansweredCell | None] = Pool(self._cluster, recipe, "grade")
        unanswered: list[str] = []
        # A passage's cells stay together: a model reads what they begin with once.
        passages = (
            list(group) for _, group in itertools.groupby(cells, lambda cell: (cell.query_id, cell.text))
        )
        for results in pool.run(passages):
            batch: list[tuple[Cell, Answer]] = []
            # What comes together is of one worker.
            self._environment = None
            for cell, result in results:
                if isinstance(result, Lost):
                    reason = f"ended each of the {result.deaths} workers that graded only this"
                    batch.append((cell, Answer(None, "error", reason)))
                elif isinstance(result, UnansweredCell):
                    unanswered.append(result.reason)
                elif result is not None:
                    batch.append((cell, result.answer))
                    self._environment = result.environment
            yield batch
        if unanswered:
            raise UngradedError(unanswered[-1])


def recipe_of(grader: Grader, settings: GraderSection, root: Path) -> GraderRecipe:
    """The recipe to create this grader on any machine.

    A model in a folder of the track is looked for under the same absolute path on every machine. The
    prompt file travels with the settings.
    """
    # The metric runs here, where the user's function is available.
    changed: dict[str, Any] = {"metric": None}
    files: dict[str, bytes] = {}
    if settings.model is not None:
        places = (root / settings.model, Path(settings.model))
        changed["model"] = next((str(p.absolute()) for p in places if p.is_dir()), settings.model)
    if settings.prompt is not None and Path(settings.prompt).suffix.lower() in PROMPT_SUFFIXES:
        path = root / settings.prompt
        changed["prompt"] = path.name
        files[path.name] = path.read_bytes()
    return GraderRecipe(settings.model_copy(update=changed), files, dict(grader.identity))
